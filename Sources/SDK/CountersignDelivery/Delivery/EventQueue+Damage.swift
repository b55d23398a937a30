internal import CountersignSQLite

/// Damage that SQLite does not detect: rows that are not events, and impossible counters.
extension EventQueue {
    struct Size: Equatable {
        var rows: Int
        var bytes: Int
    }

    /// A higher count or sequence number is treated as damaged. The sum of two counts fits into an `Int`.
    static let maximumCount = 1 << 53

    private static let damagedRow = ServerAnswer.Explanation(
        "damaged_row", "the event in the queue file is damaged")

    /// Quarantines rows that cannot be sent. On a full disk or with a locked file they stay, and the claim skips them.
    func setAsideDamaged(_ sequences: [Int64]) throws {
        do {
            try connection.transaction {
                for sequence in sequences { try quarantine(sequence, Self.damagedRow) }
            }
        } catch let error as SQLiteError where error.isFull || error.isBusy {}
    }

    /// Throws as for a damaged file if a sequence number is out of range. After the largest `Int64`, SQLite reports a
    /// full disk for each new row.
    func checkSequences() throws {
        let highest = try connection.integer(
            """
            SELECT max(coalesce((SELECT max(seq) FROM event), 0),
                coalesce((SELECT max(CAST(seq AS INTEGER)) FROM sqlite_sequence WHERE name = 'event'), 0))
            """)
        let lowest = try connection.integer("SELECT coalesce(min(seq), 1) FROM event")
        guard highest ?? 0 <= Self.maximumCount, lowest ?? 1 > 0 else {
            throw SQLiteError.damaged("a sequence number is out of range")
        }
    }

    // MARK: Counters

    func size() throws -> Size { Size(rows: try value(of: .rows), bytes: try value(of: .bytes)) }

    /// Adds to the stored size, or counts the events if the stored size is impossible.
    func addSize(rows: Int, bytes: Int) throws {
        guard rows != 0 || bytes != 0 else { return }
        let stored = [try storedValue(of: .rows), try storedValue(of: .bytes)]
        guard stored.allSatisfy({ 0...Self.maximumCount ~= $0 }) else {
            try recount()
            return
        }
        let before = try size()
        let wasCounted = before == countedSize
        try saveSize(Size(rows: before.rows + rows, bytes: before.bytes + bytes))
        if !wasCounted { countedSize = nil }
    }

    func saveSize(_ size: Size) throws {
        try set(.rows, size.rows)
        try set(.bytes, size.bytes)
        // If the transaction fails, the file's values differ from `countedSize`, so the events are counted again.
        countedSize = size
    }

    /// Call it in a transaction.
    @discardableResult
    func recount() throws -> Size {
        var size = Size(rows: 0, bytes: 0)
        let statement = try connection.cached("SELECT length(body) FROM event NOT INDEXED")
        defer { statement.reset() }
        while try statement.step() {
            size.rows += 1
            size.bytes += statement.int(0) + Self.rowOverheadBytes
        }
        try saveSize(size)
        return size
    }

    /// The check reads few rows, so that a start does not take longer with more events.
    func correctCounters() throws {
        let isSizePossible = try isSizePossible()
        let sums: [Counter] = Counter.allCases.filter { $0 != .rows && $0 != .bytes }
        let impossible = try sums.filter { !(0...Self.maximumCount).contains(try storedValue(of: $0)) }
        if isSizePossible, impossible.isEmpty { return }
        do {
            try connection.transaction {
                if !isSizePossible { try recount() }
                for counter in impossible { try set(counter, 0) }
                // `recorded` is computed from the other counters.
                guard !impossible.isEmpty else { return }
                let places: [Counter] = [
                    .rows, .sent, .quarantined, .evictedByCount, .evictedByBytes, .evictedByAge, .wiped,
                    .unreadable,
                ]
                let sum = try places.reduce(0) { $0 + (try value(of: $1)) }
                try set(.recorded, sum - (try value(of: .requeued)))
            }
        } catch let error as SQLiteError where error.isFull || error.isBusy {
            // The value stays damaged on disk, but `value(of:)` clamps it.
        }
    }

    private func isSizePossible() throws -> Bool {
        let (rows, bytes) = (try storedValue(of: .rows), try storedValue(of: .bytes))
        let range = try connection.first(
            "SELECT (SELECT min(seq) FROM event), (SELECT max(seq) FROM event)"
        ) { row throws(SQLiteError) in row.isNull(0) ? 0 : row.int(1) - row.int(0) + 1 }
        guard let range, range > 0 else { return rows == 0 && bytes == 0 }
        func pragma(_ name: String) throws -> Int {
            try connection.integer("PRAGMA \(name)") ?? 0
        }
        guard (1...range).contains(rows) else { return false }
        let overhead = rows * Self.rowOverheadBytes
        return (overhead...overhead + (try pragma("page_count")) * (try pragma("page_size"))).contains(bytes)
    }

    /// Whether the counter of rows exceeds the number of rows that a claim without a result had to skip. With more than
    /// 100 blocked users, compares only once for each open file, because it counts the events of each blocked user.
    func mayHaveMissedEvents(_ request: ClaimRequest, undeleted: Set<Int64>) throws -> Bool {
        if request.blockedUsers.count > 100 {
            if hasComparedBlockedUsers { return false }
            hasComparedBlockedUsers = true
        }
        var known = request.excluded.count + undeleted.count
        for user in request.blockedUsers.users {
            known +=
                try connection.integer("SELECT count(*) FROM event WHERE user_id = ?", .text(user.column))
                ?? 0
        }
        return try value(of: .rows) > known
    }

    /// Called after a claim seems to have missed events. Throws if the file is damaged, otherwise corrects the counter
    /// of rows. Queries do not detect a damaged index, which hides events permanently.
    func checkIndexAndCounter() throws {
        let finding =
            try connection.first("PRAGMA integrity_check(1)") { row throws(SQLiteError) in row.text(0) } ?? ""
        guard finding == "ok" else { throw SQLiteError.damaged(finding) }
        // The file is intact, so the counter is wrong.
        do {
            try connection.transaction { _ = try recount() }
        } catch let error as SQLiteError where error.isFull {}
    }
}

extension Sequence {
    /// The first elements with at most `maximum` bytes together, but at least one element.
    func prefix(bytes maximum: Int, of size: (Element) -> Int) -> [Element] {
        var bytes = 0
        var elements: [Element] = []
        for element in self {
            bytes += size(element)
            if bytes > maximum, !elements.isEmpty { break }
            elements.append(element)
        }
        return elements
    }
}
