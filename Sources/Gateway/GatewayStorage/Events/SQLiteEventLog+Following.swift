internal import CountersignCore
internal import CountersignSQLite
internal import GatewayModel

extension SQLiteEventLog {
    /// The number of sequence numbers requested from the index at once.
    private static let sequencesPerStep = 256

    func positions() throws(GatewayError) -> EventPositions {
        try following { sqlite, log in EventPositions(logID: log.id, head: try log.head(sqlite)) }
    }

    func follow(
        _ following: EventFollowing, after sequence: Int64, limit: Int
    ) throws(GatewayError) -> EventRange {
        try self.following(atOnce: true) { sqlite, log in
            // Sequence numbers follow the order of commits, so all events up to `head` are committed.
            let head = try log.head(sqlite)
            var stretch = EventRange(reached: sequence)
            stretch.gap = EventGap(after: sequence, floor: try EventFloor.read(of: following.appID, sqlite))
            guard sequence < head else { return stretch }
            let subject = following.filter.userID.map { EventSubject.user($0) } ?? .app
            var walk = EventScan(subject, of: following.appID, .after(sequence), through: head)
            var page = EventPageBuilder(limit: limit)
            let statement = try Self.statement(following, walk, log, sqlite)
            let hasEnded = try walk.go(try index(sqlite), statement) { row in
                if Self.isIn(following.partition, row) { page.add(row) }
                return !page.isFull
            }
            stretch.events = page.page.events
            stretch.looked = walk.looked
            stretch.hasMore = !hasEnded
            stretch.reached = hasEnded ? head : walk.reached
            return stretch
        }
    }

    /// Finds the sequence number before the first event received at or after a time. Starts a minute earlier,
    /// because events are not strictly ordered by time: clocks are set back and requests take time.
    func sequence(
        before milliseconds: Int64, of appID: String, _ sqlite: SQLiteConnection, _ log: EventLogState
    ) throws -> Int64 {
        let head = try log.head(sqlite)
        let index = try index(sqlite)
        func received(_ sequence: Int64) throws -> Int64? {
            try sqlite.first("SELECT received_ms FROM event WHERE seq = ?1", .integer(sequence)) {
                $0.int64(0)
            }
        }
        var (low, high) = (try EventFloor.read(of: appID, sqlite), head)
        while low < high {
            let middle = (low + high) / 2
            // Skips events of deleted persons, which have no row.
            var time: Int64?
            for sequence in try index.sequences(of: .app, in: appID, .after(middle), limit: 16)
            where time == nil {
                time = try received(sequence)
            }
            if let time, time < milliseconds - 60_000 { low = middle + 1 } else { high = middle }
        }
        var looked = 0
        while looked < EventPage.mostLooked {
            let sequences = try index.sequences(
                of: .app, in: appID, .after(low), limit: Self.sequencesPerStep)
            for sequence in sequences {
                if let time = try received(sequence), time >= milliseconds { return sequence - 1 }
                low = sequence
                looked += 1
            }
            if sequences.count < Self.sequencesPerStep { return max(low, head) }
        }
        return low
    }

    func index(_ sqlite: SQLiteConnection) throws -> EventIndexReader {
        try EventIndexReader(sqlite, folder: IndexFolder.path(besides: readers.path), runs: runs)
    }

    /// Reads a log that a gateway of this version has opened. `atOnce` uses one transaction, which saves
    /// locking for each statement.
    func following<Value>(
        atOnce isAtOnce: Bool = false, _ body: (SQLiteConnection, EventLogState) throws -> Value
    ) throws(GatewayError) -> Value {
        guard readers.isThere else {
            throw GatewayError(.notFound, "there are no events yet: no gateway has run on this folder")
        }
        return try readers.withConnection { sqlite in
            if isAtOnce { try sqlite.execute("BEGIN") }
            defer { if isAtOnce { try? sqlite.execute("COMMIT") } }
            guard try EventConsumerSchema.isThere(sqlite), let log = try EventLogState.read(sqlite) else {
                throw Self.earlierVersion
            }
            return try body(sqlite, log)
        }
    }

    static let earlierVersion = GatewayError(
        .conflict,
        "this folder was written by an earlier version: start the gateway of this version on it once")

    private static func statement(
        _ following: EventFollowing, _ walk: EventScan, _ log: EventLogState, _ sqlite: SQLiteConnection
    ) throws -> SQLiteStatement {
        var conditions = EventConditions(of: following.appID)
        conditions.add("user_id = ?", following.filter.userID.map { .text($0) })
        conditions.add("type = ?", following.filter.type.map { .text($0) })
        conditions.add("name = ?", following.filter.name.map { .text($0) })
        if let verdict = following.filter.verdict {
            conditions.add(condition(verdict, hasVerdicts: true))
        }
        if let claim = following.filter.claim { add(claim, to: &conditions, log) }
        let columns = "\(EventPageBuilder.columns), \(EventPageBuilder.proofColumns(of: log)), sender"
        let statement = try sqlite.cached(walk.select(columns, conditions))
        try statement.bind(conditions.values)
        return statement
    }

    /// Whether an event is in a partition. An event that was assigned to a user later stays in the partition
    /// of its device. Otherwise it could be skipped or read twice.
    private static func isIn(_ partition: EventPartition, _ row: SQLiteStatement) -> Bool {
        guard partition.count > 1 else { return true }
        let wasAnonymous = row.optionalText(18) == EventSender.anonymousContent
        let id = (wasAnonymous ? nil : row.optionalText(3)) ?? row.optionalText(4) ?? ""
        return EventPartition.index(of: id, count: partition.count) == partition.index
    }
}

extension EventLogState {
    /// The sequence number of the newest event.
    func head(_ sqlite: SQLiteConnection) throws -> Int64 {
        let last = try sqlite.first("SELECT max(seq) FROM event") { $0.optionalInt64(0) } ?? nil
        return max(last ?? 0, next - 1)
    }
}
