internal import CountersignCore
internal import GatewayModel

/// Counts the bytes of request and response bodies that all listeners hold together.
package final class BodyMemory: Sendable {
    /// Bodies above this size may use only three quarters of the limit. The last quarter is for devices' small bodies.
    private static let small = 64 * 1024

    private let limit: Int
    private let used = Lock(0)

    package init(limit: Int) {
        self.limit = limit
    }

    /// Reserves memory for `count` more bytes of a body that has `held` bytes. Returns false over the limit.
    func take(_ count: Int, held: Int) -> Bool {
        let limit = held + count > Self.small ? limit / 4 * 3 : limit
        return used.withLock { used in
            guard used + count <= limit else { return false }
            used += count
            return true
        }
    }

    func takeBeyondLimit(_ count: Int) {
        used.withLock { $0 += count }
    }

    func give(_ count: Int) {
        if count > 0 { used.withLock { $0 -= count } }
    }
}

/// The memory reserved by one request, for its body and then for its response. It is released when the last
/// reference goes away, which may be long after the client has disconnected.
final class MemoryReservation: Sendable {
    private let memory: BodyMemory
    private let state = Lock(State())

    private struct State {
        var bytes = 0
        var isEvicted = false
    }

    init(_ memory: BodyMemory) {
        self.memory = memory
    }

    deinit {
        memory.give(bytes)
    }

    var bytes: Int { state.withLock { $0.bytes } }

    var isEvicted: Bool { state.withLock { $0.isEvicted } }

    func take(_ count: Int) -> Bool {
        state.withLock { state in
            guard !state.isEvicted, memory.take(count, held: state.bytes) else { return false }
            state.bytes += count
            return true
        }
    }

    func takeBeyondLimit(_ count: Int) {
        state.withLock { state in
            memory.takeBeyondLimit(count)
            state.bytes += count
        }
    }

    func give(_ count: Int) {
        state.withLock { state in
            // An eviction may already have uncounted the bytes.
            let count = min(count, state.bytes)
            memory.give(count)
            state.bytes -= count
        }
    }

    func giveAll() {
        state.withLock { state in
            memory.give(state.bytes)
            state.bytes = 0
        }
    }

    /// Uncounts all bytes and makes `take` fail from then on. Closing the connection frees the bytes themselves.
    func evict() {
        state.withLock { state in
            memory.give(state.bytes)
            state = State(bytes: 0, isEvicted: true)
        }
    }
}

/// Requests of all loops whose memory can be reclaimed: incomplete request bodies and responses being sent.
final class EvictionQueue: Sendable {
    /// Connections with at most this many bytes are never closed to reclaim memory.
    static let untouched = 4 * 1024

    private struct State: Sendable {
        var all: [ObjectIdentifier: (held: MemoryReservation, peer: Peer)] = [:]
        /// No search before this time, because the last one found no candidate.
        var nextSearch: UInt64 = 0
    }

    private let limit: Int
    private let connections: ConnectionTable
    private let state = Lock(State())

    init(limit: Int, connections: ConnectionTable) {
        self.limit = limit
        self.connections = connections
    }

    func add(_ held: MemoryReservation, of peer: Peer) {
        state.withLock { $0.all[ObjectIdentifier(held)] = (held, peer) }
    }

    /// Protects the request's memory from being reclaimed. Returns false if it was already reclaimed.
    func remove(_ held: MemoryReservation) -> Bool {
        state.withLock { state in
            state.all[ObjectIdentifier(held)] = nil
            return !held.isEvicted
        }
    }

    /// Closes the slowest connections until a sixteenth of the limit is reclaimed. That is more than one read needs, so
    /// that a flood does not cause a search for each read. Returns false if no connection could be closed.
    func makeRoom(at now: UInt64) -> Bool {
        state.withLock { state in
            guard now >= state.nextSearch else { return false }
            var found: [(id: ObjectIdentifier, held: MemoryReservation, peer: Peer, rate: Double)] = []
            for (id, holder) in state.all where holder.held.bytes > Self.untouched {
                // The rate of a new request cannot be measured yet.
                let age = holder.peer.age(at: now)
                guard age >= 1 else { continue }
                found.append((id, holder.held, holder.peer, Double(holder.held.bytes) / age))
            }
            var room = limit / 16
            for holder in found.sorted(by: { $0.rate < $1.rate }) where room > 0 {
                room -= holder.held.bytes
                state.all[holder.id] = nil
                connections.close(holder.peer)
                holder.held.evict()
            }
            if found.isEmpty { state.nextSearch = now + MonotonicClock.second / 10 }
            return !found.isEmpty
        }
    }
}
