/// Detects first occurrences, so that the log has one warning for each kind of failure.
package struct FirstOccurrences<Key: Hashable & Sendable>: Sendable {
    /// At this number of keys, `insert` drops all keys, which then count as new again.
    private static var capacity: Int { 256 }

    private var known: Set<Key> = []

    package init() {}

    package mutating func insert(_ key: Key) -> Bool {
        if known.count >= Self.capacity { known = [] }
        return known.insert(key).inserted
    }
}
