internal import CountersignSQLite
internal import GatewayStorage

/// The partitions of `event` and of `message_id`, one for each day.
///
/// A day's partition is made before the day comes. What came without one lies in the default partition, and moves when its
/// day's partition is made.
enum EventPartitions {
    /// Days that are made ahead, today not counted.
    static let daysAhead = 3
    /// Days in which a UUIDv7 may be older than its receipt and still have a day's bucket.
    static let idDays = 45

    /// Makes those that are missing, by the database's clock.
    static func make(_ connection: PostgreSQLConnection) throws {
        let today =
            try connection.first("SELECT floor(extract(epoch FROM now()) / 86400)::int") { $0.int(0) } ?? 0
        let existing = Set(
            try connection.all(
                """
                SELECT child.relname FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
                WHERE inhparent IN ('countersign.event'::regclass, 'countersign.message_id'::regclass)
                """
            ) { $0.text(0) })
        for day in today...(today + daysAhead) {
            if !existing.contains("event_\(day)") { try add(day, to: "event", key: "day", connection) }
        }
        for day in (today - idDays)...(today + daysAhead) where !existing.contains("message_id_\(day)") {
            try add(day, to: "message_id", key: "bucket", connection)
        }
    }

    private static func add(_ day: Int, to table: String, key: String, _ connection: PostgreSQLConnection)
        throws
    {
        try connection.transaction {
            // Nobody may add to the default partition what belongs into the new one.
            try connection.execute(
                """
                LOCK TABLE \(table) IN SHARE ROW EXCLUSIVE MODE;
                CREATE TABLE \(table)_\(day) (LIKE \(table) INCLUDING ALL);
                WITH moved AS (DELETE FROM \(table)_default WHERE \(key) = \(day) RETURNING *)
                    INSERT INTO \(table)_\(day) SELECT * FROM moved;
                ALTER TABLE \(table) ATTACH PARTITION \(table)_\(day) FOR VALUES FROM (\(day)) TO (\(day + 1))
                """)
        }
    }
}
