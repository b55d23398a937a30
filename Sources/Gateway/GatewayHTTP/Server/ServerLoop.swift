internal import CHTTPServer
internal import CountersignCore
internal import GatewayModel

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// One thread that serves the connections of one listening socket.
///
/// A pass reads from all ready connections. Afterwards, the work of the complete requests is started together, so that
/// it shares a commit. Handlers run on this thread, except for large bodies, and must not block.
final class ServerLoop: @unchecked Sendable {
    private let service: RequestService
    private let certificates: TLSCertificates?
    private let together: RequestService.Together
    private let inbox: Inbox
    private let stopGraceSeconds = Lock<Double?>(nil)

    // Used by the loop's thread only.
    private let poller: Poller
    private var listener: Int32 = -1
    private var connections: ContiguousArray<Connection> = []
    private var free: ContiguousArray<Int> = []
    private var openCount = 0
    private var deadlines = Deadlines()
    private var pool = BufferPool()
    private var output = OutputBuffer(capacity: 64 * 1024)
    /// The header field `Date` for the current second.
    private var date = OutputBuffer(capacity: 64)
    private var dateSeconds: Int64 = 0
    private let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 * 1024, alignment: 16)
    private var ended: [RequestTicket] = []
    private var due: ContiguousArray<Int> = []
    /// Connections with more work for the next pass. `handshakes` has the connections whose handshake can continue.
    private var ready: ContiguousArray<Int> = []
    private var handshakes: ContiguousArray<(index: Int, generation: UInt64)> = []
    /// Connections whose stream had no data. New data of a stream wakes no loop, so streams are polled.
    private var streaming: ContiguousArray<Int> = []
    private var begun: [StartedWork] = []
    private var requestNumber: UInt64 = 0
    /// The start of the pass. Deadlines use this time, so that setting a deadline does not read the clock.
    private var now: UInt64
    /// The wall clock at the first use in the pass; nil before.
    private var milliseconds: Int64?
    /// The time to accept connections again after `accept` has failed; 0 while accepting.
    private var acceptsAt: UInt64 = 0
    private var stopDeadline: UInt64?

    /// Work to start. A structure, because Swift would wrap each function of an array of tuples in a thunk.
    private struct StartedWork {
        let ticket: RequestTicket
        let start: (@escaping @Sendable () -> Void) -> Void
    }

    private static let listenerID = UInt64.max
    private static let inboxID = UInt64.max - 1
    /// The maximum number of requests and reads of one connection in a pass. The next pass continues.
    private static let stepsInAPass = 32
    /// A handshake takes about a millisecond, mostly for the signature.
    private static let handshakesInAPass = 4
    /// Bodies of at most this many bytes are sent in one piece with the head.
    private static let joinedBytes = 16 * 1024
    /// The minimum average rate, in bytes per second, at which a client must read a large response.
    private static let slowestReader = 8 * 1024

    /// Throws `cannotBind` when the process has no file descriptors left.
    init(
        _ service: RequestService, certificates: TLSCertificates?, together: @escaping RequestService.Together
    ) throws(GatewayError) {
        self.service = service
        self.certificates = certificates
        self.together = together
        inbox = try Inbox()
        poller = try Poller()
        now = MonotonicClock.now
        poller.addReader(inbox.reading, id: Self.inboxID)
    }

    deinit {
        scratch.deallocate()
    }

    func beginStop(graceSeconds: Double) {
        stopGraceSeconds.withLock { $0 = graceSeconds }
        inbox.signal()
    }

    private var isDraining: Bool { stopDeadline != nil }

    /// Serves the connections of a listening socket until the loop is stopped. Takes ownership of the socket.
    func run(_ socket: Int32) {
        countersign_ignore_broken_pipes()
        listener = socket
        poller.addReader(socket, id: Self.listenerID)
        while !(isDraining && openCount == 0) {
            let count = poller.wait(milliseconds: longestWait)
            now = MonotonicClock.now
            milliseconds = nil
            for index in 0..<count { handle(poller.event(index)) }
            for index in takeAll(&ready) {
                connections[index].isReady = false
                serve(connections[index])
            }
            continueHandshakes()
            handOver()
            deadlines.take(at: now, &due)
            for index in due { reachDeadline(connections[index]) }
            due.removeAll(keepingCapacity: true)
            for index in takeAll(&streaming) where sendStream(connections[index]) {
                serve(connections[index])
            }
            if acceptsAt != 0, now >= acceptsAt, listener >= 0 {
                acceptsAt = 0
                poller.addReader(listener, id: Self.listenerID)
            }
            drain()
        }
    }

    private var longestWait: Int32 {
        if !ready.isEmpty || !handshakes.isEmpty || !begun.isEmpty { return 0 }
        let longest: Int32 = !streaming.isEmpty ? 10 : isDraining ? 50 : acceptsAt != 0 ? 100 : 60_000
        return deadlines.milliseconds(at: now, longest: longest)
    }

    private func takeAll(_ list: inout ContiguousArray<Int>) -> ContiguousArray<Int> {
        var all: ContiguousArray<Int> = []
        if !list.isEmpty { swap(&all, &list) }
        return all
    }

    private func handOver() {
        guard !begun.isEmpty else { return }
        together {
            for work in begun { work.start { [inbox, ticket = work.ticket] in inbox.signal(ticket) } }
        }
        begun.removeAll(keepingCapacity: true)
    }

    private func drain() {
        guard let grace = stopGraceSeconds.withLock({ $0 }) else { return }
        if stopDeadline == nil {
            stopDeadline = now + UInt64(max(0, grace) * 1e9)
            systemClose(listener)
            listener = -1
        }
        let isOver = now > stopDeadline ?? 0
        for connection in connections {
            switch connection.phase {
            case .closed, .handling: break
            case .head where connection.began == 0: close(connection)
            case .handshake: close(connection)
            case .head, .body, .sending, .lingering: if isOver { close(connection) }
            }
        }
    }

    // MARK: Connections

    private func handle(_ event: Poller.Event) {
        if event.id == Self.listenerID { return accept() }
        if event.id == Self.inboxID {
            inbox.take(&ended)
            for ticket in ended { end(ticket) }
            return
        }
        let connection = connections[Int(event.id & 0xFFFF_FFFF)]
        guard connection.phase != .closed, connection.generation & 0x7FFF_FFFF == event.id >> 32 else {
            return
        }
        let waits = connection.phase != .handshake || connection.wantsToWrite
        if event.canRead || event.canWrite && waits && connection.tls != nil { connection.canRead = true }
        if event.hasHungUp, !connection.hasHungUp {
            connection.hasHungUp = true
            connection.peer.noteHangUp()
            if connection.phase == .handling { watchForAbandonment(connection) }
            // Closes now, because otherwise only a failed write would end the endless stream of a disconnected client.
            if connection.stream?.isEndless == true { return close(connection) }
        }
        serve(connection)
    }

    private func accept() {
        for _ in 0..<64 {
            var text: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (
                0, 0, 0, 0, 0, 0, 0, 0
            )
            let (socket, address) = withUnsafeMutableBytes(of: &text) { text in
                let text = text.assumingMemoryBound(to: CChar.self)
                guard let start = text.baseAddress else { return (Int32(-1), "") }
                let socket = countersign_accept(listener, start, text.count)
                return (socket, socket < 0 ? "" : String(cString: start))
            }
            guard socket >= 0 else {
                switch errno {
                case EAGAIN, EWOULDBLOCK: return
                case EINTR, ECONNABORTED: continue
                case EMFILE, ENFILE: service.connections.freeDescriptors(at: now)
                default: break
                }
                // Stops polling the listener for a while. It stays readable, so each wait would end at once.
                poller.remove(listener)
                acceptsAt = now + MonotonicClock.second / 10
                return
            }
            open(socket, address)
        }
    }

    private func open(_ socket: Int32, _ address: String) {
        let isTrusted = ClientAddress.isTrusted(address, service.trustedProxies)
        let peer = Peer(
            socket: socket, address: address,
            unit: isTrusted ? nil : NetworkAddress(address)?.limitedUnit, at: now)
        guard service.connections.add(peer, at: now) else {
            systemClose(socket)
            return
        }
        let tls = certificates?.open(socket)
        if tls == nil, certificates != nil {
            service.connections.remove(peer)
            systemClose(socket)
            return
        }
        if free.isEmpty {
            free.append(connections.count)
            connections.append(
                Connection(index: connections.count, rules: service.rules, memory: service.memory))
        }
        let connection = connections[free.removeLast()]
        connection.open(peer, tls: tls)
        openCount += 1
        setDeadline(connection, seconds: service.limits.headerSeconds)
        poller.add(socket, id: UInt64(connection.index) | (connection.generation & 0x7FFF_FFFF) << 32)
    }

    private func close(_ connection: Connection) {
        guard connection.phase != .closed else { return }
        if connection.parser.hasRequestLine, !connection.isObserved {
            observe(connection, status: nil, code: nil, bytesOut: 0, trace: nil)
        }
        _ = unlist(connection)
        if connection.stream != nil { releaseStream(of: connection) }
        if streaming.contains(connection.index) { streaming.removeAll { $0 == connection.index } }
        if connection.isReady { ready.removeAll { $0 == connection.index } }
        connection.isReady = false
        deadlines.set(connection.index, Deadlines.never)
        service.connections.remove(connection.peer)
        connection.close(&pool, memory: service.memory)
        free.append(connection.index)
        openCount -= 1
    }

    private func closeGracefully(_ connection: Connection) {
        if let tls = connection.tls { countersign_tls_close(tls) }
        guard connection.hasUnreadInput else { return close(connection) }
        _ = shutdown(connection.socket, Int32(SHUT_WR))
        connection.phase = .lingering
        connection.peer.enter(.sending, at: now)
        setDeadline(connection, seconds: service.limits.headerSeconds)
    }

    private func setDeadline(_ connection: Connection, seconds: Int) {
        deadlines.set(connection.index, now + UInt64(seconds) * MonotonicClock.second)
    }

    private func reachDeadline(_ connection: Connection) {
        switch connection.phase {
        case .closed: break
        case .handling:
            // In this phase, only `watchForAbandonment` sets a deadline.
            if isAbandoned(connection) { close(connection) } else { watchForAbandonment(connection) }
        case .handshake, .head, .body, .sending, .lingering: close(connection)
        }
    }

    private func isAbandoned(_ connection: Connection) -> Bool {
        connection.hasHungUp && connection.request?.endsWithPeer == true && connection.peer.age(at: now) >= 1
    }

    /// A client that closes its sending half may still read. Nevertheless, a request with `endsWithPeer` is
    /// abandoned after a second.
    private func watchForAbandonment(_ connection: Connection) {
        guard connection.hasHungUp, connection.request?.endsWithPeer == true else { return }
        setDeadline(connection, seconds: 1)
    }

    // MARK: Reading

    private func continueHandshakes() {
        guard !handshakes.isEmpty else { return }
        var done = 0
        var steps = 0
        while done < handshakes.count, steps < Self.handshakesInAPass {
            let (index, generation) = handshakes[done]
            let connection = connections[index]
            done += 1
            guard connection.generation == generation, connection.phase == .handshake else { continue }
            connection.isReady = false
            // Skips the costly signature for a disconnected client.
            guard !connection.hasHungUp, let tls = connection.tls else {
                close(connection)
                continue
            }
            steps += 1
            connection.canRead = false
            let progress = Int(countersign_tls_handshake(tls))
            connection.wantsToWrite = progress == COUNTERSIGN_TLS_WRITE
            switch progress {
            case COUNTERSIGN_TLS_DONE:
                connection.phase = .head
                connection.canRead = true
                serve(connection)
            case COUNTERSIGN_TLS_READ, COUNTERSIGN_TLS_WRITE: break
            default: close(connection)
            }
        }
        handshakes.removeFirst(done)
    }

    private func serve(_ connection: Connection) {
        var steps = 0
        while steps < Self.stepsInAPass {
            steps += 1
            let continues =
                switch connection.phase {
                case .closed, .handling: false
                case .handshake: queueHandshake(connection)
                case .head: readHead(connection)
                case .body: readBody(connection)
                case .sending: flush(connection)
                case .lingering: discard(connection)
                }
            guard continues else { return }
        }
        guard connection.phase != .closed, !connection.isReady else { return }
        connection.isReady = true
        ready.append(connection.index)
    }

    private func queueHandshake(_ connection: Connection) -> Bool {
        guard connection.canRead, !connection.isReady else { return false }
        connection.isReady = true
        handshakes.append((connection.index, connection.generation))
        return false
    }

    /// Returns whether to continue with the connection.
    private func readHead(_ connection: Connection) -> Bool {
        if !connection.input.isEmpty {
            let progress = connection.parser.parse(connection.input.bytes)
            if connection.began == 0, connection.parser.hasBegun { connection.began = now }
            switch progress {
            case .complete: return beginRequest(connection)
            case .rejected(let fault):
                if connection.parser.hasRequestLine {
                    let request = connection.makeRequest(nowMilliseconds: nowMilliseconds)
                    // Determines the client's address for the record.
                    _ = service.checkHeader(of: request, .none)
                }
                return respond(connection, fault.response)
            case .incomplete: break
            }
        }
        guard connection.canRead else { return waitForHead(connection) }
        connection.input.makeRoom(&pool)
        switch connection.read(into: connection.input.room) {
        case .bytes(let count):
            connection.input.add(count)
            return true
        case .wouldBlock: return waitForHead(connection)
        case .ended, .failed:
            close(connection)
            return false
        }
    }

    private func waitForHead(_ connection: Connection) -> Bool {
        connection.input.release(&pool)
        if connection.began != 0 {
            connection.peer.enter(.receiving, at: connection.began)
            deadlines.set(
                connection.index,
                connection.began + UInt64(service.limits.headerSeconds) * MonotonicClock.second)
        }
        return false
    }

    private func beginRequest(_ connection: Connection) -> Bool {
        let request = connection.makeRequest(nowMilliseconds: nowMilliseconds)
        if let rejection = service.checkHeader(of: request, connection.parser.framing) {
            return respond(connection, rejection)
        }
        connection.beginBody()
        connection.phase = .body
        let progress = connection.readBody(makeRoom: makeRoom)
        if progress == .incomplete {
            if connection.parser.expectsContinue, request.body.isEmpty {
                output.removeAll()
                output.append("HTTP/1.1 100 Continue\r\n\r\n")
                guard connection.send(output.bytes), !connection.hasOutput else {
                    close(connection)
                    return false
                }
            }
            connection.peer.enter(.receiving, at: now)
            setDeadline(connection, seconds: service.limits.bodySeconds)
        }
        return take(progress, connection)
    }

    private func readBody(_ connection: Connection) -> Bool {
        // With a known length, no byte of the next request is read here.
        let most = connection.parser.framing == .chunked ? 16 * 1024 : connection.missing
        let buffer = UnsafeMutableRawBufferPointer(rebasing: scratch[..<min(most, scratch.count)])
        switch connection.read(into: buffer) {
        case .bytes(let count):
            return take(
                connection.readBody(
                    UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]), &pool,
                    makeRoom: makeRoom), connection)
        case .wouldBlock: return false
        case .ended, .failed:
            close(connection)
            return false
        }
    }

    private func take(_ progress: Connection.BodyProgress, _ connection: Connection) -> Bool {
        switch progress {
        case .incomplete:
            list(connection)
            return true
        case .complete: return handle(connection)
        case .rejected(let fault): return respond(connection, fault.response)
        case .tooLarge:
            return respond(
                connection, connection.request.map { .tooLarge($0, service.limits) } ?? .overloaded(nil))
        case .noRoom: return respond(connection, .overloaded(connection.request))
        case .crumbled:
            close(connection)
            return false
        }
    }

    private func discard(_ connection: Connection) -> Bool {
        guard connection.canRead else { return false }
        switch connection.readSocket(into: scratch) {
        case .bytes(let count):
            connection.discarded += count
            if connection.discarded <= 4 * service.limits.bodyBytes { return true }
        case .wouldBlock: return false
        case .ended, .failed: break
        }
        close(connection)
        return false
    }

    // MARK: Handling

    private var nowMilliseconds: Int64 {
        if let milliseconds { return milliseconds }
        let value = service.nowMilliseconds
        milliseconds = value
        return value
    }

    private func makeRoom() -> Bool { service.holders.makeRoom(at: now) }

    /// Allows the memory to be reclaimed while the client sends or reads slowly.
    private func list(_ connection: Connection) {
        guard !connection.isListed, connection.held.bytes > EvictionQueue.untouched else { return }
        connection.isListed = true
        service.holders.add(connection.held, of: connection.peer)
    }

    /// Protects the memory from being reclaimed. Returns false if it was already reclaimed.
    private func unlist(_ connection: Connection) -> Bool {
        guard connection.isListed else { return true }
        connection.isListed = false
        return service.holders.remove(connection.held)
    }

    private func handle(_ connection: Connection) -> Bool {
        if let rejection = connection.prepareUnpacking(service.limits, makeRoom: makeRoom) {
            return respond(connection, rejection, isWhole: true)
        }
        // The handler uses the memory now, so an eviction would not free it.
        guard unlist(connection), let request = connection.request else {
            return respond(connection, .overloaded(connection.request), isWhole: true)
        }
        switch service.outcome(
            of: request, largestBody: connection.largestBody, holding: connection.held)
        {
        case .answer(let response): return respond(connection, response, isWhole: true)
        case .later(let start, let poll):
            requestNumber += 1
            connection.number = requestNumber
            connection.poll = poll
            connection.phase = .handling
            connection.peer.enter(.handling, at: now)
            deadlines.set(connection.index, Deadlines.never)
            watchForAbandonment(connection)
            begun.append(
                StartedWork(
                    ticket: RequestTicket(connection: connection.index, request: requestNumber), start: start)
            )
            return false
        }
    }

    private func end(_ ticket: RequestTicket) {
        let connection = connections[ticket.connection]
        guard connection.phase == .handling, connection.number == ticket.request,
            let response = connection.poll?()
        else { return }
        connection.poll = nil
        if respond(connection, response, isWhole: true) { serve(connection) }
    }

    // MARK: Responding

    /// Sends a response. Unless `isWhole`, the request was not read completely and the connection is closed
    /// afterwards. Returns whether to continue with the connection.
    private func respond(
        _ connection: Connection, _ answer: consuming HTTPResponse, isWhole: Bool = false
    ) -> Bool {
        let request = connection.request
        var response = answer
        afford(&response, connection)
        if let request { service.decorate(&response, request) }
        let trace = service.trace(of: request)
        observe(
            connection, status: response.status, code: response.code, bytesOut: response.body.count,
            trace: trace)
        connection.closesAfterwards =
            !isWhole || response.closes || isDraining || !connection.parser.keepsAlive
        let isBodiless = request?.method == "HEAD" || response.status == 204 || response.status == 304
        connection.stream = isBodiless ? nil : response.stream
        if response.stream != nil, isBodiless { releaseStream(of: connection) }
        connection.isWhole = isWhole
        connection.isChunked = response.stream != nil && !connection.parser.isOld
        (connection.sendingBegan, connection.sentBytes) = (now, response.body.count)
        if response.stream != nil, !connection.isChunked { connection.closesAfterwards = true }
        writeHead(response, of: connection, trace)
        connection.phase = .sending
        var body = isBodiless || response.stream != nil ? [] : response.body
        if !body.isEmpty, body.count <= Self.joinedBytes {
            body.withUnsafeBytes { output.append($0) }
            body = []
        }
        guard connection.send(output.bytes, body) else {
            close(connection)
            return false
        }
        if connection.hasOutput { waitForReader(connection, bytes: response.body.count) }
        return true
    }

    private func writeHead(_ response: HTTPResponse, of connection: Connection, _ trace: TraceParent?) {
        output.removeAll()
        output.appendStatus(response.status)
        let seconds = nowMilliseconds / 1_000
        if seconds != dateSeconds {
            dateSeconds = seconds
            date.removeAll()
            date.appendDate(secondsSince1970: seconds)
        }
        output.append(date.bytes)
        for (name, value) in response.headers { output.appendField(name, value) }
        if let trace { output.appendField("traceresponse", trace.text) }
        if let request = connection.request { output.appendField("X-Request-Id", request.id) }
        if connection.closesAfterwards {
            output.append("Connection: close\r\n")
        } else if connection.parser.isOld {
            output.append("Connection: keep-alive\r\n")
        }
        if response.stream != nil {
            if connection.isChunked { output.append("Transfer-Encoding: chunked\r\n") }
        } else if response.status != 204, response.status != 304 {
            output.append("Content-Length: ")
            output.append(response.body.count)
            output.append("\r\n")
        }
        output.append("\r\n")
    }

    /// Limits the time for the next `bytes` bytes, and the average rate since the response or the stream's data began.
    /// With the first limit only, a client could read each piece slowly.
    private func waitForReader(_ connection: Connection, bytes: Int) {
        func time(_ bytes: Int) -> UInt64 {
            UInt64(service.limits.bodySeconds + bytes / Self.slowestReader) * MonotonicClock.second
        }
        connection.peer.enter(.sending, at: now)
        deadlines.set(
            connection.index, min(now + time(bytes), connection.sendingBegan + time(connection.sentBytes)))
    }

    /// Frees the body of the request. Replaces the response by 503 if there is no permit for its stream, or if there is
    /// no memory for its body and the request changed nothing. A client repeats a request after 503.
    private func afford(_ response: inout HTTPResponse, _ connection: Connection) {
        _ = unlist(connection)
        connection.freeBody()
        if response.stream != nil {
            if !service.streams.take(connection.request?.clientAddress ?? "") {
                response = .overloaded(connection.request)
            }
            return
        }
        guard response.body.count > EvictionQueue.untouched, !response.isShared else { return }
        if !connection.hold(response.body.count, makeRoom) {
            guard !response.changesNothing, connection.request?.isSafe == false else {
                response = .overloaded(connection.request)
                return
            }
            connection.held.takeBeyondLimit(response.body.count)
        }
        list(connection)
    }

    private func releaseStream(of connection: Connection) {
        service.streams.release(connection.request?.clientAddress ?? "")
    }

    private func observe(
        _ connection: Connection, status: Int?, code: String?, bytesOut: Int, trace: TraceParent?
    ) {
        connection.isObserved = true
        service.observer.requestEnded(
            RequestRecord(
                connection.request, status: status, code: code, trace: trace,
                bytesIn: max(connection.bodyBytes, connection.request?.body.count ?? 0), bytesOut: bytesOut,
                began: connection.began, nowMilliseconds: nowMilliseconds))
    }

    /// Sends as much as the socket accepts. Returns whether to continue with the connection.
    private func flush(_ connection: Connection) -> Bool {
        guard connection.flush() else {
            close(connection)
            return false
        }
        if connection.hasOutput { return false }
        return connection.stream == nil ? finish(connection) : sendStream(connection)
    }

    /// Sends the next piece of a stream. Returns whether to continue with the connection.
    private func sendStream(_ connection: Connection) -> Bool {
        guard connection.phase == .sending, !connection.hasOutput, let stream = connection.stream else {
            return false
        }
        // Removes the deadline of an earlier piece.
        deadlines.set(connection.index, Deadlines.never)
        output.removeAll()
        do throws(ResponseStream.Failed) {
            let bytes = scratch[..<(32 * 1024)]
            let count =
                isDraining && stream.isEndless
                ? nil
                : try stream.read(
                    into: UnsafeMutableRawBufferPointer(rebasing: bytes)
                        .assumingMemoryBound(to: UInt8.self))
            if count == 0 {
                (connection.sendingBegan, connection.sentBytes) = (now, 0)
                connection.peer.enter(.handling, at: now)
                if !streaming.contains(connection.index) { streaming.append(connection.index) }
                return false
            }
            if let count {
                if connection.isChunked { output.appendChunkSize(count) }
                output.append(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
                if connection.isChunked { output.append("\r\n") }
                connection.sentBytes += count
            } else {
                if connection.isChunked { output.append("0\r\n\r\n") }
                connection.stream = nil
                releaseStream(of: connection)
            }
            guard connection.send(output.bytes) else {
                close(connection)
                return false
            }
            guard connection.hasOutput else { return true }
            waitForReader(connection, bytes: count ?? 0)
        } catch {
            close(connection)
        }
        return false
    }

    private func finish(_ connection: Connection) -> Bool {
        _ = unlist(connection)
        if connection.closesAfterwards {
            closeGracefully(connection)
            return connection.phase == .lingering
        }
        connection.endRequest(&pool, memory: service.memory)
        connection.peer.enter(.idle, at: now)
        setDeadline(connection, seconds: service.limits.idleSeconds)
        return true
    }
}

// Within `ServerLoop`, `close` is its method instead of the function of the C library.
private func systemClose(_ socket: Int32) { _ = close(socket) }
