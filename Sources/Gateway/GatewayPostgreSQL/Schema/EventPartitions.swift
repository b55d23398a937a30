internal import CountersignCore
internal import CountersignSQLite
internal import GatewayStorage

/// The daily partitions of `event` and `message_id`, created before their day. Rows without a partition go to the
/// default partition, and move when their partition is created.
enum EventPartitions {
    static let daysAhead = 3
    /// The number of past days whose message ids have a partition. Older UUIDv7 go to the default partition.
    static let idDays = 45

    /// The current day of the database's clock, in days since 1970.
    static func today(_ connection: PostgreSQLConnection) throws -> Int {
        try connection.first("SELECT floor(extract(epoch FROM now()) / 86400)::int") { $0.int(0) } ?? 0
    }

    static func make(_ connection: PostgreSQLConnection) throws {
        let today = try today(connection)
        let existing = BytewiseSet(
            try connection.all(
                """
                SELECT child.relname FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
                WHERE inhparent IN ('countersign.event'::regclass, 'countersign.message_id'::regclass)
                """
            ) { $0.text(0) })
        for (table, key, days) in [
            ("event", "day", today...today + daysAhead),
            ("message_id", "bucket", today - idDays...today + daysAhead),
        ] {
            let script = days.filter { !existing.contains("\(table)_\($0)") }
                .map { add($0, to: table, key: key) }.joined()
            // Locks one table per transaction, because writers and deletions lock both in different orders.
            if !script.isEmpty { try connection.transaction(lock) { try connection.execute(script) } }
        }
    }

    /// The day of a partition, in days since 1970; nil for the default partition.
    static func day(of table: String) -> Int? { table.split(separator: "_").last.flatMap { Int($0) } }

    /// Creates the partition of a past day, for a copy into an otherwise unused database.
    static func make(pastDay day: Int64, _ connection: PostgreSQLConnection) throws {
        guard
            try connection.first("SELECT to_regclass('countersign.event_\(day)') IS NULL", row: { $0.int(0) })
                == 1
        else { return }
        try connection.transaction { try connection.execute(add(Int(day), to: "event", key: "day")) }
    }

    private static func add(_ day: Int, to table: String, key: String) -> String {
        // The lock prevents inserts into the default partition until the new partition is attached.
        """
        LOCK TABLE \(table) IN SHARE ROW EXCLUSIVE MODE;
        CREATE TABLE \(table)_\(day) (LIKE \(table) INCLUDING ALL);
        WITH moved AS (DELETE FROM \(table)_default WHERE \(key) = \(day) RETURNING *)
            INSERT INTO \(table)_\(day) SELECT * FROM moved;
        ALTER TABLE \(table) ATTACH PARTITION \(table)_\(day) FOR VALUES FROM (\(day)) TO (\(day + 1));

        """
    }
}
