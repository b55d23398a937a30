internal import CountersignCore
internal import Foundation

/// What a connection is doing, for the deadlines that the HTTP library does not have.
final class WatchedConnection: @unchecked Sendable {
    enum Phase {
        /// Between requests: the library's own idle time-out holds, and a total one for a dripping request line.
        case idle
        case header
        case body
        /// The request is complete; it is our turn.
        case handling
    }

    let socket: Int32
    /// The peer's address as text; empty when unknown.
    let address: String
    /// What HTTPS is served with; nil for HTTP.
    let certificates: TLSCertificates?
    private struct State {
        var phase = Phase.idle
        var since = DispatchTime.now()
        var requests = 0
    }

    // Written by the server's threads, read by the watch.
    private let state = Lock(State())

    init(socket: Int32, address: String = "", certificates: TLSCertificates? = nil) {
        self.socket = socket
        self.address = address
        self.certificates = certificates
    }

    func enter(_ phase: Phase) {
        state.withLock { state in
            state.phase = phase
            state.since = .now()
            if phase == .handling { state.requests += 1 }
        }
    }

    /// False once the request is complete.
    var isSending: Bool { state.withLock { $0.phase != .handling } }

    /// True when the sender has had more time than it may.
    func isOverdue(at now: DispatchTime, limits: GatewayLimits) -> Bool {
        let state = state.withLock { $0 }
        guard now > state.since else { return false }
        let seconds = Double(now.uptimeNanoseconds - state.since.uptimeNanoseconds) / 1e9
        switch state.phase {
        case .idle:
            let idle = state.requests == 0 ? 0 : limits.idleSeconds
            return seconds > Double(limits.headerSeconds + idle)
        case .header: return seconds > Double(limits.headerSeconds)
        case .body: return seconds > Double(limits.bodySeconds)
        case .handling: return false
        }
    }
}

/// Closes connections whose header or body is not complete by a total deadline.
///
/// The library's time-out counts from the last byte, so one that drips a byte a second would stay for ever.
final class ConnectionWatch: @unchecked Sendable {
    // Guards the set. A socket is shut down under the lock, and removed under it before it is closed, so its number
    // cannot have been given to somebody else.
    private let connections = Lock<[ObjectIdentifier: WatchedConnection]>([:])
    private let ticker = Ticker(queue: DispatchQueue(label: "connections"), everySeconds: 1)

    var count: Int { connections.withLock { $0.count } }

    func add(_ connection: WatchedConnection) {
        connections.withLock { $0[ObjectIdentifier(connection)] = connection }
    }

    func remove(_ connection: WatchedConnection) {
        connections.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(connection)) }
    }

    func start(limits: GatewayLimits) {
        ticker.start { [weak self] in
            let now = DispatchTime.now()
            self?.close { $0.isOverdue(at: now, limits: limits) }
        }
    }

    func closeThoseStillSending() {
        close { $0.isSending }
    }

    func stop() {
        ticker.stop()
    }

    private func close(where condition: (WatchedConnection) -> Bool) {
        connections.withLock { connections in
            for connection in connections.values where condition(connection) {
                _ = shutdown(connection.socket, Int32(SHUT_RDWR))
            }
        }
    }
}
