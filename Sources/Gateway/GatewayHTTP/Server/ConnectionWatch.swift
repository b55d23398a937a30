internal import CHTTPServer
internal import CountersignCore
internal import Foundation
internal import GatewayModel

final class PassCount: Sendable {
    private let count = Lock(0)

    var value: Int { count.withLock { $0 } }

    func note(_ value: Int) { count.withLock { $0 = value } }
}

/// The state of a connection, for the deadlines that libmicrohttpd does not enforce.
final class WatchedConnection: RequestPeer, @unchecked Sendable {
    enum Phase {
        /// Between requests. The library's idle time-out applies, and a total time-out for a request line
        /// that drips in.
        case idle
        case header
        case body
        /// The request is complete and the gateway works on it.
        case handling
        /// The response is complete and being sent.
        case answering(bytes: Int)
    }

    let socket: Int32
    /// The peer's address as text; empty when unknown.
    let address: String
    /// The address or network whose connections are counted together; nil for a trusted proxy, which has many
    /// clients.
    let unit: NetworkAddress?
    /// The certificates for HTTPS; nil for HTTP.
    let certificates: TLSCertificates?
    /// The passes of its loop.
    let passes: PassCount

    fileprivate struct State {
        var phase = Phase.idle
        var since = DispatchTime.now()
        var requests = 0
        var pieces = 0
        /// Once true, the descriptor may belong to another connection.
        var isClosed = false
    }

    /// Used by the loop's thread only: the current request.
    var request: AnyObject?
    /// Used by the loop's thread only: the next time to check whether the peer has disconnected.
    private var nextLook = DispatchTime(uptimeNanoseconds: 0)

    // Written by the connection's loop, read by the watch.
    private let state = Lock(State())

    /// Guarded by the watch's lock. Whether the connection was shut down and is no longer counted.
    fileprivate var isLeaving = false
    /// Guarded by the watch's lock. Set while checks find no progress.
    fileprivate var stuck: (progress: Progress, pass: Int, looks: Int)?

    /// Changes while a request arrives: the phase, the pieces of the body, and on Linux the bytes read from
    /// the socket. Header, trailer and TLS bytes arrive without a piece of the body.
    fileprivate struct Progress: Equatable {
        let since: DispatchTime
        let pieces: Int
        let takenBytes: Int64
    }

    init(
        socket: Int32, address: String = "", unit: NetworkAddress? = nil,
        certificates: TLSCertificates? = nil,
        passes: PassCount
    ) {
        self.socket = socket
        self.address = address
        self.unit = unit
        self.certificates = certificates
        self.passes = passes
    }

    func enter(_ phase: Phase, at now: DispatchTime) {
        state.withLock { state in
            state.phase = phase
            state.since = now
            state.pieces = 0
            if case .handling = phase { state.requests += 1 }
        }
    }

    func notePiece() {
        state.withLock { $0.pieces += 1 }
    }

    func age(at now: DispatchTime) -> Double { state.withLock { $0.age(at: now) } }

    /// Whether the client is still sending the request.
    var isSending: Bool {
        switch snapshot.phase {
        case .idle, .header, .body: true
        case .handling, .answering: false
        }
    }

    /// Whether the peer has closed the connection or its sending half. The library does not read while a
    /// request is handled, so it does not notice.
    package var hasHungUp: Bool {
        state.withLock { $0.isClosed || countersign_has_hung_up(socket) != 0 }
    }

    /// Called before the library closes the socket.
    fileprivate func noteClosed() { state.withLock { $0.isClosed = true } }

    /// Whether the peer has disconnected and its request has been waiting for more than a second. The loop
    /// calls this at every pass; the socket is checked at most once a second.
    func isAbandoned(at now: DispatchTime) -> Bool {
        guard now >= nextLook, age(at: now) > 1 else { return false }
        nextLook = now + 1
        return hasHungUp
    }

    /// Whether the peer has exceeded the time limit of the current phase.
    func isOverdue(at now: DispatchTime, limits: GatewayLimits) -> Bool {
        let state = snapshot
        let seconds = state.age(at: now)
        switch state.phase {
        case .idle:
            let idle = state.requests == 0 ? 0 : limits.idleSeconds
            return seconds > Double(limits.headerSeconds + idle)
        case .header: return seconds > Double(limits.headerSeconds)
        case .body: return seconds > Double(limits.bodySeconds)
        case .handling: return false
        case .answering(let bytes):
            return seconds > Double(limits.bodySeconds + bytes / Self.slowestReader)
        }
    }

    /// The minimum average rate, in bytes per second, at which a client must read a large response.
    private static let slowestReader = 8 * 1024

    fileprivate var snapshot: State { state.withLock { $0 } }
}

extension WatchedConnection.State {
    func age(at now: DispatchTime) -> Double {
        now > since ? Double(now.uptimeNanoseconds - since.uptimeNanoseconds) / 1e9 : 0
    }
}

/// Limits connections by address, by deadlines and by their total number. All loops of a server share one
/// watch. If several loops accept at the same moment, the limit can be exceeded by one connection for each
/// additional loop.
///
/// The library's own limits do not suffice. Its time-out restarts at every byte, so a client could send one
/// byte a second for ever. Its limit for each address knows neither IPv6 networks nor proxies.
final class ConnectionWatch: @unchecked Sendable {
    private struct Connections {
        var all: [ObjectIdentifier: WatchedConnection] = [:]
        var ofUnit: [NetworkAddress: [ObjectIdentifier: WatchedConnection]] = [:]
        /// The number of connections that were not told to close.
        var staying = 0
        /// No search for connections to close runs before this time, unless the new connection's address has
        /// fewer connections than in the last failed search.
        var nextLook = DispatchTime(uptimeNanoseconds: 0)
        var fruitless = 0
        var nextReport = DispatchTime(uptimeNanoseconds: 0)
    }

    // A socket is shut down under this lock, and removed under it before it is closed. The descriptor can
    // therefore not belong to another connection yet.
    private let connections = Lock(Connections())
    private let limits: GatewayLimits
    private let hasFreeDescriptor: @Sendable () -> Bool
    private let report: @Sendable (String) -> Void
    private let ticker = Ticker(queue: DispatchQueue(label: "connections"), everySeconds: 1)

    /// The number of connections closed at once when all slots are in use, so that a flood does not cost a
    /// search for each connection.
    private static let room = 32
    private static let pauseNanoseconds: UInt64 = 100_000_000

    /// `report` receives a message, at most once a minute, when connections were closed because no file
    /// descriptor was free.
    init(
        limits: GatewayLimits,
        hasFreeDescriptor: @escaping @Sendable () -> Bool = { countersign_has_free_descriptor() != 0 },
        report: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.limits = limits
        self.hasFreeDescriptor = hasFreeDescriptor
        self.report = report
    }

    /// The maximum number of closing connections that still have a descriptor, in addition to `connections`
    /// open ones.
    static func mostLeaving(_ connections: Int) -> Int { min(128, max(8, connections / 4)) }

    var count: Int { connections.withLock { $0.all.count } }

    func add(_ connection: WatchedConnection) {
        connections.withLock { connections in
            let id = ObjectIdentifier(connection)
            connections.all[id] = connection
            if let unit = connection.unit { connections.ofUnit[unit, default: [:]][id] = connection }
            connections.staying += 1
        }
    }

    func remove(_ connection: WatchedConnection) {
        connection.noteClosed()
        connections.withLock { connections in
            Self.uncount(connection, &connections)
            connections.all[ObjectIdentifier(connection)] = nil
        }
    }

    /// Returns whether a client may connect. May close other connections to make that possible: the oldest
    /// idle one of the same address or, if all slots are in use, idle ones first and then the slowest of
    /// addresses with more connections.
    func admits(_ unit: NetworkAddress?, at now: DispatchTime = .now()) -> Bool {
        connections.withLock { connections in
            if let unit, let own = connections.ofUnit[unit], own.count >= limits.connectionsPerAddress {
                let idle = own.values.map { ($0, $0.snapshot) }.filter { Self.isBetweenRequests($0.1) }
                guard let oldest = idle.min(by: { $0.1.since < $1.1.since }) else { return false }
                Self.close(oldest.0, &connections)
            }
            let own = unit.flatMap { connections.ofUnit[$0]?.count } ?? 0
            // Half of the extra room is reserved for addresses without a connection.
            let room = Self.mostLeaving(limits.connections) / (own > 0 ? 2 : 1)
            guard connections.all.count < limits.connections + room else { return false }
            guard connections.staying >= limits.connections else { return true }
            guard now >= connections.nextLook || own < connections.fruitless else { return false }
            let leaving = Self.leaving(connections, own: own)
            for connection in leaving { Self.close(connection, &connections) }
            if leaving.isEmpty {
                connections.nextLook = now + .nanoseconds(Int(Self.pauseNanoseconds))
                connections.fruitless = own
            }
            return !leaving.isEmpty
        }
    }

    /// The connections to close for a new connection whose address has `own` open connections.
    private static func leaving(_ connections: Connections, own: Int) -> [WatchedConnection] {
        var idle: [(WatchedConnection, DispatchTime)] = []
        var slow: [(WatchedConnection, DispatchTime)] = []
        for connection in connections.all.values where !connection.isLeaving {
            let state = connection.snapshot
            let others = connection.unit.flatMap { connections.ofUnit[$0]?.count } ?? 0
            switch state.phase {
            case .idle where state.requests > 0: idle.append((connection, state.since))
            case .idle, .header, .body, .answering:
                if others > own + 1 { slow.append((connection, state.since)) }
            case .handling: break
            }
        }
        return (idle.isEmpty ? slow : idle).sorted { $0.1 < $1.1 }.prefix(room).map(\.0)
    }

    private static func isBetweenRequests(_ state: WatchedConnection.State) -> Bool {
        if case .idle = state.phase { return state.requests > 0 }
        return false
    }

    func start() {
        ticker.start { [weak self] in self?.look() }
    }

    /// Closes overdue connections and connections whose request can never be complete. Without a free file
    /// descriptor the HTTP library accepts no connection, so some connections are closed as if all slots were
    /// in use.
    func look(at now: DispatchTime = .now()) {
        let isFull = !hasFreeDescriptor()
        let isReported = connections.withLock { connections in
            for connection in connections.all.values where !connection.isLeaving {
                if connection.isOverdue(at: now, limits: limits) || Self.isStuck(connection) {
                    Self.close(connection, &connections)
                }
            }
            guard isFull else { return false }
            for connection in Self.leaving(connections, own: 0) { Self.close(connection, &connections) }
            guard now >= connections.nextReport else { return false }
            connections.nextReport = now + .seconds(60)
            return true
        }
        if isReported { report("raise the limit of open files, or lower connections") }
    }

    /// Closes connections of a loop whose request can never be completed. The library reads an endless line
    /// again at every pass, which keeps the loop busy, so a busy loop calls this between the checks of each
    /// second. Works only where the system tells how many bytes were read: otherwise so many checks would
    /// mistake a slow sender for a stuck one.
    func lookForStuck(of passes: PassCount) {
        connections.withLock { connections in
            for connection in connections.all.values
            where connection.passes === passes && !connection.isLeaving
                && Self.isStuck(connection, isSure: true)
            {
                Self.close(connection, &connections)
            }
        }
    }

    /// Whether the client stopped sending before its request was complete, or the library does not read the
    /// received bytes (a line longer than its buffer). The state must be the same in three checks, between
    /// which the loop ran. Two would not suffice: where the system does not tell how many bytes were read, a
    /// piece that has just arrived from a slow sender looks the same.
    private static func isStuck(_ connection: WatchedConnection, isSure: Bool = false) -> Bool {
        let passes = connection.passes.value
        let state = connection.snapshot
        switch state.phase {
        case .header, .body: break
        case .idle, .handling, .answering:
            connection.stuck = nil
            return false
        }
        var byte: UInt8 = 0
        let unread = recv(connection.socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        guard unread >= 0 else {
            connection.stuck = nil
            return false
        }
        let progress = WatchedConnection.Progress(
            since: state.since, pieces: state.pieces,
            takenBytes: countersign_taken_bytes(connection.socket))
        if isSure, progress.takenBytes < 0 { return false }
        if let stuck = connection.stuck, stuck.progress == progress {
            guard passes > stuck.pass + 1 else { return false }
            connection.stuck = (progress, passes, stuck.looks + 1)
            return stuck.looks == 2
        }
        connection.stuck = (progress, passes, 1)
        return false
    }

    func closeThoseStillSending() {
        connections.withLock { connections in
            for connection in connections.all.values where connection.isSending {
                Self.close(connection, &connections)
            }
        }
    }

    /// Closes a connection to free its resources.
    func close(_ connection: WatchedConnection) {
        connections.withLock { Self.close(connection, &$0) }
    }

    func stop() {
        ticker.stop()
    }

    private static func close(_ connection: WatchedConnection, _ connections: inout Connections) {
        // A removed connection is marked as leaving too: its descriptor may belong to another connection.
        guard !connection.isLeaving else { return }
        _ = shutdown(connection.socket, Int32(SHUT_RDWR))
        uncount(connection, &connections)
    }

    private static func uncount(_ connection: WatchedConnection, _ connections: inout Connections) {
        guard !connection.isLeaving else { return }
        connection.isLeaving = true
        connections.staying -= 1
        guard let unit = connection.unit else { return }
        connections.ofUnit[unit]?[ObjectIdentifier(connection)] = nil
        if connections.ofUnit[unit]?.isEmpty == true { connections.ofUnit[unit] = nil }
    }
}
