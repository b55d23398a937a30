internal import CountersignSQLite
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// The positions of events, and the end of the readable positions.
///
/// A position is `base + (transaction id << 12 | ordinal)`. The oldest open transaction may still store
/// events, so readers stop before it.
package enum EventHorizon {
    /// The maximum number of events in a transaction: ordinals have 12 bits, and 0 is not used.
    static let mostOfTransaction = 4_095
    /// The distance from the highest recorded position to the base of a new timeline or cluster. Transaction ids may
    /// be lower after the change. The distance covers 2^32 transactions that were not recorded.
    private static let step: Int64 = 1 << 44

    /// An SQL expression for the end of the readable positions, exclusive.
    static func end(_ connection: PostgreSQLConnection) throws -> String {
        "(\(try base(connection)) + (pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 12))"
    }

    /// The highest readable position. If `isReadable` is false, the highest position that an event stored until now can
    /// have, including events that are not readable yet.
    static func head(_ connection: PostgreSQLConnection, isReadable: Bool = true) throws -> Int64 {
        let base = try base(connection)
        let end = isReadable ? "xmin" : "xmax"
        return try connection.first("SELECT pg_snapshot_\(end)(pg_current_snapshot())::text::bigint") {
            base + $0.int64(0) << 12 - 1
        } ?? 0
    }

    /// Back-off while waiting for transactions to end, in seconds.
    private static let pauses = (shortest: 0.001, longest: 0.05)

    /// Waits until all transactions that are open now have ended, so that everything stored before is readable. With
    /// `position`, waits only until the event at that position is readable. Returns false after the time limit, because
    /// an abandoned transaction may stay open for hours.
    ///
    /// Polls, because the server does not notify about the end of transactions.
    package static func waitForTransactions(
        _ connection: PostgreSQLConnection, seconds: Double, before position: Int64? = nil
    ) throws -> Bool {
        let start = Uptime.milliseconds
        let now = "pg_current_snapshot()"
        let next =
            try position.map { try ($0 - base(connection)) >> 12 + 1 } ?? connection.first(
                "SELECT pg_snapshot_xmax(\(now))::text::bigint"
            ) { $0.int64(0) } ?? 0
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

    /// The base of positions for this cluster and timeline. Cached for the life of the connection, because
    /// connections go to primaries only and do not survive a failover.
    static func base(_ connection: PostgreSQLConnection) throws -> Int64 {
        if let base = connection.base { return base }
        var found = try connection.first("SELECT own_base()") { $0.optionalInt64(0) } ?? nil
        if found == nil {
            // Concurrent connections insert the same row, so conflicts are ignored.
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

    /// Raises the base above all positions of another log, before events are stored.
    static func raise(above head: Int64, _ connection: PostgreSQLConnection) throws {
        let base = try base(connection)
        try connection.run(
            """
            UPDATE position_base SET base = greatest(base, ?2), reached = greatest(reached, ?2) WHERE base = ?1
            """, .integer(base), .integer(head))
        connection.base = nil
    }

    /// Records the end of the positions so far. The base of a new timeline or cluster begins after it.
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
