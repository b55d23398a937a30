/// The users with events in the queue file, ordered by the event that each would send next.
///
/// Reads only as many rows as a claim needs, so the cost does not depend on the number of users. Another process may
/// delete rows at any time, so `next` looks for a user's rows before it returns the user. New rows always have higher
/// sequence numbers than all rows before them (`AUTOINCREMENT`).
struct ClaimOrder {
    struct Row {
        let sequence: Int64
        /// Nil if the column is damaged.
        let user: UserKey?
    }

    enum Search {
        case after(Int64)
        case before(Int64)
    }

    private struct Entry: Comparable {
        let rank: Int64
        let user: UserKey

        static func < (left: Entry, right: Entry) -> Bool { left.rank < right.rank }
    }

    private struct Known {
        var rank: Int64
        /// True if the user was blocked when the entry was read or chosen. The entry is then not in the heap.
        var isParked: Bool
    }

    let newestFirst: Bool
    private var known: [UserKey: Known] = [:]
    private var heap = Heap<Entry>()
    /// All rows from `lowest` to `highest` were read.
    private var lowest = Int64.max
    private var highest = Int64.min
    private var blockedVersion: BlockedUsers.Version?

    init(newestFirst: Bool) {
        self.newestFirst = newestFirst
    }

    /// Returns the user to send for next and that user's first claimable event. Nil if no event can be sent.
    ///
    /// `read` passes rows in the direction of the search until its second argument returns false. `first` returns the
    /// user's first event and the first that may be claimed. Its `isNew` is true if the row `sequence` was read just
    /// now.
    mutating func next(
        blocked: BlockedUsers,
        read: (Search, (Row) -> Bool) throws -> Void,
        first: (_ user: UserKey, _ sequence: Int64, _ isNew: Bool) throws -> (any: Int64, claimable: Int64?)?
    ) throws -> (user: UserKey, sequence: Int64)? {
        unpark(blocked)
        if newestFirst { try readNewer(read) }
        var best: (user: UserKey, sequence: Int64)?
        var examined: [Entry] = []
        defer { for entry in examined { insert(entry) } }
        while true {
            var isNew = false
            let limit = [heap.first?.rank, best.map { rank($0.sequence) }].compactMap(\.self).min()
            if limit.map({ !isRead($0) }) ?? true { isNew = try readFurther(before: limit, blocked, read) }
            guard let entry = heap.first else { return best }
            if let best, entry.rank > rank(best.sequence) { return best }
            _ = heap.popFirst()
            guard let state = known[entry.user], !state.isParked, state.rank == entry.rank else { continue }
            if blocked.contains(entry.user) {
                known[entry.user]?.isParked = true
                continue
            }
            guard let found = try first(entry.user, sequence(entry.rank), isNew) else {
                known[entry.user] = nil
                continue
            }
            examined.append(Entry(rank: rank(found.any), user: entry.user))
            guard let claimable = found.claimable else { continue }
            if best.map({ rank(claimable) < rank($0.sequence) }) ?? true { best = (entry.user, claimable) }
        }
    }

    private func rank(_ sequence: Int64) -> Int64 { newestFirst ? ~sequence : sequence }

    private func sequence(_ rank: Int64) -> Int64 { newestFirst ? ~rank : rank }

    /// Whether all rows with lower ranks were read.
    private func isRead(_ rank: Int64) -> Bool {
        newestFirst ? sequence(rank) >= lowest : sequence(rank) <= highest
    }

    private mutating func insert(_ entry: Entry) {
        known[entry.user] = Known(rank: entry.rank, isParked: false)
        heap.insert(entry)
    }

    private mutating func unpark(_ blocked: BlockedUsers) {
        if let version = blockedVersion, let unblocked = blocked.unblocked(since: version) {
            for user in unblocked { unpark(user, blocked) }
        } else {
            for user in Array(known.keys) { unpark(user, blocked) }
        }
        blockedVersion = blocked.version
    }

    private mutating func unpark(_ user: UserKey, _ blocked: BlockedUsers) {
        guard let state = known[user], state.isParked, !blocked.contains(user) else { return }
        insert(Entry(rank: state.rank, user: user))
    }

    private mutating func note(_ sequence: Int64) {
        lowest = min(lowest, sequence)
        highest = max(highest, sequence)
    }

    private mutating func readNewer(_ read: (Search, (Row) -> Bool) throws -> Void) throws {
        guard highest > Int64.min else { return }
        try read(.after(highest)) { row in
            note(row.sequence)
            guard let user = row.user else { return true }
            if known[user]?.isParked == true {
                known[user] = Known(rank: rank(row.sequence), isParked: true)
            } else {
                insert(Entry(rank: rank(row.sequence), user: user))
            }
            return true
        }
    }

    /// Reads rows below the rank `limit`, up to a user that is neither known nor blocked. Returns true if it found one.
    private mutating func readFurther(
        before limit: Int64?, _ blocked: BlockedUsers, _ read: (Search, (Row) -> Bool) throws -> Void
    ) throws -> Bool {
        var isFound = false
        try read(newestFirst ? .before(lowest) : .after(highest)) { row in
            let rank = rank(row.sequence)
            if let limit, rank >= limit { return false }
            note(row.sequence)
            guard let user = row.user, known[user] == nil else { return true }
            if blocked.contains(user) {
                known[user] = Known(rank: rank, isParked: true)
                return true
            }
            insert(Entry(rank: rank, user: user))
            isFound = true
            return false
        }
        if !isFound, let limit { note(sequence(limit)) }
        return isFound
    }
}
