internal import CountersignSQLite
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// Where the positions of events begin, and up to where they may be read.
///
/// A position is `base + (transaction id << 12 | ordinal)`. Of the transactions that are still open the oldest may yet
/// store something, so whoever reads stops before it.
package enum EventHorizon {
    /// Events of one transaction, at most: their ordinals have 12 bits, and 0 is not used.
    static let mostOfTransaction = 4_095
    /// Another timeline, or another cluster, begins so much higher: its transaction ids may be lower than those that were
    /// lost. More than all transactions of a cluster without a new timeline need.
    private static let step: Int64 = 1 << 44

    /// SQL for what the events that may be read are before.
    static func end(_ connection: PostgreSQLConnection) throws -> String {
        "(\(try base(connection)) + (pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 12))"
    }

    /// The number of the newest event that may be read.
    static func head(_ connection: PostgreSQLConnection) throws -> Int64 {
        let base = try base(connection)
        return try connection.first("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint") {
            base + $0.int64(0) << 12 - 1
        } ?? 0
    }

    /// How long to wait between two looks for the end of a transaction, in seconds: mostly it is near.
    private static let pauses = (shortest: 0.001, longest: 0.05)

    /// Waits until every transaction has ended that is open now, so that whatever was stored before may be read. Returns
    /// false when that takes longer; one that another program has forgotten may stay open for hours.
    ///
    /// It asks again and again: the server tells nobody that another's transaction has ended.
    package static func settle(_ connection: PostgreSQLConnection, seconds: Double) throws -> Bool {
        let start = Uptime.milliseconds
        let now = "pg_current_snapshot()"
        let next = try connection.first("SELECT pg_snapshot_xmax(\(now))::text::bigint") { $0.int64(0) } ?? 0
        var pause = pauses.shortest
        while try connection.first(
            "SELECT pg_snapshot_xmin(\(now))::text::bigint >= ?1", .integer(next), row: { $0.int(0) }) != 1
        {
            if Double(Uptime.milliseconds - start) > seconds * 1_000 { return false }
            Thread.sleep(forTimeInterval: pause)
            pause = min(2 * pause, pauses.longest)
        }
        return true
    }

    /// What positions of this cluster and timeline begin at. It holds as long as the connection does: a standby that takes
    /// over ends none that was ours, for ours are to primaries alone.
    static func base(_ connection: PostgreSQLConnection) throws -> Int64 {
        if let base = connection.base { return base }
        var found = try connection.first("SELECT own_base()") { $0.optionalInt64(0) } ?? nil
        if found == nil {
            // All that have just connected add the same row, and one does.
            try connection.execute(
                """
                BEGIN;
                LOCK TABLE position_base IN SHARE ROW EXCLUSIVE MODE;
                INSERT INTO position_base
                    SELECT (SELECT system_identifier FROM pg_control_system()),
                        ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int,
                        coalesce(max(greatest(base, reached)) + \(step), 0)
                    FROM position_base
                    ON CONFLICT DO NOTHING;
                COMMIT
                """)
            found = try connection.first("SELECT own_base()") { $0.int64(0) }
        }
        connection.base = found
        return found ?? 0
    }

    /// Lets positions begin after all that another log has given, before anything is stored.
    static func raise(above head: Int64, _ connection: PostgreSQLConnection) throws {
        let base = try base(connection)
        try connection.run(
            """
            UPDATE position_base SET base = greatest(base, ?2), reached = greatest(reached, ?2) WHERE base = ?1
            """, .integer(base), .integer(head))
        connection.base = nil
    }

    /// Keeps how far positions have come, for when the database is copied into another cluster.
    static func note(_ connection: PostgreSQLConnection) throws {
        let base = try base(connection)
        try connection.execute(
            """
            UPDATE position_base
            SET reached = \(base) + (pg_snapshot_xmax(pg_current_snapshot())::text::bigint << 12)
            WHERE base = \(base)
            """)
    }
}
