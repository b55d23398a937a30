internal import CountersignSQLite

/// Deletes events and customers that are older or more than an app keeps, a few at a time. Used by the writer's thread.
///
/// It walks each app's events from the oldest on and remembers how far it came, so an event is looked at once whatever
/// the number of sweeps. Freed pages are used again; the file itself does not shrink.
struct RetentionSweeper {
    /// Rows that one step looks at, so that a request never waits long for it.
    static let rowsPerStep = 200

    /// The tables of it in `events.sqlite`.
    static let script = """
        CREATE TABLE app_usage (
            app_id TEXT PRIMARY KEY,
            events INTEGER NOT NULL,
            bytes INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        INSERT INTO app_usage
            SELECT app_id, count(*), sum(length(CAST(body AS BLOB))) FROM event GROUP BY app_id;
        CREATE TABLE retention_mark (
            app_id TEXT PRIMARY KEY,
            seq INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    private var waiting: [(appID: String, rules: AppRules)] = []
    private var nowMilliseconds: Int64 = 0

    /// True when there is nothing left to do in this sweep.
    var isDone: Bool { waiting.isEmpty }

    /// Begins a sweep over the apps that do not keep everything.
    mutating func begin(_ rules: [String: AppRules], nowMilliseconds: Int64) {
        self.nowMilliseconds = nowMilliseconds
        waiting = rules.filter { $0.value.retentionDays != nil || $0.value.retentionBytes != nil }
            .map { (appID: $0.key, rules: $0.value) }
    }

    /// Does a part of the sweep in a transaction of its own.
    mutating func step(_ connection: SQLiteConnection) throws {
        guard let (appID, rules) = waiting.last else { return }
        let goesOn = try connection.transaction { try sweep(appID, rules, connection) }
        if !goesOn { waiting.removeLast() }
    }

    /// - Returns: True when there may be more to delete.
    private func sweep(_ appID: String, _ rules: AppRules, _ connection: SQLiteConnection) throws -> Bool {
        let cutoff = rules.retentionDays.map { nowMilliseconds - Int64($0) * 86_400_000 } ?? Int64.min
        let usage = try connection.first(
            "SELECT bytes + customer_bytes FROM app_usage WHERE app_id = ?1", .text(appID)
        ) { $0.int64(0) }
        var excess = rules.retentionBytes.map { (usage ?? 0) - Int64($0) } ?? 0
        let before =
            try connection.first("SELECT seq FROM retention_mark WHERE app_id = ?1", .text(appID)) {
                $0.int64(0)
            } ?? 0
        let rows = try connection.all(
            """
            SELECT seq, CASE WHEN app_id = ?1 THEN received_ms END,
                CASE WHEN app_id = ?1 THEN length(CAST(body AS BLOB)) END
            FROM event WHERE seq > ?2 ORDER BY seq LIMIT ?3
            """, .text(appID), .integer(before), .integer(Int64(Self.rowsPerStep))
        ) { (seq: $0.int64(0), received: $0.isNull(1) ? nil : $0.int64(1), bytes: $0.int64(2)) }
        // Of events and customers that are too much the older go first. An app's first event may lie behind many of others.
        let oldest =
            rows.first { $0.received != nil }?.received ?? (rows.count < Self.rowsPerStep ? Int64.max : nil)
        if let oldest,
            try forgetCustomer(of: appID, cutoff, oldestEvent: oldest, hasExcess: excess > 0, connection)
        {
            return true
        }
        var mark = before
        var deleted: (events: Int64, bytes: Int64) = (0, 0)
        var isComplete = rows.count < Self.rowsPerStep
        for row in rows {
            if let received = row.received {
                guard received < cutoff || excess > 0 else {
                    isComplete = true
                    break
                }
                try connection.run("DELETE FROM event WHERE seq = ?1", .integer(row.seq))
                deleted = (deleted.events + 1, deleted.bytes + row.bytes)
                excess -= row.bytes
            }
            mark = row.seq
        }
        if mark > before {
            try connection.run(
                """
                INSERT INTO retention_mark VALUES (?1, ?2) ON CONFLICT (app_id) DO UPDATE SET seq = ?2
                """, .text(appID), .integer(mark))
        }
        if deleted.events > 0 {
            try connection.run(
                "UPDATE app_usage SET events = events - ?2, bytes = bytes - ?3 WHERE app_id = ?1",
                .text(appID), .integer(deleted.events), .integer(deleted.bytes))
        }
        return !isComplete
    }

    /// Forgets one customer that has not been seen for long, or a part of one that has much.
    ///
    /// - Returns: False when there is none to forget.
    private func forgetCustomer(
        of appID: String, _ cutoff: Int64, oldestEvent: Int64, hasExcess: Bool, _ connection: SQLiteConnection
    ) throws -> Bool {
        let found = try connection.first(
            "SELECT id, seen_ms FROM customer WHERE app_id = ?1 ORDER BY seen_ms LIMIT 1", .text(appID)
        ) { (id: $0.text(0), seen: $0.int64(1)) }
        guard let found, found.seen < cutoff || hasExcess && found.seen <= oldestEvent else { return false }
        for (table, key) in [
            ("customer_property", "name"), ("inbox_read", "seq"), ("customer_identifier", "seq"),
        ] {
            try connection.run(
                """
                DELETE FROM \(table) WHERE customer_id = ?1 AND \(key) IN (
                    SELECT \(key) FROM \(table) WHERE customer_id = ?1 LIMIT ?2)
                """, .text(found.id), .integer(Int64(Self.rowsPerStep)))
            if connection.changes == Self.rowsPerStep { return true }
        }
        try connection.run("DELETE FROM customer_merge WHERE destination_id = ?1", .text(found.id))
        try connection.run("DELETE FROM customer WHERE id = ?1", .text(found.id))
        return true
    }
}
