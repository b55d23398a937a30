internal import CountersignCore

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
    private let held = Lock(0)

    init(_ memory: BodyMemory) {
        self.memory = memory
    }

    deinit {
        memory.give(bytes)
    }

    var bytes: Int { held.withLock { $0 } }

    /// Takes room for more bytes; false when there is none.
    func take(_ count: Int) -> Bool {
        held.withLock { held in
            guard memory.take(count, held: held) else { return false }
            held += count
            return true
        }
    }

    /// Takes room that is needed in any case, beyond the limit too.
    func takeAnyhow(_ count: Int) {
        held.withLock { held in
            memory.takeAnyhow(count)
            held += count
        }
    }

    func give(_ count: Int) {
        held.withLock { held in
            memory.give(count)
            held -= count
        }
    }

    func giveAll() {
        held.withLock { held in
            memory.give(held)
            held = 0
        }
    }
}
