internal import CHTTPServer
internal import CMicroHTTPD
internal import CountersignCore
internal import Foundation
package import GatewayModel

/// HTTP/1.1 on libmicrohttpd: framing, limits, deadlines, and requests that wait for the disk.
///
/// One thread runs the library pass by pass: a pass reads what has arrived on all connections, and what it found
/// complete is handed over after it, so that requests which came together share a commit. A handler runs on that
/// thread and must not block. A request that waits is asked again at every pass: the library would take two system
/// calls to suspend a connection, two more to resume it, and then read from it in vain.
package final class HTTPServer: @unchecked Sendable {
    /// Runs what it is given, which starts the work of all requests of one pass.
    package typealias Together = @Sendable (() -> Void) -> Void

    /// What becomes of a request that has been read.
    package let service: RequestService
    private let limits: GatewayLimits
    private let trustedProxies: [AddressRange]
    private let certificates: TLSCertificates?
    private let observer: any GatewayObserver
    private let together: Together
    private let connections: ConnectionWatch
    private let memory: BodyMemory
    private let control = Lock(Control())
    private let hasEnded = DispatchSemaphore(value: 0)
    private let wake: WakePipe

    /// What other threads ask of the server's.
    private struct Control {
        var isRunning = false
        /// Seconds that requests which have begun may still take to arrive; nil while the server is to go on.
        var stopGraceSeconds: Double?
    }

    // Touched by the server's thread only.
    private var inFlight = 0
    private var isDraining = false
    private var begun: [(@escaping @Sendable () -> Void) -> Void] = []
    private var waiting = 0
    private var pass = 0 {
        didSet { passes.withLock { $0 = pass } }
    }
    private let passes = Lock(0)
    /// Those that hold memory which could be taken from them.
    private var holders: [ObjectIdentifier: Exchange] = [:]
    private var streams = 0
    private var nextSearch = DispatchTime(uptimeNanoseconds: 0)
    /// Answers that this pass has made, which the next one sends, and bodies of which it has brought a piece.
    private var unfinished = 0

    /// Throws `cannotBind` when the process has no file descriptors left.
    package init(
        limits: GatewayLimits, memory: BodyMemory? = nil, trustedProxies: [AddressRange] = [],
        certificates: TLSCertificates? = nil, observer: any GatewayObserver,
        together: @escaping Together = { $0() }, handler: @escaping RequestService.Handler
    ) throws(GatewayError) {
        self.limits = limits
        let memory = memory ?? BodyMemory(limit: limits.bodyMemoryBytes)
        self.memory = memory
        connections = ConnectionWatch(limits: limits)
        self.trustedProxies = trustedProxies
        self.certificates = certificates
        self.observer = observer
        wake = try WakePipe()
        self.together = together
        service = RequestService(
            limits: limits, memory: memory, trustedProxies: trustedProxies, observer: observer,
            handler: handler)
    }

    /// Binds and starts to serve. Returns the port, which is a free one when `port` was 0.
    package func start(host: String, port: UInt16) throws(GatewayError) -> UInt16 {
        var options = countersign_mhd_options(
            // More than may be, because those that are told to go are gone a little later.
            connection_limit: UInt32(limits.connections + Self.leavingConnections),
            idle_seconds: UInt32(limits.idleSeconds), header_bytes: limits.headerBytes + 8 * 1024,
            accept: acceptConnection, handler: serveRequest, request_line: beginRequest,
            completed: endRequest,
            connection_changed: changeConnection,
            certificate: certificates == nil ? nil : chooseCertificate,
            context: Unmanaged.passUnretained(self).toOpaque())
        errno = 0
        guard let started = countersign_mhd_start(host, port, &options) else {
            let why = errno == 0 ? "not an IPv4 or IPv6 address" : String(cString: strerror(errno))
            throw GatewayError(
                .cannotBind,
                "cannot listen on \(host) port \(port): \(why)")
        }
        let daemon = Daemon(pointer: started)
        control.withLock { $0.isRunning = true }
        connections.start(passes: { [passes] in passes.withLock { $0 } })
        let bound = countersign_mhd_port(started)
        let thread = Thread { [self] in run(daemon.pointer) }
        thread.name = "http"
        thread.start()
        return bound
    }

    /// Stops accepting, answers every request that has begun, and closes.
    package func stop(graceSeconds: Double) {
        let wasRunning = control.withLock { control in
            control.stopGraceSeconds = graceSeconds
            defer { control.isRunning = false }
            return control.isRunning
        }
        guard wasRunning else { return }
        wake.signal()
        hasEnded.wait()
        connections.stop()
    }

    private func run(_ daemon: OpaquePointer) {
        var deadline: DispatchTime?
        var ready = countersign_mhd_ready()
        let hasEnded: @Sendable () -> Void = { [wake] in wake.signal() }
        while true {
            countersign_mhd_wait(
                daemon, wake.reading, isDraining ? 50 : 1_000, waiting > 0 && unfinished == 0 ? 1 : 0, &ready)
            wake.rearm()
            pass += 1
            unfinished = 0
            countersign_mhd_pass(daemon, &ready)
            if !begun.isEmpty {
                together { for start in begun { start(hasEnded) } }
                begun.removeAll(keepingCapacity: true)
            }
            guard let grace = control.withLock({ $0.stopGraceSeconds }) else { continue }
            if deadline == nil {
                isDraining = true
                let listening = MHD_quiesce_daemon(daemon)
                if listening >= 0 { close(listening) }
                deadline = .now() + grace
            }
            // What waits is answered first.
            if inFlight == 0 { break }
            if let deadline, DispatchTime.now() > deadline { connections.closeThoseStillSending() }
        }
        MHD_stop_daemon(daemon)
        self.hasEnded.signal()
    }

    /// Open connections.
    package var connectionCount: Int { connections.count }

    // MARK: Called by libmicrohttpd

    fileprivate func begin(uri: UnsafePointer<CChar>, connection: OpaquePointer) -> Exchange {
        inFlight += 1
        let watched = countersign_mhd_socket_context(connection)
            .map { Unmanaged<WatchedConnection>.fromOpaque($0).takeUnretainedValue() }
        watched?.enter(.header)
        let exchange = Exchange(connection: connection, uri: uri, watched: watched, memory: memory)
        watched?.request = exchange
        return exchange
    }

    fileprivate func end(_ exchange: Exchange) {
        exchange.watched?.request = nil
        exchange.watched?.enter(.idle)
        if exchange.phase == .waiting || exchange.isStreaming { waiting -= 1 }
        if exchange.isStreaming { streams -= 1 }
        holders[ObjectIdentifier(exchange)] = nil
        if !exchange.isObserved { observer.requestEnded(exchange.record(nil, trace: nil)) }
        inFlight -= 1
    }

    fileprivate func connectionChanged(
        _ connection: OpaquePointer, context: UnsafeMutablePointer<UnsafeMutableRawPointer?>, isOpen: Bool
    ) {
        if isOpen {
            let address = Self.text { countersign_mhd_client(connection, $0, $1) }
            let watched = WatchedConnection(
                socket: countersign_mhd_socket(connection), address: address, unit: unit(of: address),
                certificates: certificates)
            connections.add(watched)
            context.pointee = Unmanaged.passRetained(watched).toOpaque()
        } else if let pointer = context.pointee {
            let watched = Unmanaged<WatchedConnection>.fromOpaque(pointer).takeRetainedValue()
            context.pointee = nil
            if let exchange = watched.request as? Exchange {
                // The library does not say that a request has ended whose parameters did not fit its memory.
                Unmanaged.passUnretained(exchange).release()
                end(exchange)
            }
            connections.remove(watched)
        }
    }

    fileprivate func admits(_ address: UnsafePointer<sockaddr>) -> Bool {
        connections.admits(unit(of: Self.text { countersign_mhd_address(address, $0, $1) }))
    }

    /// Whose connections count together; nil for those of a trusted proxy.
    private func unit(of address: String) -> NetworkAddress? {
        ClientAddress.isTrusted(address, trustedProxies) ? nil : NetworkAddress(address)?.limitedUnit
    }

    private static func text(_ write: (UnsafeMutablePointer<CChar>, Int) -> Void) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { text in
            guard let start = text.baseAddress else { return "" }
            write(start, text.count)
            return String(cString: start)
        }
    }

    /// Takes the memory of the slowest: a small part of all at once, so that a flood does not cost a search for each piece.
    private func makeRoom() -> Bool {
        let now = DispatchTime.now()
        guard now >= nextSearch else { return false }
        var found: [(exchange: Exchange, rate: Double)] = []
        for exchange in holders.values where exchange.held.bytes > Self.untouched {
            // Who has just begun may be the fastest of all.
            guard let age = exchange.watched?.age(at: now), age >= 1 else { continue }
            found.append((exchange, Double(exchange.held.bytes) / age))
        }
        var room = limits.bodyMemoryBytes / 16
        for (exchange, _) in found.sorted(by: { $0.rate < $1.rate }) where room > 0 {
            room -= exchange.held.bytes
            holders[ObjectIdentifier(exchange)] = nil
            if let watched = exchange.watched { connections.close(watched) }
            exchange.evict()
        }
        if found.isEmpty { nextSearch = now + .milliseconds(100) }
        return !found.isEmpty
    }

    /// What nobody is closed for: the body of a device that has little to say over a slow line.
    private static let untouched = 4 * 1024
    private static let leavingConnections = 128
    /// Answers that go on: each may hold some pages.
    private static let mostStreams = 64

    fileprivate func receive(
        _ exchange: Exchange, method: UnsafePointer<CChar>, version: UnsafePointer<CChar>,
        upload: UnsafePointer<CChar>?, size: UnsafeMutablePointer<Int>
    ) -> MHD_Result {
        switch exchange.phase {
        case .header:
            exchange.watched?.enter(.body)
            exchange.phase = .body
            if let refusal = exchange.readHeader(method: method, version: version, service: service) {
                return send(refusal, exchange)
            }
            return .YES
        case .body:
            if size.pointee > 0 {
                if exchange.lastPiece != pass { unfinished += 1 }
                exchange.lastPiece = pass
                let fits = exchange.append(
                    UnsafeRawBufferPointer(start: upload, count: size.pointee), limits: limits,
                    makeRoom: makeRoom)
                size.pointee = 0
                if exchange.held.bytes > Self.untouched { holders[ObjectIdentifier(exchange)] = exchange }
                return fits ? .YES : .NO
            }
            if exchange.lastPiece == pass { unfinished -= 1 }
            exchange.watched?.enter(.handling)
            return respond(exchange)
        case .waiting:
            guard let response = exchange.poll?() else { return .YES }
            exchange.poll = nil
            exchange.phase = .answered
            waiting -= 1
            return send(response, exchange)
        case .answered: return .YES
        }
    }

    private func respond(_ exchange: Exchange) -> MHD_Result {
        if let refusal = exchange.finishBody(limits: limits, makeRoom: makeRoom) {
            return send(refusal, exchange)
        }
        // From here on its memory is in use.
        holders[ObjectIdentifier(exchange)] = nil
        guard let request = exchange.request else { return .NO }
        let outcome = service.outcome(
            of: request, largestBody: exchange.largestBody, holding: exchange.held)
        switch outcome {
        case .answer(let response):
            return send(response, exchange)
        case .later(let start, let poll):
            exchange.poll = poll
            exchange.phase = .waiting
            waiting += 1
            begun.append(start)
            return .YES
        }
    }

    private func send(_ answer: HTTPResponse, _ exchange: Exchange) -> MHD_Result {
        let response = affordable(answer, exchange)
        let trace = exchange.request?.header("traceparent").flatMap { TraceParent($0) }
        exchange.isObserved = true
        unfinished += 1
        observer.requestEnded(exchange.record(response, trace: trace))
        guard let created = created(response, exchange) else { return .NO }
        defer { MHD_destroy_response(created) }
        for (name, value) in response.headers { MHD_add_response_header(created, name, value) }
        if let request = exchange.request {
            for (name, value) in service.commonFields(of: request, trace: trace) {
                MHD_add_response_header(created, name, value)
            }
        }
        if response.closes || isDraining {
            MHD_add_response_header(created, "Connection", "close")
        }
        return MHD_queue_response(exchange.connection, UInt32(response.status), created)
    }

    /// The answer, or the refusal of one that there is no memory for. The body of its request is let go for it.
    ///
    /// Only what changed nothing is refused: who is told that nothing was stored sends it again.
    private func affordable(_ response: HTTPResponse, _ exchange: Exchange) -> HTTPResponse {
        exchange.noteBody()
        exchange.letGo()
        holders[ObjectIdentifier(exchange)] = nil
        if response.stream != nil { return streams < Self.mostStreams ? response : exchange.noRoom }
        exchange.watched?.enter(.answering(bytes: response.body.count))
        guard response.body.count > Self.untouched, !response.isShared else { return response }
        if !exchange.hold(response.body.count, makeRoom: makeRoom) {
            guard !response.changesNothing, exchange.request?.isSafe == false else { return exchange.noRoom }
            exchange.held.takeAnyhow(response.body.count)
        }
        holders[ObjectIdentifier(exchange)] = exchange
        return response
    }

    private func created(_ response: HTTPResponse, _ exchange: Exchange) -> OpaquePointer? {
        guard let stream = response.stream else {
            let body = HeldBody(response.body)
            return body.bytes.withUnsafeBytes {
                // The array has storage of its own, which stays where it is for as long as `body` lives.
                countersign_mhd_response(
                    $0.baseAddress, $0.count, freeBody, Unmanaged.passRetained(body).toOpaque())
            }
        }
        // A stream waits like a request does: it is asked at each pass.
        waiting += 1
        streams += 1
        exchange.isStreaming = true
        let context = Unmanaged.passRetained(StreamContext(stream: stream, server: self)).toOpaque()
        return MHD_create_response_from_callback(UInt64.max, 32 * 1024, readStream, context, freeStream)
    }

    /// What the library's callback answers.
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

/// The bytes of an answer, for as long as the library sends them.
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

/// A stream and the server that sends it, for the library to hand back.
private final class StreamContext {
    let stream: ResponseStream
    let server: HTTPServer

    init(stream: ResponseStream, server: HTTPServer) {
        self.stream = stream
        self.server = server
    }
}

private let readStream: MHD_ContentReaderCallback = { context, _, buffer, size in
    guard let context, let buffer else { return HTTPServer.endWithError }
    let stream = Unmanaged<StreamContext>.fromOpaque(context).takeUnretainedValue()
    return buffer.withMemoryRebound(to: UInt8.self, capacity: size) { bytes in
        stream.server.read(stream.stream, into: UnsafeMutableBufferPointer(start: bytes, count: size))
    }
}

private let freeStream: MHD_ContentReaderFreeCallback = { context in
    guard let context else { return }
    Unmanaged<StreamContext>.fromOpaque(context).release()
}

/// Carries the library's handle to the server's thread.
private struct Daemon: @unchecked Sendable {
    let pointer: OpaquePointer
}

// The callbacks run on the server's thread, which holds the server, so its pointer is unretained;
// an exchange and a watched connection are retained by the library between their first and last callback.

private let beginRequest:
    @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?) ->
        UnsafeMutableRawPointer? =
        { context, uri, connection in
            guard let context, let uri, let connection else { return nil }
            let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
            return Unmanaged.passRetained(server.begin(uri: uri, connection: connection)).toOpaque()
        }

private let acceptConnection: MHD_AcceptPolicyCallback = { context, address, _ in
    guard let context, let address else { return .NO }
    return Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue().admits(address) ? .YES : .NO
}

private let serveRequest: MHD_AccessHandlerCallback = { context, _, _, method, version, upload, size, slot in
    guard let context, let method, let version, let size, let pointer = slot?.pointee else { return .NO }
    let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
    let exchange = Unmanaged<Exchange>.fromOpaque(pointer).takeUnretainedValue()
    return server.receive(exchange, method: method, version: version, upload: upload, size: size)
}

private let endRequest: MHD_RequestCompletedCallback = { context, _, slot, _ in
    guard let context, let slot, let pointer = slot.pointee else { return }
    slot.pointee = nil
    let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
    server.end(Unmanaged<Exchange>.fromOpaque(pointer).takeRetainedValue())
}

private let chooseCertificate: @convention(c) (UnsafeMutableRawPointer?) -> OpaquePointer? = { context in
    context.flatMap {
        Unmanaged<WatchedConnection>.fromOpaque($0).takeUnretainedValue().certificates?.current
    }
}

private let changeConnection: MHD_NotifyConnectionCallback = { context, connection, slot, what in
    guard let context, let connection, let slot else { return }
    let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
    server.connectionChanged(connection, context: slot, isOpen: countersign_mhd_is_open(what) != 0)
}
