internal import CountersignCore
internal import Foundation

/// Counts the bytes of request bodies and answers that all listeners hold together.
package final class BodyMemory: Sendable {
    /// A body up to this size may take what the larger ones must leave, a quarter of all: many that are large, or one
    /// sender of many, do not keep out what a device usually sends.
    private static let small = 64 * 1024

    private let limit: Int
    private let used = Lock(0)

    package init(limit: Int) {
        self.limit = limit
    }

    /// Takes room for more bytes of a body. Returns false when there is no room.
    func take(_ count: Int, held: Int) -> Bool {
        let limit = held + count > Self.small ? limit / 4 * 3 : limit
        return used.withLock { used in
            guard used + count <= limit else { return false }
            used += count
            return true
        }
    }

    func takeAnyhow(_ count: Int) {
        used.withLock { $0 += count }
    }

    func give(_ count: Int) {
        if count > 0 { used.withLock { $0 -= count } }
    }
}

/// What one request holds of the memory of all, its body and then its answer. It is given back when nobody who works on
/// the request is left, which may be long after its client has gone.
final class HeldMemory: Sendable {
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

    /// True when it was taken for others.
    var isEvicted: Bool { state.withLock { $0.isEvicted } }

    /// Takes room for more bytes; false when there is none, or was taken from it before.
    func take(_ count: Int) -> Bool {
        state.withLock { state in
            guard !state.isEvicted, memory.take(count, held: state.bytes) else { return false }
            state.bytes += count
            return true
        }
    }

    /// Takes room that is needed in any case, beyond the limit too.
    func takeAnyhow(_ count: Int) {
        state.withLock { state in
            memory.takeAnyhow(count)
            state.bytes += count
        }
    }

    func give(_ count: Int) {
        state.withLock { state in
            // Whose memory was taken has nothing left to give.
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

    /// Gives back all and takes no more: its connection is being closed, which frees the bytes themselves.
    func evict() {
        state.withLock { state in
            memory.give(state.bytes)
            state = State(bytes: 0, isEvicted: true)
        }
    }
}

/// The requests of all loops that hold memory which could be taken from them: bodies that are still coming, and answers on
/// their way.
final class MemoryHolders: Sendable {
    /// What nobody is closed for: the body of a device that has little to say over a slow line.
    static let untouched = 4 * 1024

    private struct State: Sendable {
        var all: [ObjectIdentifier: (held: HeldMemory, connection: WatchedConnection)] = [:]
        /// Until then nobody is looked for: the last look found none.
        var nextSearch = DispatchTime(uptimeNanoseconds: 0)
    }

    private let limit: Int
    private let connections: ConnectionWatch
    private let state = Lock(State())

    init(limit: Int, connections: ConnectionWatch) {
        self.limit = limit
        self.connections = connections
    }

    func add(_ held: HeldMemory, of connection: WatchedConnection) {
        state.withLock { $0.all[ObjectIdentifier(held)] = (held, connection) }
    }

    /// Keeps what it holds from being taken; false when that has happened.
    func remove(_ held: HeldMemory) -> Bool {
        state.withLock { state in
            state.all[ObjectIdentifier(held)] = nil
            return !held.isEvicted
        }
    }

    /// Takes the memory of the slowest: a small part of all at once, so that a flood does not cost a search for each piece.
    /// Returns false when there was nobody to take it from.
    func makeRoom(at now: DispatchTime = .now()) -> Bool {
        state.withLock { state in
            guard now >= state.nextSearch else { return false }
            var found:
                [(id: ObjectIdentifier, held: HeldMemory, connection: WatchedConnection, rate: Double)] = []
            for (id, holder) in state.all where holder.held.bytes > Self.untouched {
                // Who has just begun may be the fastest of all.
                let age = holder.connection.age(at: now)
                guard age >= 1 else { continue }
                found.append((id, holder.held, holder.connection, Double(holder.held.bytes) / age))
            }
            var room = limit / 16
            for holder in found.sorted(by: { $0.rate < $1.rate }) where room > 0 {
                room -= holder.held.bytes
                state.all[holder.id] = nil
                connections.close(holder.connection)
                holder.held.evict()
            }
            if found.isEmpty { state.nextSearch = now + .milliseconds(100) }
            return !found.isEmpty
        }
    }
}
