internal import CountersignSQLite
internal import GatewayModel

extension EventReader {
    /// Events that one call looks at, so that a filter that matches nothing costs a bounded time.
    static let mostLooked = 10_000
    private static let sequencesPerStep = 256
    /// Where the last number of a range is bound; the first is at 1.
    private static let lastPlaceholder: Int32 = 2

    func positions() throws(GatewayError) -> EventPositions {
        try following { sqlite, log in EventPositions(logID: log.id, head: try log.head(sqlite)) }
    }

    func follow(
        _ following: EventFollowing, after sequence: Int64, limit: Int
    ) throws(GatewayError) -> EventStretch {
        try self.following(atOnce: true) { sqlite, log in
            // Numbers are given in the order of commits: whatever is up to here is committed, and nothing comes later.
            let head = try log.head(sqlite)
            var stretch = EventStretch(reached: sequence)
            stretch.hasMissed = try EventFloor.read(of: following.appID, sqlite) > sequence
            guard sequence < head else { return stretch }
            let index = try index(sqlite)
            let statement = try Self.statement(following, sqlite)
            defer { statement.reset() }
            let subject = following.filter.userID.map { EventSubject.user($0) } ?? .app
            var page = EventPageBuilder(limit: limit)
            while true {
                let sequences = try index.sequences(
                    of: subject, in: following.appID, .after(stretch.reached), limit: Self.sequencesPerStep)
                var rest = sequences.prefix { $0 <= head }
                while let first = rest.first {
                    if page.isFull || stretch.looked == Self.mostLooked {
                        stretch.hasMore = true
                        stretch.events = page.page.events
                        return stretch
                    }
                    // What is stored side by side is read in one go.
                    let most = min(rest.count, Self.mostLooked - stretch.looked)
                    let count = (1..<most).first { rest[rest.startIndex + $0] != first + Int64($0) } ?? most
                    let last = first + Int64(count) - 1
                    try statement.bind(.integer(first), at: 1)
                    try statement.bind(.integer(last), at: Self.lastPlaceholder)
                    var reached = last
                    while !page.isFull, try statement.step() {
                        if Self.isIn(following.partition, statement) { _ = page.add(statement) }
                        if page.isFull { reached = statement.int64(0) }
                    }
                    statement.rewind()
                    let looked = Int(reached - first) + 1
                    stretch.looked += looked
                    stretch.reached = reached
                    rest = rest.dropFirst(looked)
                }
                if sequences.count < Self.sequencesPerStep || sequences.last.map({ $0 > head }) == true {
                    stretch.reached = head
                    stretch.events = page.page.events
                    return stretch
                }
            }
        }
    }

    /// Finds the number after which the events begin that were received at a time or later. Clocks are set back, and a
    /// request may take its time, so it looks from a minute before on.
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
            // Those of a person who was deleted say nothing.
            var time: Int64?
            for sequence in try index.sequences(of: .app, in: appID, .after(middle), limit: 16)
            where time == nil {
                time = try received(sequence)
            }
            if let time, time < milliseconds - 60_000 { low = middle + 1 } else { high = middle }
        }
        var looked = 0
        while looked < Self.mostLooked {
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

    /// Reads a log that this version's gateway has opened. `atOnce` reads all of it as of one moment, which spares the locks
    /// of each statement.
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
                throw GatewayError(
                    .conflict, "this folder is of an earlier version: run its gateway once with this one")
            }
            return try body(sqlite, log)
        }
    }

    private static func statement(
        _ following: EventFollowing, _ sqlite: SQLiteConnection
    ) throws -> SQLiteStatement {
        var conditions = ["seq BETWEEN ?1 AND ?\(lastPlaceholder)", "app_id = ?3"]
        var values: [SQLValue] = [.null, .null, .text(following.appID)]
        func add(_ column: String, _ value: String?) {
            guard let value else { return }
            values.append(.text(value))
            conditions.append("\(column) = ?\(values.count)")
        }
        add("user_id", following.filter.userID)
        add("type", following.filter.type)
        add("name", following.filter.name)
        if let verdict = following.filter.verdict {
            conditions.append(condition(verdict, hasVerdicts: true))
        }
        let statement = try sqlite.cached(
            """
            SELECT \(EventPageBuilder.columns), \(EventPageBuilder.proofColumns), sender FROM event
            WHERE \(conditions.joined(separator: " AND ")) ORDER BY seq
            """)
        try statement.bind(values)
        return statement
    }

    /// An event that became a user's after it was stored stays in the part of its device, or it would go from one that
    /// was not read to one that was.
    private static func isIn(_ partition: EventPartition, _ row: SQLiteStatement) -> Bool {
        guard partition.count > 1 else { return true }
        let wasAnonymous = row.optionalText(16) == EventBatch.Event.anonymousContentSender
        let id = (wasAnonymous ? nil : row.optionalText(3)) ?? row.optionalText(4) ?? ""
        return EventPartition.index(of: id, count: partition.count) == partition.index
    }
}

extension EventLogState {
    /// The number of the newest event that was stored.
    func head(_ sqlite: SQLiteConnection) throws -> Int64 {
        let last = try sqlite.first("SELECT max(seq) FROM event") { $0.optionalInt64(0) } ?? nil
        return max(last ?? 0, next - 1)
    }
}
