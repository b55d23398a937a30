internal import CountersignCore
internal import CountersignSQLite
internal import GatewayModel
internal import GatewayStorage

enum EventErasure {
    /// A limit for one transaction, so that other transactions do not wait for long.
    static let rowsPerStep = 500

    struct Row {
        let position: Int64
        let day: Int64
    }

    /// Deletes events and their ids, and subtracts them from the app's usage. Returns the number of deleted events.
    static func delete(_ rows: [Row], of appID: String, _ connection: PostgreSQLConnection) throws -> Int {
        guard !rows.isEmpty else { return 0 }
        var parameters = Parameters()
        parameters.add(.text(appID))
        parameters.add(integers: rows.map(\.position))
        parameters.add(integers: rows.map(\.day))
        var keys: [MessageKey] = []
        var bytes: Int64 = 0
        try connection.each(
            """
            DELETE FROM event USING unnest($2, $3) AS gone (position, day)
            WHERE app_id = $1 AND event.position = gone.position AND event.day = gone.day
            RETURNING message_id, sender, user_id, anonymous_id, octet_length(body)
            """, parameters
        ) { row in
            let sender = EventSender(
                named: row.optionalText(1), userID: row.optionalText(2), anonymousID: row.optionalText(3))
            keys.append(MessageKey(EventIdentity(appID: appID, sender: sender, messageID: row.text(0))))
            bytes += row.int64(4)
            return true
        }
        keys.sort()
        var ids = Parameters()
        ids.add(.text(appID))
        ids.add(integers: keys.map { Int64($0.bucket) })
        ids.add(texts: keys.map(\.id))
        ids.add(texts: keys.map(\.whose))
        try connection.each(
            """
            DELETE FROM message_id AS own USING unnest($2, $3, $4) AS gone (bucket, id, sender)
            WHERE own.bucket = gone.bucket AND app_id = $1 AND own.id = gone.id AND own.sender = gone.sender
            """, ids
        ) { _ in true }
        try uncount(keys.count, bytes, of: appID, connection)
        return keys.count
    }

    static func uncount(
        _ events: Int, _ bytes: Int64, of appID: String, _ connection: PostgreSQLConnection
    ) throws {
        guard events > 0 else { return }
        try connection.run(
            """
            INSERT INTO app_usage AS own (app_id, lane, events, bytes) VALUES (?1, \(EventLogWriter.ofDeletions), -?2, -?3)
            ON CONFLICT (app_id, lane)
            DO UPDATE SET events = own.events + excluded.events, bytes = own.bytes + excluded.bytes
            """, .text(appID), .integer(Int64(events)), .integer(bytes))
    }

    /// Deletes an app's events, customers, consumers and counts, in steps. May be repeated after an error.
    static func erase(_ appID: String, _ connection: PostgreSQLConnection) throws {
        while try step(appID, connection) {}
        try eraseIDs(of: appID, connection)
        while try deleteCustomer(of: appID, connection) {}
        for table in try connection.appTables(of: nil) where !["event", "message_id"].contains(table.name) {
            while try connection.delete(of: appID, in: table, most: rowsPerStep) > 0 {}
        }
    }

    /// Deletes the ids of events that retention has already deleted.
    static func eraseIDs(of appID: String, _ connection: PostgreSQLConnection) throws {
        // Clients choose the dates in ids, so these two partitions may have many buckets. Their indexes are by app.
        for name in ["message_id_other", "message_id_default"] {
            let table = AppTable(name: name, key: ["position"])
            while try connection.delete(of: appID, in: table, most: rowsPerStep) > 0 {}
        }
        for day in try EventPartitions.days(of: "message_id", connection) {
            repeat {
                try connection.run(
                    """
                    DELETE FROM message_id WHERE bucket = ?1 AND app_id = ?2 AND (id, sender) IN (
                        SELECT id, sender FROM message_id WHERE bucket = ?1 AND app_id = ?2 LIMIT \(rowsPerStep))
                    """, .integer(Int64(day)), .text(appID))
            } while connection.changes == rowsPerStep
        }
    }

    private static func deleteCustomer(of appID: String, _ connection: PostgreSQLConnection) throws -> Bool {
        try connection.committing {
            try connection.first(
                """
                SELECT forget_customer(id, \(rowsPerStep)) FROM (
                    SELECT id FROM customer WHERE app_id = ?1 ORDER BY id LIMIT 1 FOR UPDATE) AS one
                """, .text(appID)
            ) { _ in true } == true
        }
    }

    private static func step(_ appID: String, _ connection: PostgreSQLConnection) throws -> Bool {
        try connection.committing {
            let rows = try connection.all(
                "SELECT position, day FROM event WHERE app_id = ?1 ORDER BY position LIMIT \(rowsPerStep)",
                .text(appID)
            ) { Row(position: $0.int64(0), day: $0.int64(1)) }
            _ = try delete(rows, of: appID, connection)
            return rows.count == rowsPerStep
        }
    }
}
