internal import CountersignCore
internal import CountersignSQLite
internal import GatewayModel

/// The identity of an event log, and the features of its schema.
struct EventLogState {
    static let idBytes = 16

    /// A random id, stored in each run, so that the runs of another log are not used.
    let id: [UInt8]
    let secret: [UInt8]
    /// The next sequence number if the newest events were deleted; otherwise a lower bound of it.
    let next: Int64
    /// False in a file of an earlier version.
    let hasClaims: Bool
    /// False in a file of an earlier version.
    let hasPartitionGaps: Bool

    /// Returns nil for a file that no event writer has opened yet.
    static func read(_ sqlite: SQLiteConnection) throws -> EventLogState? {
        let tables = try sqlite.all(
            """
            SELECT name FROM sqlite_schema WHERE name = 'event_log'
                OR name = 'event' AND instr(sql, ' claims TEXT') > 0
                OR name = 'event_consumer_position' AND instr(sql, ' is_after_gap ') > 0
            """, row: { $0.text(0) })
        guard tables.contains("event_log") else { return nil }
        return try sqlite.first("SELECT id, key_secret, next_seq FROM event_log") {
            EventLogState(
                id: $0.blob(0), secret: $0.blob(1), next: $0.int64(2),
                hasClaims: tables.contains("event"),
                hasPartitionGaps: tables.contains("event_consumer_position"))
        }
    }

    static let earlierVersion = GatewayError(
        .conflict,
        "this folder was written by an earlier version: start the gateway of this version on it once")

    static let noEvents = GatewayError(
        .notFound, "there are no events yet: no gateway has stored any in this folder")

    /// Throws ``noEvents`` for a file without a schema, which a full disk can leave, and ``earlierVersion`` for one
    /// with another schema.
    static func readExisting(_ sqlite: SQLiteConnection) throws -> EventLogState {
        guard let state = try read(sqlite) else {
            let hasSchema = try sqlite.first("SELECT 1 FROM sqlite_schema LIMIT 1") { _ in true } ?? false
            throw hasSchema ? earlierVersion : noEvents
        }
        return state
    }

    /// Gives a restored copy a new id, because the copy and the original diverge. Earlier positions become invalid.
    static func renew(_ path: String) throws {
        let sqlite = try SQLiteConnection(path: path)
        guard try read(sqlite) != nil else { return }
        try sqlite.run("UPDATE event_log SET id = ?1", .blob([UInt8].random(count: idBytes)))
        try sqlite.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    /// Creates the row of a log's state.
    static func begin(_ sqlite: SQLiteConnection) throws {
        try sqlite.run(
            "INSERT INTO event_log VALUES (1, ?1, ?2, 1)", .blob(.random(count: idBytes)),
            .blob(.random(count: IndexHasher.secretBytes)))
    }
}
