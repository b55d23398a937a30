internal import CHTTPServer
internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// How many passes a loop has made.
final class PassCount: Sendable {
    private let count = Lock(0)

    var value: Int { count.withLock { $0 } }

    func note(_ value: Int) { count.withLock { $0 = value } }
}

/// What a connection is doing, for the deadlines that the HTTP library does not have.
final class WatchedConnection: RequestPeer, @unchecked Sendable {
    enum Phase {
        /// Between requests: the library's own idle time-out holds, and a total one for a dripping request line.
        case idle
        case header
        case body
        /// The request is complete; it is our turn.
        case handling
        /// The answer is whole and on its way.
        case answering(bytes: Int)
    }

    let socket: Int32
    /// The peer's address as text; empty when unknown.
    let address: String
    /// Whose connections count together; nil for a trusted proxy, which brings those of many.
    let unit: NetworkAddress?
    /// What HTTPS is served with; nil for HTTP.
    let certificates: TLSCertificates?
    /// The passes of its loop.
    let passes: PassCount

    fileprivate struct State {
        var phase = Phase.idle
        var since = DispatchTime.now()
        var requests = 0
        /// Pieces of the request's body that have come.
        var pieces = 0
        /// The socket's number may be another's from now on.
        var isClosed = false
    }

    /// Touched by its loop only: the request that has begun and not ended, as the loop keeps it.
    var request: AnyObject?
    /// Touched by its loop only: when to look again whether the other end has hung up.
    private var nextLook = DispatchTime(uptimeNanoseconds: 0)

    // Written by its loop, read by the watch.
    private let state = Lock(State())

    /// Guarded by the watch's lock: it was shut down, and no longer counts.
    fileprivate var isLeaving = false
    /// Guarded by the watch's lock: what looks have found that will not go on unless the next one sees a difference.
    fileprivate var stuck: (progress: Progress, pass: Int, looks: Int)?

    /// What changes as long as a request comes: its phase, the pieces of its body, and the bytes that were read from the
    /// socket, where the system tells (Linux): those of a header, of a trailer and of TLS bring no piece.
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

    /// Seconds in its phase.
    func age(at now: DispatchTime) -> Double { state.withLock { $0.age(at: now) } }

    /// False once the request is complete.
    var isSending: Bool {
        switch snapshot.phase {
        case .idle, .header, .body: true
        case .handling, .answering: false
        }
    }

    /// True when the other end has closed the connection, or its half of it. Nothing else tells while a request is handled:
    /// the library reads no further.
    package var hasHungUp: Bool {
        state.withLock { $0.isClosed || countersign_has_hung_up(socket) != 0 }
    }

    /// Called before the library closes the socket.
    fileprivate func noteClosed() { state.withLock { $0.isClosed = true } }

    /// True when the other end has hung up, and its request has waited for longer than what there is takes to be answered. Its
    /// loop asks at every pass, the system once a second.
    func isAbandoned(at now: DispatchTime) -> Bool {
        guard now >= nextLook, age(at: now) > 1 else { return false }
        nextLook = now + 1
        return hasHungUp
    }

    /// True when the other end has had more time than it may.
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

    /// Bytes a second that a reader of a large answer must take on the whole.
    private static let slowestReader = 8 * 1024

    fileprivate var snapshot: State { state.withLock { $0 } }
}

extension WatchedConnection.State {
    func age(at now: DispatchTime) -> Double {
        now > since ? Double(now.uptimeNanoseconds - since.uptimeNanoseconds) / 1e9 : 0
    }
}

/// Who may connect, and who must go: by address, by deadlines, and when all places are taken. One for all loops of a server;
/// while several of them accept at the same moment there may be one connection too many for each but the first.
///
/// The library's time-out counts from the last byte, so one that drips a byte a second would stay for ever; its limit of
/// connections of an address knows neither an IPv6 network nor a proxy.
final class ConnectionWatch: @unchecked Sendable {
    private struct Connections {
        var all: [ObjectIdentifier: WatchedConnection] = [:]
        var ofUnit: [NetworkAddress: [ObjectIdentifier: WatchedConnection]] = [:]
        /// Those that were not told to go.
        var staying = 0
        /// No search for connections to close runs before this time, unless the new connection's address has fewer
        /// connections than in the last failed search.
        var nextLook = DispatchTime(uptimeNanoseconds: 0)
        var fruitless = 0
        var nextReport = DispatchTime(uptimeNanoseconds: 0)
    }

    // Guards the set. A socket is shut down under the lock, and removed under it before it is closed, so its number
    // cannot have been given to somebody else.
    private let connections = Lock(Connections())
    private let limits: GatewayLimits
    private let hasFreeDescriptor: @Sendable () -> Bool
    private let report: @Sendable (String) -> Void
    private let ticker = Ticker(queue: DispatchQueue(label: "connections"), everySeconds: 1)

    /// How many go at once when all places are taken, so that a flood does not cost a look at all for each.
    private static let room = 32
    private static let pauseNanoseconds: UInt64 = 100_000_000

    /// `report` receives a message, at most once a minute, when connections were closed because no file descriptor was
    /// free.
    init(
        limits: GatewayLimits,
        hasFreeDescriptor: @escaping @Sendable () -> Bool = { countersign_has_free_descriptor() != 0 },
        report: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.limits = limits
        self.hasFreeDescriptor = hasFreeDescriptor
        self.report = report
    }

    /// The maximum number of closing connections that still have a descriptor, in addition to `connections` open ones.
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

    /// Says whether somebody may connect, and closes others for them where that is fair: a connection of the same
    /// address that idles; when all places are taken, those that idle, then the slowest of addresses that have more.
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

    /// Closes overdue connections and connections whose request can never be complete. Without a free file descriptor
    /// the HTTP library accepts no connection, so some connections are closed as if all slots were in use.
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

    /// Closes those of a loop whose request can never become whole. A loop that goes round and round asks for it between
    /// the looks of each second, since what the library does not take keeps it at work: it reads a line without an end
    /// again at every pass. Only where the system tells how much was read: so many looks would mistake a slow sender.
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

    /// True when the sender has ended before its request, or the library does not take what has come (a line that is
    /// longer than its memory), and all was so at the two looks before, with its loop at work in between. One look more
    /// than a difference takes: where the system does not tell how much was read, a piece that has just come from a slow
    /// sender looks the same.
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

    /// Ends a connection that holds what others need.
    func close(_ connection: WatchedConnection) {
        connections.withLock { Self.close(connection, &$0) }
    }

    func stop() {
        ticker.stop()
    }

    private static func close(_ connection: WatchedConnection, _ connections: inout Connections) {
        // One that was removed is leaving too: its socket's number may be another's.
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
