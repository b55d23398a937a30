internal import CountersignCore
internal import GatewayModel

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

final class Peer: RequestPeer {
    enum Phase {
        case new
        case idle
        case receiving
        case handling
        /// The socket did not accept the whole response at once, or unread input is discarded before closing.
        case sending
    }

    struct State {
        var phase = Phase.new
        var since: UInt64
        var hasHungUp = false
    }

    let socket: Int32
    let address: String
    /// The address or network whose connections are counted together; nil for a trusted proxy, which has many clients.
    let unit: NetworkAddress?

    // Written by the connection's loop, read by other threads.
    private let state: Lock<State>
    /// Whether the connection was shut down or removed, so it does not count as open. Used only under the table's lock.
    fileprivate let isClosing = Lock(false)

    init(socket: Int32, address: String = "", unit: NetworkAddress? = nil, at now: UInt64) {
        self.socket = socket
        self.address = address
        self.unit = unit
        state = Lock(State(since: now))
    }

    func enter(_ phase: Phase, at now: UInt64) {
        state.withLock { state in
            state.phase = phase
            state.since = now
        }
    }

    func noteHangUp() { state.withLock { $0.hasHungUp = true } }

    package var hasHungUp: Bool { state.withLock { $0.hasHungUp } }

    var snapshot: State { state.withLock { $0 } }

    func age(at now: UInt64) -> Double {
        let since = snapshot.since
        return now > since ? Double(now - since) / 1e9 : 0
    }
}

/// The connections of all loops of a server, which share its limits. Each loop may also hold one accepted socket
/// that is not in the table yet.
final class ConnectionTable: Sendable {
    private struct Connections {
        var all: [ObjectIdentifier: Peer] = [:]
        var ofUnit: [NetworkAddress: [ObjectIdentifier: Peer]] = [:]
        /// The number of connections that are not being closed.
        var openCount = 0
        /// No search for connections to close runs before this time, unless the new connection's address has fewer
        /// connections than the address that the last failed search was for.
        var nextSearch: UInt64 = 0
        var ownInFailedSearch = 0
        var nextReport: UInt64 = 0
    }

    // `close` shuts a socket down under this lock. A loop removes a peer under this lock before closing its descriptor.
    // So a descriptor that is shut down cannot belong to another connection yet.
    private let connections = Lock(Connections())
    private let limits: GatewayLimits
    private let report: @Sendable (String) -> Void

    /// The number of connections closed at once when all slots are in use, so that a flood does not cost a search for
    /// each new connection.
    private static let room = 32
    private static let pause: UInt64 = 100_000_000

    /// `report` is called, at most once a minute, when no file descriptor was free.
    init(limits: GatewayLimits, report: @escaping @Sendable (String) -> Void = { _ in }) {
        self.limits = limits
        self.report = report
    }

    /// The maximum number of closing connections that still have a descriptor, in addition to the open connections.
    static func mostClosing(_ connections: Int) -> Int { min(128, max(8, connections / 4)) }

    var count: Int { connections.withLock { $0.all.count } }

    /// Adds a connection. Returns false, and adds nothing, if the client may not connect.
    ///
    /// May close other connections: the oldest idle one of the same address or, if all slots are in use, idle ones.
    /// If no connection is idle, closes the slowest ones of addresses with more connections than the new one's address.
    func add(_ peer: Peer, at now: UInt64) -> Bool {
        connections.withLock { connections in
            guard admits(peer.unit, &connections, now) else { return false }
            let id = ObjectIdentifier(peer)
            connections.all[id] = peer
            if let unit = peer.unit { connections.ofUnit[unit, default: [:]][id] = peer }
            connections.openCount += 1
            return true
        }
    }

    func remove(_ peer: Peer) {
        connections.withLock { connections in
            Self.uncount(peer, &connections)
            connections.all[ObjectIdentifier(peer)] = nil
        }
    }

    private func admits(_ unit: NetworkAddress?, _ connections: inout Connections, _ now: UInt64) -> Bool {
        if let unit, let own = connections.ofUnit[unit], own.count >= limits.connectionsPerAddress {
            let idle = own.values.map { ($0, $0.snapshot) }.filter { $0.1.phase == .idle }
            guard let oldest = idle.min(by: { $0.1.since < $1.1.since }) else { return false }
            Self.close(oldest.0, &connections)
        }
        let own = unit.flatMap { connections.ofUnit[$0]?.count } ?? 0
        // Half of the extra room is reserved for addresses without a connection.
        let room = Self.mostClosing(limits.connections) / (own > 0 ? 2 : 1)
        guard connections.all.count < limits.connections + room else { return false }
        guard connections.openCount >= limits.connections else { return true }
        guard now >= connections.nextSearch || own < connections.ownInFailedSearch else { return false }
        let closing = Self.closing(connections, own: own)
        for peer in closing { Self.close(peer, &connections) }
        if closing.isEmpty {
            connections.nextSearch = now + Self.pause
            connections.ownInFailedSearch = own
        }
        return !closing.isEmpty
    }

    /// The connections to close for a new connection whose address has `own` open connections.
    private static func closing(_ connections: Connections, own: Int) -> [Peer] {
        var idle: [(Peer, UInt64)] = []
        var slow: [(Peer, UInt64)] = []
        for peer in connections.all.values where !peer.isClosing.withLock({ $0 }) {
            let state = peer.snapshot
            switch state.phase {
            case .idle: idle.append((peer, state.since))
            case .new, .receiving, .sending:
                let others = peer.unit.flatMap { connections.ofUnit[$0]?.count } ?? 0
                if others > own + 1 { slow.append((peer, state.since)) }
            case .handling: break
            }
        }
        return (idle.isEmpty ? slow : idle).sorted { $0.1 < $1.1 }.prefix(room).map(\.0)
    }

    /// Closes connections as if all slots were in use, because no file descriptor is free.
    func freeDescriptors(at now: UInt64) {
        let isReported = connections.withLock { connections in
            for peer in Self.closing(connections, own: 0) { Self.close(peer, &connections) }
            guard now >= connections.nextReport else { return false }
            connections.nextReport = now + 60 * MonotonicClock.second
            return true
        }
        if isReported { report("raise the limit of open files, or lower connections") }
    }

    /// Shuts a connection down. Its loop closes it.
    func close(_ peer: Peer) {
        connections.withLock { Self.close(peer, &$0) }
    }

    private static func close(_ peer: Peer, _ connections: inout Connections) {
        // `remove` also sets `isClosing`. The descriptor of a removed connection may belong to another connection.
        guard !peer.isClosing.withLock({ $0 }) else { return }
        _ = shutdown(peer.socket, Int32(SHUT_RDWR))
        uncount(peer, &connections)
    }

    private static func uncount(_ peer: Peer, _ connections: inout Connections) {
        let wasClosing = peer.isClosing.withLock { isClosing in
            defer { isClosing = true }
            return isClosing
        }
        guard !wasClosing else { return }
        connections.openCount -= 1
        guard let unit = peer.unit else { return }
        connections.ofUnit[unit]?[ObjectIdentifier(peer)] = nil
        if connections.ofUnit[unit]?.isEmpty == true { connections.ofUnit[unit] = nil }
    }
}
