internal import CountersignCore
internal import CountersignSQLite

/// Deletes all data of an app in `events.sqlite` and overwrites it on disk, in steps between two commits on the
/// writer's thread. Can be restarted at any time.
struct EventErasure {
    /// Limits of a step, so that requests do not wait for long.
    static let rowsPerStep = 200
    static let bytesPerStep: Int64 = 4 << 20
    /// Tables of sums, deleted last, because triggers change the sums when rows of other tables are deleted.
    private static let last: BytewiseSet = ["app_usage"]

    let appID: String
    /// The sequence number of the last event examined.
    private var scannedThrough: Int64 = 0
    private var hasEvents = true

    init(appID: String) {
        self.appID = appID
    }

    /// Performs a step in its own transaction. Returns true when no data of the app is left.
    mutating func step(_ connection: SQLiteConnection, _ index: EventIndexReader) throws -> Bool {
        try connection.execute("PRAGMA secure_delete = ON")
        defer { try? connection.execute("PRAGMA secure_delete = OFF") }
        if hasEvents {
            try connection.transaction { try deleteEvents(connection, index) }
            return false
        }
        return try connection.transaction {
            try deleteCustomers(connection) && deleteRows(connection)
        }
    }

    private mutating func deleteEvents(_ connection: SQLiteConnection, _ index: EventIndexReader) throws {
        let found = try index.sequences(of: .app, in: appID, .after(scannedThrough), limit: Self.rowsPerStep)
        var bytes: Int64 = 0
        for sequence in found where bytes < Self.bytesPerStep {
            bytes +=
                try connection.first(
                    "DELETE FROM event WHERE seq = ?1 AND app_id = ?2 RETURNING length(CAST(body AS BLOB))",
                    .integer(sequence), .text(appID)
                ) { $0.int64(0) } ?? 0
            scannedThrough = sequence
        }
        hasEvents = found.count == Self.rowsPerStep || found.last.map { $0 > scannedThrough } ?? false
    }

    /// Returns true when no customers are left.
    private func deleteCustomers(_ connection: SQLiteConnection) throws -> Bool {
        var bytes: Int64 = 0
        for _ in 0..<Self.rowsPerStep where bytes < Self.bytesPerStep {
            let customer = try connection.first(
                "SELECT id, bytes FROM customer WHERE app_id = ?1 LIMIT 1", .text(appID)
            ) { (id: $0.text(0), bytes: $0.int64(1)) }
            guard let customer else { return true }
            // Deletes fewer rows at a time from a large customer, because each row may be long.
            let rows = customer.bytes > Self.bytesPerStep ? 8 : Self.rowsPerStep
            guard try CustomerWriter.delete(customer.id, rows: rows, connection) else { return false }
            bytes += customer.bytes
        }
        return false
    }

    /// Returns true when no table has a row of the app.
    private func deleteRows(_ connection: SQLiteConnection) throws -> Bool {
        var left = Self.rowsPerStep
        let tables = try connection.appTables()
        for table in tables.filter({ !Self.last.contains($0.name) })
            + tables.filter({ Self.last.contains($0.name) })
        {
            left -= try connection.delete(of: appID, in: table, most: left)
            if left <= 0 { return false }
        }
        return true
    }
}
