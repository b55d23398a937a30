internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
package import GatewayModel
package import GatewayStorage

/// Consumers with positions and leases in rows that all gateways share. Workers of a consumer may use any
/// gateway.
///
/// A lease is stored in its partition's row. Any gateway can acknowledge or release the lease, which expires by the
/// database's clock.
package struct PostgreSQLConsumerEngine: ConsumerEngine {
    enum Clock: Sendable {
        case database
        /// Milliseconds since 1970, for tests.
        case given(@Sendable () -> Int64)
    }

    /// The maximum number of unread events that are counted, because counting takes time.
    static let mostCounted = 100_000
    package static let generation = "0"

    private static let noLease =
        "lease_id = NULL, lease_last = NULL, lease_reached = NULL, lease_until_ms = NULL"

    /// An SQL condition: the partition has no valid lease. `parameter` is the number of the statement's parameter with
    /// the time. The next parameter has the latest valid deadline (`EventConsumerRules`).
    private static func isFree(at parameter: Int) -> String {
        "(lease_id IS NULL OR lease_until_ms <= ?\(parameter) OR lease_until_ms > ?\(parameter + 1))"
    }

    let pool: PostgreSQLPool
    /// Wakes requests that wait for events; nil outside of a running gateway.
    let arrivals: EventArrivals?
    let clock: Clock

    // MARK: The database

    package func now(_ connection: PostgreSQLConnection) throws -> Int64 {
        switch clock {
        case .given(let now): now()
        case .database:
            try connection.first("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint") {
                $0.int64(0)
            } ?? 0
        }
    }

    package func read<Value>(
        _ body: (PostgreSQLConnection) throws -> Value
    ) throws(ConsumerFailure) -> Value {
        try Self.storing { try pool.use(body) }
    }

    package func write<Value: Sendable>(
        _ body: @escaping @Sendable (PostgreSQLConnection) throws -> Value
    ) throws(ConsumerFailure) -> Value {
        try Self.storing {
            try pool.use { connection in
                try connection.retrying { try connection.transaction { try body(connection) } }
            }
        }
    }

    private static func storing<Value>(_ body: () throws -> Value) throws(ConsumerFailure) -> Value {
        do {
            return try body()
        } catch let failure as ConsumerFailure {
            throw failure
        } catch {
            let store = StoreFailure(error)
            var failure = ConsumerFailure(.storage, "\(store.summary); try again")
            failure.store = store
            throw failure
        }
    }

    package func lockList(of appID: String, _ connection: PostgreSQLConnection) throws {
        try connection.run(
            "SELECT pg_advisory_xact_lock(hashtextextended('consumers ' || ?1, 0))", .text(appID))
    }

    // MARK: The log

    package func head(_ connection: PostgreSQLConnection) throws -> Int64 {
        try EventHorizon.head(connection)
    }

    package func sequence(
        before milliseconds: Int64, of appID: String, after floor: Int64, _ connection: PostgreSQLConnection
    ) throws -> Int64 {
        try EventTimeSearch.before(milliseconds, of: appID, head: try head(connection), connection)
    }

    package func unread(
        of appID: String, after sequence: Int64, _ connection: PostgreSQLConnection
    ) throws -> (count: Int, oldestMilliseconds: Int64?) {
        let oldest = try connection.first(
            "SELECT received_ms FROM event WHERE app_id = ?1 AND position > ?2 ORDER BY position LIMIT 1",
            .text(appID), .integer(sequence)
        ) { $0.int64(0) }
        let count = try connection.first(
            """
            SELECT count(*) FROM (
                SELECT 1 FROM event WHERE app_id = ?1 AND position > ?2 LIMIT \(Self.mostCounted)) AS unread
            """, .text(appID), .integer(sequence)
        ) { $0.int(0) }
        return (count ?? 0, oldest)
    }

    package func follow(
        _ query: EventQuery, after sequence: Int64, limit: Int, _ connection: PostgreSQLConnection
    ) throws -> EventRange {
        try PostgreSQLEventLog.follow(
            query, after: sequence, limit: limit, at: Date(), connection)
    }

    // MARK: Leases

    package func deadlines(
        of row: ConsumerRows.Row, _ connection: PostgreSQLConnection
    ) throws -> [Int64?] {
        let now = try now(connection)
        return try connection.all(
            """
            SELECT lease_until_ms FROM event_consumer_position WHERE \(ConsumerRows.isIt) ORDER BY partition
            """, ConsumerRows.key(row.id)
        ) { $0.optionalInt64(0).flatMap { EventConsumerRules.hasEnded($0, at: now) ? nil : $0 } }
    }

    package func lease(
        _ partition: Int, of row: ConsumerRows.Row,
        _ read: @escaping @Sendable (PostgreSQLConnection) throws -> LeaseAttempt
    ) throws(ConsumerFailure) -> LeaseAttempt? {
        let id = row.id
        return try write { connection in
            guard try reserve(partition, of: id, connection) else { return nil }
            let attempt = try read(connection)
            let rows = ConsumerRows(connection)
            let now = try now(connection)
            let (time, last) = (
                SQLValue.integer(now), SQLValue.integer(EventConsumerRules.lastDeadline(at: now))
            )
            if let lease = attempt.lease, let held = attempt.held {
                try rows.run(
                    """
                    UPDATE event_consumer_position SET lease_id = ?6, lease_last = ?7, lease_reached = ?8,
                        lease_until_ms = ?9, settled_id = NULL, settled_seq = NULL
                    WHERE \(ConsumerRows.isIt) AND partition = ?4 AND seq = ?5 AND \(Self.isFree(at: 10))
                    """, id, .integer(Int64(partition)), .integer(held.from), .text(held.id),
                    .integer(held.last), .integer(held.scannedThrough), .integer(lease.deadlineMilliseconds),
                    time, last)
                // Another worker has leased the partition, or a seek has moved its position.
                if connection.changes == 0 { return nil }
            } else if attempt.range.scanned > 0 {
                // Advances the position over events that do not match. Must not lock the consumer's row, because
                // acknowledgements lock that row before the positions, so the two transactions could deadlock.
                _ = try rows.move(
                    id, partition, from: attempt.from, to: attempt.range.scannedThrough,
                    gap: attempt.range.gap, also: ", " + Self.noLease, if: Self.isFree(at: 7), time, last)
            }
            return attempt
        }
    }

    /// Tries to reserve a partition for the rest of the transaction. Uses an advisory lock. A row lock would assign a
    /// transaction id, and readers of events wait for the oldest open transaction with an id.
    private func reserve(
        _ partition: Int, of id: EventConsumerID, _ connection: PostgreSQLConnection
    ) throws -> Bool {
        try connection.all(
            """
            SELECT pg_try_advisory_xact_lock(
                hashtextextended(concat_ws('/', 'lease', ?1::text, ?2::text, ?3::text, ?4::text), 0))
            """, ConsumerRows.key(id) + [.text(String(partition))]
        ) { $0.int(0) != 0 }.first == true
    }

    package func acknowledge(
        _ lease: String, of id: EventConsumerID, through sequence: Int64?
    ) throws(ConsumerFailure) -> Int64 {
        let target = try write { connection in
            let rows = ConsumerRows(connection)
            // `noteMoved` takes the same lock later. If a weaker lock were upgraded then, acknowledgements of two
            // partitions and a seek could deadlock.
            guard try rows.isThere(id, lock: " FOR NO KEY UPDATE") else {
                throw EventConsumerRules.notFound(id)
            }
            guard let found = try find(lease, of: id, connection) else {
                throw EventConsumerRules.leaseExpired
            }
            if let acknowledged = found.acknowledged { return acknowledged }
            let target = try found.lease.position(through: sequence)
            let end = ", \(Self.noLease), settled_id = ?7, settled_seq = ?6"
            _ = try rows.move(
                id, found.lease.partition, from: found.lease.from, to: target, gap: nil,
                also: target >= found.lease.scannedThrough ? end : "", if: "lease_id = ?7", .text(lease))
            try rows.noteMoved(id, deliveredMilliseconds: try now(connection))
            return target
        }
        leasesEnded(of: id)
        return target
    }

    /// Finds and locks the lease with this id, also if it is the last acknowledged lease of its partition. An
    /// expired lease can be found until its partition is leased again.
    private func find(
        _ lease: String, of id: EventConsumerID, _ connection: PostgreSQLConnection
    ) throws -> (lease: HeldLease, acknowledged: Int64?)? {
        try connection.all(
            """
            SELECT partition, seq, lease_last, lease_reached,
                CASE WHEN settled_id = ?4 AND lease_id IS DISTINCT FROM ?4 THEN settled_seq END
            FROM event_consumer_position
            WHERE \(ConsumerRows.isIt) AND (lease_id = ?4 OR settled_id = ?4) FOR UPDATE
            """, ConsumerRows.key(id) + [.text(lease)]
        ) {
            (
                HeldLease(
                    id: lease, partition: $0.int(0), from: $0.int64(1), last: $0.int64(2),
                    scannedThrough: $0.int64(3)), $0.optionalInt64(4)
            )
        }.first
    }

    package func release(_ lease: String, of id: EventConsumerID) throws(ConsumerFailure) {
        let isReleased = try write { connection in
            try ConsumerRows(connection).run(
                """
                UPDATE event_consumer_position SET \(Self.noLease)
                WHERE \(ConsumerRows.isIt) AND lease_id = ?4
                """, id, .text(lease))
            return connection.changes > 0
        }
        guard isReleased else { throw EventConsumerRules.leaseExpired }
        leasesEnded(of: id)
    }

    package func endLeases(of id: EventConsumerID, _ connection: PostgreSQLConnection) throws {
        try ConsumerRows(connection).run(
            """
            UPDATE event_consumer_position SET \(Self.noLease), settled_id = NULL, settled_seq = NULL
            WHERE \(ConsumerRows.isIt)
            """, id)
    }

    package func leasesEnded(of id: EventConsumerID) { arrivals?.note([id.appID]) }
}
