internal import CountersignCore
internal import CountersignSQLite
internal import GatewayModel

/// What tells one log of events from another.
struct EventLogState {
    static let idBytes = 16

    /// Random: runs of another log have another one.
    let id: [UInt8]
    /// What ids are hashed with.
    let secret: [UInt8]
    /// The number of the next event, where the newest ones were deleted; smaller than that otherwise.
    let next: Int64
    /// False in a file of an earlier version.
    let hasShortColumns: Bool

    /// Nil in a file of a version that had no index beside the log.
    static func read(_ sqlite: SQLiteConnection) throws -> EventLogState? {
        let tables = try sqlite.all(
            "SELECT name FROM sqlite_schema WHERE name IN ('event_log', 'event_key')", row: { $0.text(0) })
        guard tables.contains("event_log") else { return nil }
        return try sqlite.first("SELECT id, key_secret, next_seq FROM event_log") {
            EventLogState(
                id: $0.blob(0), secret: $0.blob(1), next: $0.int64(2),
                hasShortColumns: tables.contains("event_key"))
        }
    }

    /// Makes a log of its own of a copy, which will go on differently: positions in the other one are none in this one.
    static func renew(_ path: String) throws {
        let sqlite = try SQLiteConnection(path: path)
        guard try read(sqlite) != nil else { return }
        try sqlite.run("UPDATE event_log SET id = ?1", .blob([UInt8].random(count: idBytes)))
        try sqlite.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    /// Begins a log, after the numbers that SQLite has given out.
    static func begin(_ sqlite: SQLiteConnection) throws {
        try sqlite.run(
            """
            INSERT INTO event_log
                VALUES (1, ?1, ?2, 1 + coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0))
            """, .blob([UInt8].random(count: idBytes)),
            .blob([UInt8].random(count: IndexHasher.secretBytes)))
    }
}
