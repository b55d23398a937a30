internal import CountersignSQLite
internal import GatewayModel
internal import GatewayStorage

/// The rows of consumers, within a transaction.
///
/// A lease is part of its partition's row, so the gateway that updates the row has the lease.
struct EventConsumerTable {
    struct Row {
        let id: EventConsumerID
        let settings: EventConsumerSettings
        let createdMilliseconds: Int64
        let partitions: [Partition]
        let passedGap: EventGap
    }

    struct Partition {
        let position: Int64
        /// The deadline of the last lease, which may have expired.
        let leaseEnd: Int64?

        /// The deadline of the current lease; nil without one.
        func lease(at now: Int64) -> Int64? {
            leaseEnd.flatMap { EventConsumerRules.hasEnded($0, at: now) ? nil : $0 }
        }

        func isFree(at now: Int64) -> Bool { lease(at: now) == nil }
    }

    /// The current lease, or the last acknowledged one.
    struct Lease {
        let partition: Int
        let position: Int64
        let last: Int64
        let reached: Int64
        /// The acknowledged position; nil before the acknowledgement.
        let settled: Int64?
    }

    private static let isIt = ConsumerRows.isIt
    private static let noLease =
        "lease_id = NULL, lease_last = NULL, lease_reached = NULL, lease_until_ms = NULL"

    /// The parameter with this number is the time, and the next one the latest valid deadline
    /// (`EventConsumerRules`).
    private static func isFree(at parameter: Int) -> String {
        "(lease_id IS NULL OR lease_until_ms <= ?\(parameter) OR lease_until_ms > ?\(parameter + 1))"
    }

    let connection: any SQLConnection
    let rows: ConsumerRows

    init(connection: any SQLConnection) {
        self.connection = connection
        rows = ConsumerRows(connection)
    }

    // MARK: The list

    func row(_ id: EventConsumerID) throws -> Row? {
        let partitions = try connection.all(
            """
            SELECT seq, lease_until_ms FROM event_consumer_position WHERE \(Self.isIt) ORDER BY partition
            """, ConsumerRows.key(id)
        ) { Partition(position: $0.int64(0), leaseEnd: $0.optionalInt64(1)) }
        return try rows.row(id).map { row in
            Row(
                id: id, settings: row.settings(partitions: partitions.count),
                createdMilliseconds: row.createdMilliseconds, partitions: partitions,
                passedGap: row.passedGap)
        }
    }

    /// Whether the consumer exists. Locks it until the end of the transaction.
    func holds(_ id: EventConsumerID) throws -> Bool {
        try connection.all(
            "SELECT 1 FROM event_consumer WHERE \(Self.isIt) FOR KEY SHARE", ConsumerRows.key(id)
        ) { _ in true }.first == true
    }

    /// Counts the app's consumers of this kind, and prevents the creation of more until the end of the
    /// transaction.
    func countAlone(_ kind: EventConsumerID.Kind, of appID: String) throws -> Int {
        try connection.run(
            "SELECT pg_advisory_xact_lock(hashtextextended('consumers ' || ?1, 0))", .text(appID))
        return try rows.count(kind, of: appID)
    }

    /// Returns false when a consumer of this name exists.
    func insert(
        _ id: EventConsumerID, _ settings: EventConsumerSettings, at sequence: Int64, milliseconds: Int64
    ) throws -> Bool {
        guard try rows.insert(id, settings, milliseconds: milliseconds) else { return false }
        try rows.run(
            """
            INSERT INTO event_consumer_position (app_id, kind, name, partition, seq)
            SELECT ?1, ?2, ?3, number, ?5::bigint FROM generate_series(0, ?4::bigint - 1) AS number
            """, id, .integer(Int64(settings.partitions)), .integer(sequence))
        return true
    }

    /// Sets all positions and ends all leases. Returns false when the consumer does not exist.
    func place(_ id: EventConsumerID, after sequence: Int64) throws -> Bool {
        guard try holds(id) else { return false }
        try rows.run(
            """
            UPDATE event_consumer_position SET seq = ?4, \(Self.noLease), settled_id = NULL, settled_seq = NULL
            WHERE \(Self.isIt)
            """, id, .integer(sequence))
        try rows.noteCaughtUp(id)
        return true
    }

    // MARK: Leases

    /// Tries to reserve a partition for the rest of the transaction. Uses an advisory lock, because a row
    /// lock would assign a transaction id, and readers of events wait for the oldest open transaction with an
    /// id.
    func reserve(_ partition: Int, of id: EventConsumerID) throws -> Bool {
        try connection.all(
            """
            SELECT pg_try_advisory_xact_lock(
                hashtextextended(concat_ws('/', 'lease', ?1::text, ?2::text, ?3::text, ?4::text), 0))
            """, ConsumerRows.key(id) + [.text(String(partition))]
        ) { $0.int(0) != 0 }.first == true
    }

    /// Leases the events read from `position` on. Returns false if the position has changed or the partition
    /// is leased.
    func lease(
        _ lease: String, _ partition: Int, of id: EventConsumerID, from position: Int64, last: Int64,
        reached: Int64, until milliseconds: Int64, at now: Int64
    ) throws -> Bool {
        try rows.run(
            """
            UPDATE event_consumer_position SET lease_id = ?6, lease_last = ?7, lease_reached = ?8,
                lease_until_ms = ?9, settled_id = NULL, settled_seq = NULL
            WHERE \(Self.isIt) AND partition = ?4 AND seq = ?5 AND \(Self.isFree(at: 10))
            """, id, .integer(Int64(partition)), .integer(position), .text(lease), .integer(last),
            .integer(reached), .integer(milliseconds), .integer(now),
            .integer(EventConsumerRules.lastDeadline(at: now)))
        return connection.changes > 0
    }

    /// Advances the position of a free partition over events that do not match the filter. The next leased
    /// event reports a gap among them.
    func pass(
        _ partition: Int, of id: EventConsumerID, from position: Int64, to reached: Int64, gap: EventGap,
        at now: Int64
    ) throws {
        try rows.run(
            """
            UPDATE event_consumer_position SET seq = ?6, \(Self.noLease)
            WHERE \(Self.isIt) AND partition = ?4 AND seq = ?5 AND \(Self.isFree(at: 7))
            """, id, .integer(Int64(partition)), .integer(position), .integer(reached), .integer(now),
            .integer(EventConsumerRules.lastDeadline(at: now)))
        if connection.changes > 0, gap.isOpen { try rows.noteGap(id, atMilliseconds: now) }
    }

    /// Finds and locks a lease with this id. An expired lease can be found until its partition is leased
    /// again.
    func find(_ lease: String, of id: EventConsumerID) throws -> Lease? {
        try connection.all(
            """
            SELECT partition, seq, lease_last, lease_reached,
                CASE WHEN settled_id = ?4 AND lease_id IS DISTINCT FROM ?4 THEN settled_seq END
            FROM event_consumer_position WHERE \(Self.isIt) AND (lease_id = ?4 OR settled_id = ?4) FOR UPDATE
            """, ConsumerRows.key(id) + [.text(lease)]
        ) {
            Lease(
                partition: $0.int(0), position: $0.int64(1), last: $0.int64(2), reached: $0.int64(3),
                settled: $0.optionalInt64(4))
        }.first
    }

    /// Acknowledges a lease. After a partial acknowledgement, the rest stays leased.
    func settle(
        _ lease: String, _ found: Lease, of id: EventConsumerID, through sequence: Int64, at now: Int64
    ) throws {
        let end = sequence >= found.reached ? ", \(Self.noLease), settled_id = ?5, settled_seq = ?4" : ""
        try rows.run(
            "UPDATE event_consumer_position SET seq = ?4\(end) WHERE \(Self.isIt) AND lease_id = ?5", id,
            .integer(sequence), .text(lease))
        try rows.noteAccepted(id, atMilliseconds: now)
    }

    /// Returns false when the lease does not exist.
    func release(_ lease: String, of id: EventConsumerID) throws -> Bool {
        try rows.run(
            """
            UPDATE event_consumer_position SET \(Self.noLease) WHERE \(Self.isIt) AND lease_id = ?4
            """, id, .text(lease))
        return connection.changes > 0
    }
}
