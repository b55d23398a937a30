internal import CountersignCore
internal import CountersignSQLite

/// What commits have added to `app_usage` and `key_use` and is not written there yet.
///
/// Each of the tables is a page in every commit that writes it, so they are written once a second. The row of `counted` says up
/// to which event they are complete. What came after that is counted from the events themselves: when the log is opened,
/// so that a crash loses no count, and by whoever deletes events beside the writer.
struct EventCounts {
    static let schema = """
        CREATE TABLE counted (
            only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
            seq INTEGER NOT NULL
        ) STRICT;
        INSERT INTO counted SELECT 1, coalesce(max(seq), 0) FROM event;
        """

    /// What is added to an app.
    private struct Usage {
        var events = 0
        var bytes = 0
    }

    private var usage: BytewiseDictionary<Usage> = [:]
    /// The event after which `usage` begins, and the last one in it.
    private var counted: Int64
    private var last: Int64

    /// Counts what an earlier run has left, in a transaction of its own.
    ///
    /// With `uses` those of keys too, as far as events tell them: a request whose events were all duplicates has left none. Not
    /// when this process still has them.
    init(_ connection: SQLiteConnection, uses: Bool) throws {
        let reached = try Self.reached(connection)
        let newest = try connection.first("SELECT max(seq) FROM event") { $0.int64(0) } ?? 0
        if newest > reached {
            try connection.transaction {
                if uses { try Self.addUses(after: reached, connection) }
                try Self.settle(connection)
            }
        }
        counted = max(reached, newest)
        last = counted
    }

    var isEmpty: Bool { last == counted }

    /// Bytes of an app's events that are not in the table yet.
    func bytes(of appID: String) -> Int64 { Int64(usage[appID]?.bytes ?? 0) }

    /// Notes events that are part of the commit; the last of them is `sequence`.
    mutating func add(events: Int, bytes: Int, to appID: String, through sequence: Int64) {
        Self.note(events, bytes, in: &usage[appID, default: Usage()])
        last = sequence
    }

    private static func note(_ events: Int, _ bytes: Int, in usage: inout Usage) {
        usage.events += events
        usage.bytes += bytes
    }

    /// Writes all into the tables, within the transaction of a commit. This is empty then, which holds only if the commit
    /// succeeds.
    mutating func write(_ uses: KeyUseTally, to connection: SQLiteConnection) throws {
        if try Self.reached(connection) == counted {
            for (appID, added) in usage {
                try connection.run(
                    """
                    INSERT INTO app_usage (app_id, events, bytes) VALUES (?1, ?2, ?3)
                    ON CONFLICT (app_id) DO UPDATE SET events = events + ?2, bytes = bytes + ?3
                    """, .text(appID), .integer(Int64(added.events)), .integer(Int64(added.bytes)))
            }
            if last > counted { try Self.note(last, connection) }
        } else {
            // Somebody else has counted a part of it.
            try Self.settle(connection)
        }
        try uses.write(to: connection)
        usage = [:]
        counted = max(last, try Self.reached(connection))
        last = counted
    }

    /// Completes `app_usage` from the events, within a transaction. Whoever deletes events does so first: an event that was
    /// not counted must not be taken off. In a file of an earlier version they are always complete.
    static func settle(_ connection: SQLiteConnection) throws {
        guard try isThere(connection) else { return }
        try connection.run(
            """
            INSERT INTO app_usage (app_id, events, bytes)
                SELECT app_id, count(*), sum(length(CAST(body AS BLOB))) FROM event
                WHERE seq > (SELECT seq FROM counted) GROUP BY app_id
                ON CONFLICT (app_id) DO UPDATE
                SET events = events + excluded.events, bytes = bytes + excluded.bytes
            """)
        try connection.run("UPDATE counted SET seq = max(seq, (SELECT coalesce(max(seq), 0) FROM event))")
    }

    /// The events of all apps, those too that are not in the tables yet.
    static func events(_ connection: SQLiteConnection) throws -> Int64 {
        let counted = "coalesce((SELECT sum(events) FROM app_usage), 0)"
        let later = "(SELECT count(*) FROM event WHERE seq > (SELECT seq FROM counted))"
        // One statement, so that nothing is counted between the two.
        return try connection.first("SELECT \(counted)" + (isThere(connection) ? " + \(later)" : "")) {
            $0.int64(0)
        } ?? 0
    }

    private static func isThere(_ connection: SQLiteConnection) throws -> Bool {
        try connection.first("SELECT 1 FROM sqlite_schema WHERE name = 'counted'") { _ in true } == true
    }

    private static func reached(_ connection: SQLiteConnection) throws -> Int64 {
        try connection.first("SELECT seq FROM counted") { $0.int64(0) } ?? 0
    }

    private static func note(_ sequence: Int64, _ connection: SQLiteConnection) throws {
        try connection.run("UPDATE counted SET seq = ?1", .integer(sequence))
    }

    private static func addUses(after sequence: Int64, _ connection: SQLiteConnection) throws {
        try connection.run(
            """
            INSERT INTO key_use
                SELECT app_id, key_id, count(DISTINCT request_id), max(received_ms) FROM \(EventLogSchema.view)
                WHERE seq > ?1 AND key_id IS NOT NULL GROUP BY app_id, key_id
                ON CONFLICT (app_id, key_id) DO UPDATE
                SET verified = verified + excluded.verified, last_ms = max(last_ms, excluded.last_ms)
            """, .integer(sequence))
    }
}
