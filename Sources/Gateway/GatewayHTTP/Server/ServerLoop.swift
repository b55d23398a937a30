internal import CHTTPServer
internal import CMicroHTTPD
internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// One thread that serves the connections of one listening socket.
///
/// It runs the library in passes. A pass reads from all connections; afterwards, the complete requests are
/// handed over together, so that they share a commit. A handler runs on this thread and must not block. A
/// waiting request is polled at every pass, because suspending and resuming a connection would cost four
/// system calls and a read without data.
final class ServerLoop: @unchecked Sendable {
    private let common: ServerCommon
    private let stopGraceSeconds = Lock<Double?>(nil)
    private let hasEnded = DispatchSemaphore(value: 0)
    private let wake: WakePipe
    /// Set by `open`, before the thread starts.
    private var daemon: OpaquePointer?

    // Used by the loop's thread only.
    private var inFlight = 0
    private var isDraining = false
    private var begun: [(exchange: Exchange, start: (@escaping @Sendable () -> Void) -> Void)] = []
    /// The number of requests that wait for a response, and of streamed responses.
    private var waiting = 0
    private var streaming = 0
    private var pass = 0 {
        didSet { passes.note(pass) }
    }
    /// When the pass began. Deadlines use this value, because reading the clock costs more than the steps
    /// between.
    private var passBegan = DispatchTime.now()
    /// The number of passes, for ``ConnectionWatch``.
    private let passes = PassCount()
    /// The number of responses created in this pass, which the next pass sends, and of bodies that are
    /// incomplete after a piece.
    private var unfinished = 0

    /// Throws `cannotBind` when the process has no file descriptors left.
    init(_ common: ServerCommon) throws(GatewayError) {
        self.common = common
        wake = try WakePipe()
    }

    /// Passes a listening socket to the library and takes ownership of it.
    func open(_ socket: Int32) throws(GatewayError) {
        var options = countersign_mhd_options(
            // Includes closing connections that still have a descriptor.
            connection_limit: UInt32(
                common.limits.connections + ConnectionWatch.mostLeaving(common.limits.connections)),
            idle_seconds: UInt32(common.limits.idleSeconds),
            header_bytes: common.limits.headerBytes + 8 * 1024,
            accept: acceptConnection, handler: serveRequest, request_line: beginRequest,
            completed: endRequest, connection_changed: changeConnection,
            certificate: common.certificates == nil ? nil : chooseCertificate,
            context: Unmanaged.passUnretained(self).toOpaque())
        daemon = countersign_mhd_start(socket, &options)
        guard daemon != nil else {
            throw GatewayError(
                .cannotBind,
                "no file descriptors are left: \(String(cString: strerror(errno))); raise the limit")
        }
    }

    /// Undoes `open` before the loop was started.
    func abandon() {
        if let daemon { MHD_stop_daemon(daemon) }
    }

    func start() {
        let thread = Thread { [self] in run() }
        thread.name = "http"
        thread.start()
    }

    /// Stops accepting connections. Requests that have begun get `graceSeconds` to complete.
    func beginStop(graceSeconds: Double) {
        stopGraceSeconds.withLock { $0 = graceSeconds }
        wake.signal()
    }

    func waitUntilStopped() { hasEnded.wait() }

    private func run() {
        guard let daemon else { return }
        var deadline: DispatchTime?
        var ready = countersign_mhd_ready()
        var isWoken = false
        while true {
            // Data that one pass has received may be read in the next one, and no event announces it.
            let allWait = waiting + streaming > 0 && unfinished == 0 && !isWoken
            isWoken =
                countersign_mhd_wait(
                    daemon, wake.reading, longestWait, allWait ? 1 : 0, &ready) != 0
            for ended in wake.rearm() { ended.exchange.isReady = true }
            pass += 1
            passBegan = .now()
            unfinished = 0
            countersign_mhd_pass(daemon, &ready)
            if !begun.isEmpty {
                common.together {
                    for (exchange, start) in begun {
                        let ended = EndedRequest(exchange: exchange)
                        start { [wake] in wake.signal(ended) }
                    }
                }
                begun.removeAll(keepingCapacity: true)
            }
            if pass % Self.passesBetweenLooks == 0 { common.connections.lookForStuck(of: passes) }
            guard let grace = stopGraceSeconds.withLock({ $0 }) else { continue }
            if deadline == nil {
                isDraining = true
                let listening = MHD_quiesce_daemon(daemon)
                if listening >= 0 { close(listening) }
                deadline = .now() + grace
            }
            // Requests that wait for a response are completed first.
            if inFlight == 0 { break }
            if let deadline, DispatchTime.now() > deadline { common.connections.closeThoseStillSending() }
        }
        MHD_stop_daemon(daemon)
        hasEnded.signal()
    }

    /// Milliseconds. New data of a stream wakes no loop, so streams are polled.
    private var longestWait: Int32 { isDraining ? 50 : streaming > 0 ? 10 : 1_000 }

    // MARK: Called by libmicrohttpd

    fileprivate func begin(uri: UnsafePointer<CChar>, connection: OpaquePointer) -> Exchange {
        inFlight += 1
        let watched = countersign_mhd_socket_context(connection)
            .map { Unmanaged<WatchedConnection>.fromOpaque($0).takeUnretainedValue() }
        watched?.enter(.header, at: passBegan)
        let exchange = Exchange(connection: connection, uri: uri, watched: watched, memory: common.memory)
        watched?.request = exchange
        return exchange
    }

    fileprivate func end(_ exchange: Exchange) {
        exchange.watched?.request = nil
        exchange.watched?.enter(.idle, at: passBegan)
        if exchange.phase == .waiting { waiting -= 1 }
        if exchange.isStreaming {
            streaming -= 1
            common.giveStream()
        }
        _ = unlist(exchange)
        if !exchange.isObserved {
            common.observer.requestEnded(exchange.record(nil, trace: nil, at: common.service.nowMilliseconds))
        }
        inFlight -= 1
    }

    fileprivate func connectionChanged(
        _ connection: OpaquePointer, context: UnsafeMutablePointer<UnsafeMutableRawPointer?>, isOpen: Bool
    ) {
        if isOpen {
            let address = Self.text { countersign_mhd_client(connection, $0, $1) }
            let watched = WatchedConnection(
                socket: countersign_mhd_socket(connection), address: address, unit: unit(of: address),
                certificates: common.certificates, passes: passes)
            common.connections.add(watched)
            context.pointee = Unmanaged.passRetained(watched).toOpaque()
        } else if let pointer = context.pointee {
            let watched = Unmanaged<WatchedConnection>.fromOpaque(pointer).takeRetainedValue()
            context.pointee = nil
            if let exchange = watched.request as? Exchange {
                // The library reports no end for a request whose parameters did not fit its memory.
                Unmanaged.passUnretained(exchange).release()
                end(exchange)
            }
            common.connections.remove(watched)
        }
    }

    fileprivate func admits(_ address: UnsafePointer<sockaddr>) -> Bool {
        common.connections.admits(unit(of: Self.text { countersign_mhd_address(address, $0, $1) }))
    }

    /// The address or network whose connections are counted together; nil for trusted proxies.
    private func unit(of address: String) -> NetworkAddress? {
        ClientAddress.isTrusted(address, common.trustedProxies) ? nil : NetworkAddress(address)?.limitedUnit
    }

    private static func text(_ write: (UnsafeMutablePointer<CChar>, Int) -> Void) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { text in
            guard let start = text.baseAddress else { return "" }
            write(start, text.count)
            return String(cString: start)
        }
    }

    /// A few hundredths of a second in a busy loop. Other loops are checked by the watch's timer.
    private static let passesBetweenLooks = 1_024

    fileprivate func receive(
        _ exchange: Exchange, method: UnsafePointer<CChar>, version: UnsafePointer<CChar>,
        upload: UnsafePointer<CChar>?, size: UnsafeMutablePointer<Int>
    ) -> MHD_Result {
        switch exchange.phase {
        case .header:
            exchange.watched?.enter(.body, at: passBegan)
            exchange.phase = .body
            if let refusal = exchange.readHeader(method: method, version: version, service: common.service) {
                return send(refusal, exchange)
            }
            return .YES
        case .body:
            if size.pointee > 0 {
                if exchange.lastPiece != pass { unfinished += 1 }
                exchange.lastPiece = pass
                let fits = exchange.append(
                    UnsafeRawBufferPointer(start: upload, count: size.pointee), limits: common.limits,
                    makeRoom: makeRoom)
                size.pointee = 0
                list(exchange)
                return fits ? .YES : .NO
            }
            if exchange.lastPiece == pass { unfinished -= 1 }
            exchange.watched?.enter(.handling, at: passBegan)
            return respond(exchange)
        case .waiting:
            guard exchange.isReady, let response = exchange.poll?() else {
                let isAbandoned =
                    exchange.request?.endsWithPeer == true
                    && exchange.watched?.isAbandoned(at: passBegan) == true
                return isAbandoned ? .NO : .YES
            }
            exchange.poll = nil
            exchange.phase = .answered
            waiting -= 1
            return send(response, exchange)
        case .answered: return .YES
        }
    }

    private func makeRoom() -> Bool { common.holders.makeRoom() }

    /// Allows the memory to be reclaimed while the client sends or reads slowly.
    private func list(_ exchange: Exchange) {
        guard exchange.held.bytes > MemoryHolders.untouched, let watched = exchange.watched else { return }
        exchange.isListed = true
        common.holders.add(exchange.held, of: watched)
    }

    /// Protects the memory from being reclaimed. Returns false if that has already happened.
    private func unlist(_ exchange: Exchange) -> Bool {
        guard exchange.isListed else { return true }
        exchange.isListed = false
        return common.holders.remove(exchange.held)
    }

    private func respond(_ exchange: Exchange) -> MHD_Result {
        if let refusal = exchange.finishBody(
            limits: common.limits, makeRoom: makeRoom)
        {
            return send(refusal, exchange)
        }
        // The memory is in use from this point, so it cannot be reclaimed.
        guard unlist(exchange) else { return send(exchange.noRoom, exchange) }
        guard let request = exchange.request else { return .NO }
        let outcome = common.service.outcome(
            of: request, largestBody: exchange.largestBody, holding: exchange.held)
        switch outcome {
        case .answer(let response):
            return send(response, exchange)
        case .later(let start, let poll):
            exchange.poll = poll
            exchange.phase = .waiting
            waiting += 1
            begun.append((exchange, start))
            return .YES
        }
    }

    private func send(_ answer: HTTPResponse, _ exchange: Exchange) -> MHD_Result {
        let response = common.service.decorated(affordable(answer, exchange), for: exchange.request)
        let trace = common.service.trace(of: exchange.request)
        exchange.isObserved = true
        unfinished += 1
        common.observer.requestEnded(
            exchange.record(response, trace: trace, at: common.service.nowMilliseconds))
        guard let created = created(response, exchange) else { return .NO }
        defer { MHD_destroy_response(created) }
        for (name, value) in response.headers { Self.add(name, value, to: created) }
        if let request = exchange.request {
            for (name, value) in common.service.commonFields(of: request, trace: trace) {
                Self.add(name, value, to: created)
            }
        }
        if response.closes || isDraining { Self.add("Connection", "close", to: created) }
        return MHD_queue_response(exchange.connection, UInt32(response.status), created)
    }

    /// Passes C strings directly: bridging `String` arguments would copy them to arrays first.
    private static func add(_ name: String, _ value: String, to response: OpaquePointer) {
        name.withCString { name in
            value.withCString { value in _ = MHD_add_response_header(response, name, value) }
        }
    }

    /// Returns the response, or 503 if there is no memory for it. Frees the body of the request.
    ///
    /// Only responses to requests that changed nothing may be replaced, because the client repeats a request
    /// after 503.
    private func affordable(_ response: HTTPResponse, _ exchange: Exchange) -> HTTPResponse {
        exchange.noteBody()
        exchange.letGo()
        _ = unlist(exchange)
        if response.stream != nil { return common.takeStream() ? response : exchange.noRoom }
        exchange.watched?.enter(.answering(bytes: response.body.count), at: passBegan)
        guard response.body.count > MemoryHolders.untouched, !response.isShared else { return response }
        if !exchange.hold(response.body.count, makeRoom: makeRoom) {
            guard !response.changesNothing, exchange.request?.isSafe == false else { return exchange.noRoom }
            exchange.held.takeAnyhow(response.body.count)
        }
        list(exchange)
        return response
    }

    private func created(_ response: HTTPResponse, _ exchange: Exchange) -> OpaquePointer? {
        guard let stream = response.stream else {
            let body = HeldBody(response.body)
            return body.bytes.withUnsafeBytes {
                // The array has its own storage, which does not move while `body` lives.
                countersign_mhd_response(
                    $0.baseAddress, $0.count, freeBody, Unmanaged.passRetained(body).toOpaque())
            }
        }
        // Polled at each pass.
        streaming += 1
        exchange.isStreaming = true
        let context = Unmanaged.passRetained(StreamContext(stream: stream, loop: self)).toOpaque()
        return MHD_create_response_from_callback(UInt64.max, 32 * 1024, readStream, context, freeStream)
    }

    /// The return value for the library's callback.
    fileprivate func read(_ stream: ResponseStream, into buffer: UnsafeMutableBufferPointer<UInt8>) -> Int {
        if isDraining { return Self.endOfStream }
        do throws(ResponseStream.Failed) {
            let count = try stream.read(into: buffer) ?? Self.endOfStream
            if count != 0 { unfinished += 1 }
            return count
        } catch {
            return Self.endWithError
        }
    }

    /// `MHD_CONTENT_READER_END_OF_STREAM` and `MHD_CONTENT_READER_END_WITH_ERROR`, which are casts in C.
    fileprivate static let endOfStream = -1
    fileprivate static let endWithError = -2
}

/// Keeps the bytes of a response alive while the library sends them.
private final class HeldBody {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }
}

private let freeBody: MHD_ContentReaderFreeCallback = { context in
    guard let context else { return }
    Unmanaged<HeldBody>.fromOpaque(context).release()
}

/// The context of the library's callbacks for a stream.
private final class StreamContext {
    let stream: ResponseStream
    let loop: ServerLoop

    init(stream: ResponseStream, loop: ServerLoop) {
        self.stream = stream
        self.loop = loop
    }
}

private let readStream: MHD_ContentReaderCallback = { context, _, buffer, size in
    guard let context, let buffer else { return ServerLoop.endWithError }
    let stream = Unmanaged<StreamContext>.fromOpaque(context).takeUnretainedValue()
    return buffer.withMemoryRebound(to: UInt8.self, capacity: size) { bytes in
        stream.loop.read(stream.stream, into: UnsafeMutableBufferPointer(start: bytes, count: size))
    }
}

private let freeStream: MHD_ContentReaderFreeCallback = { context in
    guard let context else { return }
    Unmanaged<StreamContext>.fromOpaque(context).release()
}

// The callbacks run on the loop's thread, which retains the loop, so its pointer is unretained. The library's
// context retains exchanges and watched connections between their first and last callback.

private let beginRequest:
    @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?) ->
        UnsafeMutableRawPointer? =
        { context, uri, connection in
            guard let context, let uri, let connection else { return nil }
            let loop = Unmanaged<ServerLoop>.fromOpaque(context).takeUnretainedValue()
            return Unmanaged.passRetained(loop.begin(uri: uri, connection: connection)).toOpaque()
        }

private let acceptConnection: MHD_AcceptPolicyCallback = { context, address, _ in
    guard let context, let address else { return .NO }
    return Unmanaged<ServerLoop>.fromOpaque(context).takeUnretainedValue().admits(address) ? .YES : .NO
}

private let serveRequest: MHD_AccessHandlerCallback = { context, _, _, method, version, upload, size, slot in
    guard let context, let method, let version, let size, let pointer = slot?.pointee else { return .NO }
    let loop = Unmanaged<ServerLoop>.fromOpaque(context).takeUnretainedValue()
    let exchange = Unmanaged<Exchange>.fromOpaque(pointer).takeUnretainedValue()
    return loop.receive(exchange, method: method, version: version, upload: upload, size: size)
}

private let endRequest: MHD_RequestCompletedCallback = { context, _, slot, _ in
    guard let context, let slot, let pointer = slot.pointee else { return }
    slot.pointee = nil
    let loop = Unmanaged<ServerLoop>.fromOpaque(context).takeUnretainedValue()
    loop.end(Unmanaged<Exchange>.fromOpaque(pointer).takeRetainedValue())
}

private let chooseCertificate: @convention(c) (UnsafeMutableRawPointer?) -> OpaquePointer? = { context in
    context.flatMap {
        Unmanaged<WatchedConnection>.fromOpaque($0).takeUnretainedValue().certificates?.current
    }
}

private let changeConnection: MHD_NotifyConnectionCallback = { context, connection, slot, what in
    guard let context, let connection, let slot else { return }
    let loop = Unmanaged<ServerLoop>.fromOpaque(context).takeUnretainedValue()
    loop.connectionChanged(connection, context: slot, isOpen: countersign_mhd_is_open(what) != 0)
}
