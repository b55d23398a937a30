internal import CountersignCore
internal import CountersignSQLite
internal import GatewayModel

/// The identity of an event log.
struct EventLogState {
    static let idBytes = 16

    /// A random id, stored in each run, so that the runs of another log are not used.
    let id: [UInt8]
    let secret: [UInt8]
    /// The next sequence number if the newest events were deleted; otherwise a lower bound of it.
    let next: Int64
    /// False in a file of an earlier version.
    let hasShortColumns: Bool
    /// False in a file of an earlier version.
    let hasClaims: Bool
    /// False in a file of an earlier version.
    let hasPartitionGaps: Bool

    /// Returns nil for a file of an earlier version, which has no index of events.
    static func read(_ sqlite: SQLiteConnection) throws -> EventLogState? {
        let tables = try sqlite.all(
            """
            SELECT name FROM sqlite_schema WHERE name IN ('event_log', 'event_key')
                OR name = 'event' AND instr(sql, ' claims TEXT') > 0
                OR name = 'event_consumer_position' AND instr(sql, ' is_after_gap ') > 0
            """, row: { $0.text(0) })
        guard tables.contains("event_log") else { return nil }
        return try sqlite.first("SELECT id, key_secret, next_seq FROM event_log") {
            EventLogState(
                id: $0.blob(0), secret: $0.blob(1), next: $0.int64(2),
                hasShortColumns: tables.contains("event_key"), hasClaims: tables.contains("event"),
                hasPartitionGaps: tables.contains("event_consumer_position"))
        }
    }

    /// Gives a restored copy a new id, because the copy and the original diverge. Earlier positions become invalid.
    static func renew(_ path: String) throws {
        let sqlite = try SQLiteConnection(path: path)
        guard try read(sqlite) != nil else { return }
        try sqlite.run("UPDATE event_log SET id = ?1", .blob([UInt8].random(count: idBytes)))
        try sqlite.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    /// Creates the row of a log's state. Sequence numbers continue after the last number of `AUTOINCREMENT`.
    static func begin(_ sqlite: SQLiteConnection) throws {
        try sqlite.run(
            """
            INSERT INTO event_log
                VALUES (1, ?1, ?2, 1 + coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0))
            """, .blob([UInt8].random(count: idBytes)),
            .blob([UInt8].random(count: IndexHasher.secretBytes)))
    }
}
