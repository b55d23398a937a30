internal import CHTTPServer
internal import CountersignCore
internal import GatewayModel

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// A TCP connection and its current request. Belongs to one loop, which reuses the object.
final class Connection {
    enum Phase {
        case closed
        case handshake
        /// The head of a request arrives, or the connection is idle.
        case head
        case body
        case handling
        case sending
        /// The response was sent and the client's input is discarded. Closing a socket with unread input
        /// would reset the connection, and the client might not see the response.
        case lingering
    }

    enum Transfer: Equatable {
        case bytes(Int)
        case wouldBlock
        /// The client has closed the connection or its sending half.
        case ended
        case failed
    }

    let index: Int
    /// Identifies one use of this object.
    private(set) var generation: UInt64 = 0

    private(set) var socket: Int32 = -1
    private(set) var peer: Peer
    private(set) var tls: OpaquePointer?
    var phase = Phase.closed
    var canRead = false
    /// Whether the handshake waits until the socket is writable.
    var wantsToWrite = false
    /// Whether the peer has closed the connection or its sending half, as reported by the poller.
    var hasHungUp = false
    /// Whether the loop continues with this connection in its next pass.
    var isReady = false

    var input = InputBuffer()
    /// Input that was read together with the end of a chunked body.
    private var nextInput = InputBuffer()
    var parser: HeadParser
    private var chunks: ChunkedBodyParser
    private let rules: HeadLimits
    /// The number of bytes of `input` that belong to the current request and were handled.
    private var used = 0
    /// The number of bytes of a body with Content-Length that were not received yet.
    private(set) var missing = 0
    /// The time of the request's first byte in nanoseconds; 0 before.
    var began: UInt64 = 0
    /// Identifies the request in its loop while the response is pending.
    var number: UInt64 = 0
    var request: HTTPRequest?
    var poll: (() -> HTTPResponse?)?
    private var fields: [HTTPField] = []
    private var unpackedBytes = 0
    /// The size of the body, which is freed before the response is sent.
    var bodyBytes = 0
    var isObserved = false
    private(set) var held: MemoryReservation
    private var holdsMemory = false
    /// Whether the memory may be reclaimed for other requests.
    var isListed = false

    var stream: ResponseStream?
    /// The time at which sending began, and the bytes to send since then. A stream that waits for data resets both.
    var (sendingBegan, sentBytes) = (UInt64(0), 0)
    var isChunked = false
    var closesAfterwards = false
    /// Whether the request was read completely before the response.
    var isWhole = false
    private var head: [UInt8] = []
    private var headStart = 0
    private var body: [UInt8] = []
    private var bodyStart = 0
    var discarded = 0

    init(index: Int, rules: HeadLimits, memory: BodyMemory) {
        self.index = index
        self.rules = rules
        parser = HeadParser(rules)
        chunks = ChunkedBodyParser(rules)
        held = MemoryReservation(memory)
        peer = Peer(socket: -1, at: 0)
    }

    func open(_ peer: Peer, tls: OpaquePointer?) {
        generation += 1
        self.peer = peer
        self.tls = tls
        socket = peer.socket
        phase = tls == nil ? .head : .handshake
        canRead = false
        wantsToWrite = false
        hasHungUp = false
        closesAfterwards = false
        discarded = 0
    }

    /// Frees everything except this object. The caller must first remove the peer from the table.
    func close(_ pool: inout BufferPool, memory: BodyMemory) {
        resetRequest(memory)
        used = 0
        input.clear(&pool)
        nextInput.clear(&pool)
        stream = nil
        head = []
        body = []
        (headStart, bodyStart) = (0, 0)
        if let tls { countersign_tls_free(tls) }
        tls = nil
        phase = .closed
        _ = systemClose(socket)
        socket = -1
    }

    // MARK: Sockets

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
        guard canRead else { return .wouldBlock }
        if let tls {
            let count = countersign_tls_read(tls, buffer.baseAddress, buffer.count)
            if count > 0 { return .bytes(count) }
            if count == 0 { return .ended }
            canRead = false
            return count == COUNTERSIGN_TLS_WAIT ? .wouldBlock : .failed
        }
        return readSocket(into: buffer)
    }

    /// Reads once, without decryption.
    func readSocket(into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
        while true {
            let count = recv(socket, buffer.baseAddress, buffer.count, 0)
            if count > 0 {
                // After a short read the socket has no more bytes, unless the client has closed.
                if count < buffer.count, !hasHungUp { canRead = false }
                return .bytes(count)
            }
            if count == 0 { return .ended }
            if errno == EINTR { continue }
            canRead = false
            return errno == EAGAIN || errno == EWOULDBLOCK ? .wouldBlock : .failed
        }
    }

    /// Writes two pieces as far as the socket accepts bytes. Returns the number of bytes, or -1 after a failure.
    private func write(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) -> Int {
        var done = 0
        let all = first.count + second.count
        while done < all {
            let rest = first.dropFirst(done)
            let other = second.dropFirst(max(0, done - first.count))
            var count: Int
            if let tls {
                let part = UnsafeRawBufferPointer(rebasing: rest.isEmpty ? other : rest)
                count = countersign_tls_write(tls, part.baseAddress, part.count)
                if count == COUNTERSIGN_TLS_WAIT { break }
            } else {
                count = writeSocket(
                    UnsafeRawBufferPointer(rebasing: rest), UnsafeRawBufferPointer(rebasing: other))
                if count < 0 {
                    if errno == EINTR { continue }
                    if errno == EAGAIN || errno == EWOULDBLOCK { break }
                }
            }
            if count <= 0 { return -1 }
            done += count
        }
        return done
    }

    private func writeSocket(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) -> Int {
        if second.isEmpty { return systemWrite(socket, first) }
        if first.isEmpty { return systemWrite(socket, second) }
        return withUnsafeTemporaryAllocation(of: iovec.self, capacity: 2) { parts in
            parts[0] = iovec(
                iov_base: UnsafeMutableRawPointer(mutating: first.baseAddress), iov_len: first.count)
            parts[1] = iovec(
                iov_base: UnsafeMutableRawPointer(mutating: second.baseAddress), iov_len: second.count)
            return writev(socket, parts.baseAddress, 2)
        }
    }

    var hasOutput: Bool { headStart < head.count || bodyStart < body.count }

    /// Sends a head and a body, and stores the bytes that the socket does not accept. Returns false after a failure.
    func send(_ head: UnsafeRawBufferPointer, _ body: [UInt8] = []) -> Bool {
        let sent = body.withUnsafeBytes { write(head, $0) }
        guard sent >= 0 else { return false }
        if sent < head.count {
            self.head = Array(head[sent...])
            headStart = 0
        }
        if sent < head.count + body.count {
            self.body = body
            bodyStart = max(0, sent - head.count)
        }
        return true
    }

    func flush() -> Bool {
        guard hasOutput else { return true }
        let sent = head.withUnsafeBytes { head in
            body.withUnsafeBytes { body in
                write(
                    UnsafeRawBufferPointer(rebasing: head[headStart...]),
                    UnsafeRawBufferPointer(rebasing: body[bodyStart...]))
            }
        }
        guard sent >= 0 else { return false }
        let ofHead = min(sent, head.count - headStart)
        headStart += ofHead
        bodyStart += sent - ofHead
        if !hasOutput {
            head = []
            body = []
            (headStart, bodyStart) = (0, 0)
        }
        return true
    }

    /// Whether the client may have sent more than the request that was answered.
    var hasUnreadInput: Bool { !isWhole || canRead || input.count > used || !nextInput.isEmpty }

    // MARK: Requests

    /// Creates the request from the head, which need not be complete.
    func makeRequest(nowMilliseconds: Int64) -> HTTPRequest {
        let bytes = input.bytes
        let target = parser.takeFields(of: bytes, to: &fields)
        let request = HTTPRequest(
            method: String(
                decoding: UnsafeRawBufferPointer(rebasing: bytes[parser.methodRange]), as: UTF8.self),
            path: target.path, query: target.query, fields: HeaderBlock(borrowing: fields),
            clientAddress: peer.address, receivedMilliseconds: nowMilliseconds)
        request.peer = peer
        self.request = request
        return request
    }

    func beginBody() {
        used = parser.count
        switch parser.framing {
        case .none: missing = 0
        case .length(let length): missing = length
        case .chunked: chunks = ChunkedBodyParser(rules)
        }
    }

    enum BodyProgress: Equatable {
        case incomplete
        case complete
        case rejected(RequestFault)
        /// The connection must be closed without a response.
        case crumbled
        case tooLarge
        case noRoom
    }

    func readBody(makeRoom: () -> Bool) -> BodyProgress {
        let rest = UnsafeRawBufferPointer(rebasing: input.bytes[used...])
        var position = 0
        let progress = readBody(rest, &position, makeRoom)
        used += position
        return progress
    }

    /// Reads the body from bytes outside `input`. Stores the bytes after the body in `nextInput`.
    func readBody(
        _ bytes: UnsafeRawBufferPointer, _ pool: inout BufferPool, makeRoom: () -> Bool
    ) -> BodyProgress {
        var position = 0
        let progress = readBody(bytes, &position, makeRoom)
        if progress == .complete {
            nextInput.append(UnsafeRawBufferPointer(rebasing: bytes[position...]), &pool)
        }
        return progress
    }

    private func readBody(
        _ bytes: UnsafeRawBufferPointer, _ position: inout Int, _ makeRoom: () -> Bool
    ) -> BodyProgress {
        guard parser.framing == .chunked else {
            let part = min(missing, bytes.count)
            position += part
            missing -= part
            let progress = append(
                UnsafeRawBufferPointer(rebasing: bytes[..<part]), expecting: missing, makeRoom)
            return progress == .complete && missing > 0 ? .incomplete : progress
        }
        while true {
            switch chunks.next(bytes, from: &position) {
            case .content(let range):
                let progress = append(
                    UnsafeRawBufferPointer(rebasing: bytes[range]), expecting: 0, makeRoom)
                if progress != .complete { return progress }
            case .incomplete: return .incomplete
            case .end: return .complete
            case .rejected(let fault): return .rejected(fault)
            case .crumbled: return .crumbled
            }
        }
    }

    private func append(
        _ bytes: UnsafeRawBufferPointer, expecting more: Int, _ makeRoom: () -> Bool
    ) -> BodyProgress {
        guard let request, !bytes.isEmpty else { return .complete }
        guard request.body.count + bytes.count <= rules.bodyBytes else { return .tooLarge }
        guard hold(bytes.count, makeRoom) else { return .noRoom }
        if request.body.isEmpty { request.body.reserveCapacity(bytes.count + more) }
        request.body.append(contentsOf: bytes)
        return .complete
    }

    func hold(_ count: Int, _ makeRoom: () -> Bool) -> Bool {
        holdsMemory = true
        return held.take(count) || !held.isEvicted && makeRoom() && held.take(count)
    }

    /// Reserves memory for a compressed body's content. Returns a rejection for a truncated body or without memory.
    func prepareUnpacking(_ limits: GatewayLimits, makeRoom: () -> Bool) -> HTTPResponse? {
        guard let request, request.isCompressed else { return nil }
        do throws(Gunzip.Failure) {
            unpackedBytes = try Gunzip.size(of: request.body, limits: limits)
        } catch {
            return error.response(request, limits)
        }
        return hold(unpackedBytes, makeRoom) ? nil : .overloaded(request)
    }

    var largestBody: Int { max(request?.body.count ?? 0, unpackedBytes) }

    func freeBody() {
        bodyBytes = request?.body.count ?? 0
        request?.body = []
        if holdsMemory { held.giveAll() }
    }

    func endRequest(_ pool: inout BufferPool, memory: BodyMemory) {
        resetRequest(memory)
        input.drop(used)
        used = 0
        input.release(&pool)
        // `nextInput` has bytes only if all bytes of `input` belonged to the request.
        if !nextInput.isEmpty { swap(&input, &nextInput) }
        phase = .head
    }

    private func resetRequest(_ memory: BodyMemory) {
        request = nil
        poll = nil
        parser.reset()
        began = 0
        number = 0
        missing = 0
        unpackedBytes = 0
        bodyBytes = 0
        isObserved = false
        guard holdsMemory else { return }
        holdsMemory = false
        // ``LargeRequests`` may still use the reservation after the request has ended.
        if !isKnownUniquelyReferenced(&held) || held.isEvicted {
            held = MemoryReservation(memory)
        } else {
            held.giveAll()
        }
    }
}

extension HTTPResponse {
    static func overloaded(_ request: HTTPRequest?) -> HTTPResponse {
        .failure(
            503, "overloaded",
            "the gateway is receiving more data than it can hold; nothing was stored, send it again",
            requestID: request?.id
        ).with("Retry-After", "1")
    }
}

// Within `Connection`, `close` and `write` are its methods instead of the functions of the C library.
private func systemClose(_ socket: Int32) -> Int32 { close(socket) }
private func systemWrite(_ socket: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    write(socket, bytes.baseAddress, bytes.count)
}
