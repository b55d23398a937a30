internal import CMicroHTTPD
internal import CountersignCore
internal import Foundation

/// What a handler makes of a request.
package enum HTTPOutcome {
    /// Answer now.
    case answer(HTTPResponse)
    /// Answer when `start` has called its argument, once, from any thread; then `finish` makes the answer.
    case later(start: (@escaping @Sendable () -> Void) -> Void, finish: () -> HTTPResponse)
}

/// HTTP/1.1 on libmicrohttpd: framing, limits, deadlines, and requests that wait for the disk.
///
/// A handler runs on one of the server's threads and must not block. A request that waits is suspended, so a thread
/// serves others meanwhile.
package final class HTTPServer: @unchecked Sendable {
    package typealias Handler = @Sendable (HTTPRequest) -> HTTPOutcome

    private let limits: GatewayLimits
    private let observer: any GatewayObserver
    private let handler: Handler
    private let connections = ConnectionWatch()
    // Guards `daemon`'s life: set by `start`, taken by `stop`. `state` counts requests that are not answered yet.
    private let state = Lock(State())
    private let idle = NSCondition()

    private struct State {
        var daemon: OpaquePointer?
        var inFlight = 0
        var isDraining = false
    }

    package init(
        limits: GatewayLimits, observer: any GatewayObserver, handler: @escaping Handler
    ) {
        self.limits = limits
        self.observer = observer
        self.handler = handler
    }

    /// Binds and starts to serve.
    ///
    /// - Returns: The port, which is a free one when `port` was 0.
    package func start(host: String, port: UInt16, threads: Int) throws(GatewayError) -> UInt16 {
        var options = countersign_mhd_options(
            threads: UInt32(threads), connection_limit: UInt32(limits.connections),
            connections_per_address: UInt32(limits.connectionsPerAddress),
            idle_seconds: UInt32(limits.idleSeconds), header_bytes: limits.headerBytes + 8 * 1024,
            handler: serveRequest, request_line: beginRequest, completed: endRequest,
            connection_changed: changeConnection, context: Unmanaged.passUnretained(self).toOpaque())
        errno = 0
        guard let daemon = countersign_mhd_start(host, port, &options) else {
            let why = errno == 0 ? "not an IPv4 or IPv6 address" : String(cString: strerror(errno))
            throw GatewayError(
                .cannotBind,
                "cannot listen on \(host) port \(port): \(why); choose another with --host or --port")
        }
        state.withLock { $0.daemon = daemon }
        connections.start(limits: limits)
        return countersign_mhd_port(daemon)
    }

    /// Stops accepting, answers every request that has begun, and closes.
    ///
    /// - Parameter graceSeconds: How long a request may still take to arrive; one that is complete is always answered.
    package func stop(graceSeconds: Double) {
        guard
            let daemon = state.withLock({ state -> OpaquePointer? in
                state.isDraining = true
                defer { state.daemon = nil }
                return state.daemon
            })
        else { return }
        let listening = MHD_quiesce_daemon(daemon)
        if listening >= 0 { close(listening) }
        let deadline = Date(timeIntervalSinceNow: graceSeconds)
        idle.lock()
        while state.withLock({ $0.inFlight }) > 0, Date() < deadline { _ = idle.wait(until: deadline) }
        idle.unlock()
        // Whoever still sends is cut off; what waits for the disk is about to be answered, and the library aborts
        // when it is stopped with suspended connections.
        connections.closeThoseStillSending()
        idle.lock()
        while state.withLock({ $0.inFlight }) > 0 { _ = idle.wait(until: Date(timeIntervalSinceNow: 0.05)) }
        idle.unlock()
        connections.stop()
        MHD_stop_daemon(daemon)
    }

    /// Open connections.
    package var connectionCount: Int { connections.count }

    // MARK: Called by libmicrohttpd

    fileprivate func begin(uri: UnsafePointer<CChar>, connection: OpaquePointer) -> Exchange {
        state.withLock { $0.inFlight += 1 }
        let watched = countersign_mhd_socket_context(connection)
            .map { Unmanaged<WatchedConnection>.fromOpaque($0).takeUnretainedValue() }
        watched?.enter(.header)
        return Exchange(connection: connection, uri: String(cString: uri), watched: watched)
    }

    fileprivate func end(_ exchange: Exchange) {
        exchange.watched?.enter(.idle)
        if !exchange.isObserved { observer.requestEnded(exchange.record(nil, trace: nil)) }
        let remaining = state.withLock { state -> Int in
            state.inFlight -= 1
            return state.inFlight
        }
        if remaining == 0 {
            idle.lock()
            idle.broadcast()
            idle.unlock()
        }
    }

    fileprivate func connectionChanged(
        _ connection: OpaquePointer, context: UnsafeMutablePointer<UnsafeMutableRawPointer?>, isOpen: Bool
    ) {
        if isOpen {
            let watched = WatchedConnection(socket: countersign_mhd_socket(connection))
            connections.add(watched)
            context.pointee = Unmanaged.passRetained(watched).toOpaque()
        } else if let pointer = context.pointee {
            let watched = Unmanaged<WatchedConnection>.fromOpaque(pointer).takeRetainedValue()
            context.pointee = nil
            connections.remove(watched)
        }
    }

    fileprivate func receive(
        _ exchange: Exchange, method: UnsafePointer<CChar>, upload: UnsafePointer<CChar>?,
        size: UnsafeMutablePointer<Int>
    ) -> MHD_Result {
        switch exchange.phase {
        case .header:
            exchange.watched?.enter(.body)
            exchange.phase = .body
            if let refusal = exchange.readHeader(method: method, limits: limits) {
                return send(refusal, exchange)
            }
            return .YES
        case .body:
            if size.pointee > 0 {
                let fits = exchange.append(
                    UnsafeRawBufferPointer(start: upload, count: size.pointee), limits: limits)
                size.pointee = 0
                return fits ? .YES : .NO
            }
            exchange.watched?.enter(.handling)
            return respond(exchange)
        case .waiting:
            // Resumed: what it waited for has happened.
            let finish = exchange.finish
            exchange.finish = nil
            return send(finish?() ?? .text(500, "no answer"), exchange)
        }
    }

    private func respond(_ exchange: Exchange) -> MHD_Result {
        if let refusal = exchange.finishBody(limits: limits) { return send(refusal, exchange) }
        guard let request = exchange.request else { return .NO }
        switch handler(request) {
        case .answer(let response):
            return send(response, exchange)
        case .later(let start, let finish):
            exchange.finish = finish
            exchange.phase = .waiting
            let connection = Suspended(connection: exchange.connection)
            MHD_suspend_connection(exchange.connection)
            start { MHD_resume_connection(connection.connection) }
            return .YES
        }
    }

    private func send(_ response: HTTPResponse, _ exchange: Exchange) -> MHD_Result {
        let trace = exchange.request?.header("traceparent").flatMap { TraceParent($0) }
        exchange.isObserved = true
        observer.requestEnded(exchange.record(response, trace: trace))
        let created = response.body.withUnsafeBytes { body in
            MHD_create_response_from_buffer(
                body.count, UnsafeMutableRawPointer(mutating: body.baseAddress), .RESPMEM_MUST_COPY)
        }
        guard let created else { return .NO }
        defer { MHD_destroy_response(created) }
        for (name, value) in response.headers { MHD_add_response_header(created, name, value) }
        if let trace {
            let span = UInt64.random(in: 1...UInt64.max)
            MHD_add_response_header(created, "traceresponse", trace.response(spanID: span))
        }
        if let id = exchange.request?.id { MHD_add_response_header(created, "X-Request-Id", id) }
        if response.closes || state.withLock({ $0.isDraining }) {
            MHD_add_response_header(created, "Connection", "close")
        }
        return MHD_queue_response(exchange.connection, UInt32(response.status), created)
    }
}

/// Carries a suspended connection to the thread that resumes it; libmicrohttpd allows that from any thread.
private struct Suspended: @unchecked Sendable {
    let connection: OpaquePointer
}

// The callbacks run on libmicrohttpd's threads. `stop` ends them before the server goes, so its pointer is unretained;
// an exchange and a watched connection are retained by the library between their first and last callback.

private let beginRequest:
    @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?) ->
        UnsafeMutableRawPointer? =
        { context, uri, connection in
            guard let context, let uri, let connection else { return nil }
            let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
            return Unmanaged.passRetained(server.begin(uri: uri, connection: connection)).toOpaque()
        }

private let serveRequest: MHD_AccessHandlerCallback = { context, _, _, method, _, upload, size, slot in
    guard let context, let method, let size, let pointer = slot?.pointee else { return .NO }
    let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
    let exchange = Unmanaged<Exchange>.fromOpaque(pointer).takeUnretainedValue()
    return server.receive(exchange, method: method, upload: upload, size: size)
}

private let endRequest: MHD_RequestCompletedCallback = { context, _, slot, _ in
    guard let context, let slot, let pointer = slot.pointee else { return }
    slot.pointee = nil
    let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
    server.end(Unmanaged<Exchange>.fromOpaque(pointer).takeRetainedValue())
}

private let changeConnection: MHD_NotifyConnectionCallback = { context, connection, slot, what in
    guard let context, let connection, let slot else { return }
    let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
    server.connectionChanged(connection, context: slot, isOpen: countersign_mhd_is_open(what) != 0)
}
