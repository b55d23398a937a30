internal import CountersignCore
internal import CountersignSQLite
internal import GatewayModel

extension SQLiteEventLog {
    func positions() throws(GatewayError) -> EventPositions {
        try snapshot { sqlite, log in EventPositions(logID: log.id, head: try log.head(sqlite)) }
    }

    func follow(
        _ query: EventQuery, after sequence: Int64, limit: Int
    ) throws(GatewayError) -> EventRange {
        try snapshot { try follow(query, after: sequence, limit: limit, $0, $1) }
    }

    /// Follows events within the connection's current transaction.
    func follow(
        _ query: EventQuery, after sequence: Int64, limit: Int, _ sqlite: SQLiteConnection,
        _ log: EventLogState
    ) throws -> EventRange {
        // Sequence numbers follow the order of commits, so all events up to `head` are committed.
        let head = try log.head(sqlite)
        let floor = try EventFloor.read(of: query.appID, sqlite)
        var range = EventRange(scannedThrough: sequence)
        if sequence < head {
            // The index may still have entries of events that retention has deleted.
            range = try scan(
                query, .after(max(sequence, floor)), through: head, limit: limit, sqlite, log)
            if !range.hasMore { range.scannedThrough = head }
        }
        range.gap = EventGap(after: sequence, floor: floor)
        return range
    }

    /// The sequence number before the first event received at or after a time; lower if the search ends after its
    /// limit of events. The search starts a minute before the time. The order of events may differ from the times of
    /// receipt, because clocks are set back and requests take time.
    func sequence(
        before milliseconds: Int64, of appID: String, after floor: Int64, _ sqlite: SQLiteConnection,
        _ log: EventLogState
    ) throws -> Int64 {
        let head = try log.head(sqlite)
        let index = try index(sqlite)
        func received(_ sequence: Int64) throws -> Int64? {
            try sqlite.first("SELECT received_ms FROM event WHERE seq = ?1", .integer(sequence)) {
                $0.int64(0)
            }
        }
        var (low, high) = (floor, head)
        while low < high {
            let middle = (low + high) / 2
            // Skips events of deleted customers, which have no row.
            var time: Int64?
            for sequence in try index.sequences(of: .app, in: appID, .after(middle), limit: 16)
            where time == nil {
                time = try received(sequence)
            }
            if let time, time < milliseconds - 60_000 { low = middle + 1 } else { high = middle }
        }
        var query = EventQuery(appID: appID)
        query.fromMilliseconds = milliseconds
        // The scan skips ranges of earlier events. A few incomplete ranges are searched.
        query.maximumScanned = 3 * EventPage.maximumScanned
        let range = try scan(query, .after(low), through: head, limit: 1, sqlite, log)
        if let event = range.events.first { return event.sequence - 1 }
        return range.hasMore ? range.scannedThrough : max(range.scannedThrough, head)
    }

    func index(_ sqlite: SQLiteConnection) throws -> EventIndexReader {
        try EventIndexReader(sqlite, folder: IndexFolder.path(besides: readers.path), runs: runs)
    }
}

extension EventLogState {
    /// The highest sequence number that was assigned.
    func head(_ sqlite: SQLiteConnection) throws -> Int64 {
        let last = try sqlite.first("SELECT max(seq) FROM event") { $0.optionalInt64(0) } ?? nil
        return max(last ?? 0, next - 1)
    }
}
