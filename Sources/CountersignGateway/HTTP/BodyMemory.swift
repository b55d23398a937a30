internal import CountersignCore

/// Counts the bytes of request bodies and answers that all listeners hold together.
package final class BodyMemory: Sendable {
    /// A body up to this size may take what the larger ones must leave, a quarter of all: many that are large, or one
    /// sender of many, do not keep out what a device usually sends.
    private static let small = 64 * 1024

    private let limit: Int
    private let used = Lock(0)

    /// - Parameter limit: Bytes of all together.
    package init(limit: Int) {
        self.limit = limit
    }

    /// Takes room for more bytes of a body.
    ///
    /// - Parameters:
    ///   - count: Bytes that come.
    ///   - held: Bytes that it has already.
    /// - Returns: False when there is no room.
    func take(_ count: Int, held: Int) -> Bool {
        let limit = held + count > Self.small ? limit / 4 * 3 : limit
        return used.withLock { used in
            guard used + count <= limit else { return false }
            used += count
            return true
        }
    }

    func give(_ count: Int) {
        if count > 0 { used.withLock { $0 -= count } }
    }
}
