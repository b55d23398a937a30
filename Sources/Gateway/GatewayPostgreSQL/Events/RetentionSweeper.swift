internal import CountersignSQLite
internal import GatewayModel
internal import GatewayStorage

/// Deletes events and customers beyond one app's retention, a few at a time.
///
/// Reads no event until the oldest known event expires or the app exceeds its size limit. Message ids in a daily
/// partition stay for as long as devices may send them again. All other ids are deleted with their events.
struct RetentionSweeper {
    static let rowsPerStep = 500
    static let bytesPerStep: Int64 = 4 << 20

    let appID: String
    let rules: AppRules
    let nowMilliseconds: Int64
    /// The oldest event's time of receipt; nil if unknown.
    var oldestMilliseconds: Int64?
    /// The bytes of all customers, cached because their sum reads all customers of the app.
    private var customerBytes: Int64?
    /// Consumers whose held events the last step deleted.
    var passed: [EventConsumerID] = []

    init(appID: String, rules: AppRules, nowMilliseconds: Int64, oldestMilliseconds: Int64? = nil) {
        self.appID = appID
        self.oldestMilliseconds = oldestMilliseconds
        self.rules = rules
        self.nowMilliseconds = nowMilliseconds
    }

    /// Performs a step within a transaction. Returns true when more expired data may remain.
    mutating func step(_ connection: PostgreSQLConnection) throws -> Bool {
        passed = []
        let cutoff = rules.retentionDays.map { nowMilliseconds - Int64($0) * 86_400_000 } ?? .min
        if try deleteCustomers(before: cutoff, connection) { return true }
        var excess = try rules.retentionBytes.map { try keptBytes(connection) - Int64($0) } ?? 0
        if excess <= 0, let oldestMilliseconds, oldestMilliseconds >= cutoff { return false }
        let position =
            try connection.first(
                "SELECT seq FROM retention_mark WHERE app_id = ?1", .text(appID)
            ) { $0.int64(0) } ?? 0
        // Reading one row is enough to decide whether more are needed.
        oldestMilliseconds = try rows(after: position, limit: 1, connection).first?.received
        guard let oldest = oldestMilliseconds, oldest < cutoff || excess > 0 else {
            return try excess > 0 && deleteCustomer(seenUntil: .max, connection)
        }
        let rows = try rows(after: position, limit: Self.rowsPerStep, connection)
        var hold = try RetentionHold(
            of: appID, connection, nowMilliseconds: nowMilliseconds, days: rules.retentionDays ?? 0)
        var gone: [(position: Int64, day: Int64, bytes: Int64)] = []
        var bytes: Int64 = 0
        var isHeld = false
        for row in rows {
            guard row.received < cutoff || excess > 0, bytes < Self.bytesPerStep else { break }
            isHeld = hold.holds(row.position, received: row.received)
            if isHeld { break }
            // While the app exceeds its size limit, deletes customers that were last seen before this event.
            if row.received >= cutoff, try deleteCustomer(seenUntil: row.received, connection) { return true }
            gone.append((row.position, row.day, row.bytes))
            bytes += row.bytes
            excess -= row.bytes
        }
        guard let last = gone.last else {
            return try excess > 0 && !isHeld && deleteCustomer(seenUntil: .max, connection)
        }
        try delete(gone.map { ($0.position, $0.day) }, bytes, through: last.position, connection)
        hold.noteDeleted(last.position)
        try hold.write(connection)
        passed = hold.newlyPassed
        return true
    }

    private mutating func keptBytes(_ connection: PostgreSQLConnection) throws -> Int64 {
        let events =
            try connection.first(
                "SELECT coalesce(sum(bytes), 0)::bigint FROM app_usage WHERE app_id = ?1", .text(appID)
            ) { $0.int64(0) } ?? 0
        let customers =
            try customerBytes ?? connection.first(
                "SELECT coalesce(sum(bytes), 0)::bigint FROM customer WHERE app_id = ?1", .text(appID)
            ) { $0.int64(0) } ?? 0
        customerBytes = customers
        return events + customers
    }

    private func rows(
        after position: Int64, limit: Int, _ connection: PostgreSQLConnection
    ) throws -> [(position: Int64, day: Int64, received: Int64, bytes: Int64)] {
        try connection.all(
            """
            SELECT position, day, received_ms, octet_length(body) FROM event
            WHERE app_id = ?1 AND position > ?2 AND position < \(try EventHorizon.end(connection))
            ORDER BY position LIMIT \(limit)
            """, .text(appID), .integer(position)
        ) { (position: $0.int64(0), day: $0.int64(1), received: $0.int64(2), bytes: $0.int64(3)) }
    }

    private func delete(
        _ rows: [(position: Int64, day: Int64)], _ bytes: Int64, through last: Int64,
        _ connection: PostgreSQLConnection
    ) throws {
        var parameters = Parameters()
        parameters.add(.text(appID))
        parameters.add(integers: rows.map(\.position))
        parameters.add(integers: rows.map(\.day))
        try connection.each(
            """
            DELETE FROM event USING unnest($2, $3) AS gone (position, day)
            WHERE app_id = $1 AND event.position = gone.position AND event.day = gone.day
            """, parameters
        ) { _ in true }
        try EventErasure.uncount(connection.changes, bytes, of: appID, connection)
        for table in ["message_id_other", "message_id_default"] {
            try connection.run(
                "DELETE FROM \(table) WHERE app_id = ?1 AND position <= ?2", .text(appID), .integer(last))
        }
        try connection.run(
            """
            INSERT INTO retention_mark VALUES (?1, ?2)
            ON CONFLICT (app_id) DO UPDATE SET seq = greatest(retention_mark.seq, excluded.seq)
            """, .text(appID), .integer(last))
    }

    /// Returns true if a customer was deleted, so that more may remain.
    private mutating func deleteCustomers(before cutoff: Int64, _ connection: PostgreSQLConnection) throws
        -> Bool
    {
        cutoff > .min ? try deleteCustomer(seenUntil: cutoff - 1, connection) : false
    }

    /// Deletes the customer with the oldest activity, or a part of a large one. Returns false without a customer.
    private mutating func deleteCustomer(
        seenUntil milliseconds: Int64, _ connection: PostgreSQLConnection
    ) throws -> Bool {
        let oldest = try connection.first(
            """
            SELECT id, bytes FROM customer WHERE app_id = ?1 AND seen_ms <= ?2 ORDER BY seen_ms LIMIT 1
            FOR UPDATE SKIP LOCKED
            """, .text(appID), .integer(milliseconds)
        ) { (id: $0.text(0), bytes: $0.int64(1)) }
        guard let oldest else { return false }
        try connection.run("SELECT forget_customer(?1, \(Self.rowsPerStep))", .text(oldest.id))
        let left = try connection.first("SELECT bytes FROM customer WHERE id = ?1", .text(oldest.id)) {
            $0.int64(0)
        }
        customerBytes? -= oldest.bytes - (left ?? 0)
        return true
    }
}
