package import CountersignCore
package import CountersignSQLite
internal import Foundation
package import GatewayModel
package import GatewayStorage

package final class DatabaseCopy: CopyEndpoint {
    /// The number of past days with a partition each; older events are in the default partition.
    private static let mostDays: Int64 = 400

    private let settings: PostgreSQLSettings
    let connection: PostgreSQLConnection
    private let tokenKey: TokenKeySeal
    private var days: Set<Int64> = []

    /// Migrates the schema. Throws `conflict` if the database has token keys and `tokenKeyFile` does not exist. With
    /// `isSource`, also throws `conflict` if the database is itself an unfinished copy.
    package init(
        _ settings: PostgreSQLSettings, tokenKeyFile: String, isSource: Bool
    ) throws(GatewayError) {
        self.settings = settings
        (connection, tokenKey) = try GatewayError.storing {
            try PostgreSQLSchema.migrate(settings)
            let connection = try PostgreSQLConnection(settings.patient)
            if isSource { try CopyMarker.check(connection) }
            // Makes the planner use the key's index. The planner underestimates the rows after a composite key, and
            // would read and sort the rest of the table for each page.
            try connection.execute("SET enable_sort = off")
            let pool = PostgreSQLPool(settings, connections: 1)
            return (
                connection,
                try PostgreSQLStorage.tokenKeySeal(tokenKeyFile, for: PostgreSQLDatabase(pool, .secrets))
            )
        }
    }

    package func checkStopped() throws {
        let running = try PostgreSQLCluster(settings).status().gateways.filter(\.isLive)
        guard running.isEmpty else {
            throw GatewayError(
                .alreadyRunning,
                "\(running.count == 1 ? "a gateway runs" : "\(running.count) gateways run") on the database "
                    + "(\(running.map(\.identity.name).joined(separator: ", "))); stop all of them, and wait six seconds after a crash"
            )
        }
    }

    package func log() throws -> CopiedLog {
        let newest = try connection.first("SELECT max(position) FROM event") { $0.int64(0) } ?? 0
        return CopiedLog(
            id: try connection.first("SELECT id FROM event_log") { $0.blob(0) } ?? [],
            head: max(newest, try EventHorizon.head(connection)))
    }

    // MARK: Row numbers

    private static let customerNumbers = ["customer_identifier", "inbox_read"]

    /// The sequences of tables with automatic row numbers.
    private func sequences() throws -> BytewiseDictionary<String> {
        let own = try connection.all(
            """
            SELECT table_name, pg_get_serial_sequence('countersign.' || table_name, column_name)
            FROM information_schema.columns WHERE table_schema = 'countersign' AND is_identity = 'YES'
            """
        ) { ($0.text(0), $0.text(1)) }
        return BytewiseDictionary(
            uniqueKeysWithValues: own + Self.customerNumbers.map { ($0, "customer_seq") })
    }

    package func numbers() throws -> BytewiseDictionary<Int64> {
        try sequences().compactMapValues { sequence in
            try connection.first("SELECT CASE WHEN is_called THEN last_value END FROM \(sequence)") {
                $0.optionalInt64(0)
            } ?? nil
        }
    }

    private func set(_ numbers: BytewiseDictionary<Int64>) throws {
        for (table, sequence) in try sequences() {
            // The tables in `customerNumbers` share a sequence.
            let number =
                Self.customerNumbers.contains(table)
                ? Self.customerNumbers.compactMap { numbers[$0] }.max() : numbers[table]
            guard let number, number > 0 else { continue }
            try connection.run("SELECT setval('\(sequence)', ?1)", .integer(number))
        }
    }

    // MARK: Reading

    package func key(of table: CopyTable) -> [String] {
        // For events, uses the order of the primary key of `event`.
        table.name == CopyTable.events ? ["app_id", "seq"] : table.key
    }

    private func source(of table: CopyTable) -> String {
        switch table.name {
        case CopyTable.events: "(SELECT position AS seq, * FROM event) AS event"
        case "app_usage":
            """
            (SELECT app_id, sum(events)::bigint AS events, sum(bytes)::bigint AS bytes FROM app_usage
            GROUP BY app_id) AS app_usage
            """
        case "key_use":
            """
            (SELECT app_id, key_id, sum(verified)::bigint AS verified, max(last_ms) AS last_ms FROM key_use
            GROUP BY app_id, key_id) AS key_use
            """
        // Excludes ids that `lock_customers` has reserved but that have no customer.
        case "customer_identifier": "(SELECT * FROM customer_identifier WHERE customer_id IS NOT NULL) AS own"
        default: "\"\(table.name)\""
        }
    }

    /// Limits the bytes on the server, because libpq holds the complete result in memory.
    package func rows(of table: CopyTable, after lastKey: [SQLValue], most: CopyGroup) throws -> [[SQLValue]]
    {
        let key = key(of: table)
        let sizes = table.columns.filter { $0.kind != .integer }
            .map { " + coalesce(octet_length(\"\($0.name)\"), 0)" }.joined()
        let page = table.page(
            from: source(of: table), by: key, after: lastKey, most: most.rows,
            more: ", 0\(sizes) AS row_bytes")
        let rows = try connection.all(
            """
            SELECT \(table.list) FROM (
                SELECT *, sum(row_bytes) OVER rows_before - row_bytes AS bytes_before FROM (\(page)) AS page
                WINDOW rows_before AS (ORDER BY \(CopyTable.quoted(key)) ROWS UNBOUNDED PRECEDING)) AS sized
            WHERE bytes_before < \(most.bytes) ORDER BY \(CopyTable.quoted(key))
            """, lastKey, row: table.values)
        return try CopySecrets(table: table).opened(rows, tokenKey)
    }

    // MARK: Use as the target

    package func begin(_ log: CopiedLog, _ tables: [CopyTable]) throws {
        let isAlone = try connection.first(
            "SELECT pg_try_advisory_lock(\(PostgreSQLSchema.lockClass), \(PostgreSQLSchema.AdvisoryLock.copy))"
        ) { $0.int(0) != 0 }
        guard isAlone == true else {
            throw GatewayError(.conflict, "another copy into the database runs")
        }
        if try CopyMarker.isThere(connection) {
            let kept = try connection.first("SELECT source FROM \(UnfinishedCopy.table)") { $0.blob(0) }
            guard kept == log.id else {
                throw GatewayError(
                    .conflict,
                    "the database contains an unfinished copy of another source; drop its schema countersign, or name another"
                )
            }
        } else {
            for table in tables where table.name != "audit_head" {
                let isEmpty = try connection.first("SELECT 1 FROM \(source(of: table)) LIMIT 1") { _ in false
                }
                guard isEmpty ?? true else {
                    throw GatewayError(
                        .conflict,
                        "the database is not empty (\(table.name) has rows); name one without the schema countersign"
                    )
                }
            }
            try connection.transaction {
                try connection.execute(
                    "CREATE TABLE \(UnfinishedCopy.table) (source BYTEA NOT NULL, app_id TEXT COLLATE \"C\", seq BIGINT)"
                )
                try connection.run("INSERT INTO \(UnfinishedCopy.table) (source) VALUES (?1)", .blob(log.id))
            }
        }
        try EventHorizon.raise(above: log.head + 1, connection)
    }

    package func lastKey(in table: CopyTable, by key: [String]) throws -> [SQLValue] {
        try connection.lastKey(of: table, by: key)
    }

    package func write(_ rows: [[SQLValue]], to table: CopyTable) throws {
        let rows = try CopySecrets(table: table).sealed(rows, tokenKey)
        guard table.name == CopyTable.events else {
            return try insert(rows, table)
        }
        let received = table.place(of: "received_ms")
        let today = Int64(try EventPartitions.today(connection))
        for row in rows {
            guard case .integer(let milliseconds) = row[received] else { continue }
            let day = milliseconds / 86_400_000
            if (today - Self.mostDays...today).contains(day), days.insert(day).inserted {
                try EventPartitions.make(pastDay: day, connection)
            }
        }
        try connection.transaction {
            try insertEvents(rows, table)
            guard let last = rows.last else { return }
            try connection.run(
                "UPDATE \(UnfinishedCopy.table) SET app_id = ?1, seq = ?2", last[table.place(of: "app_id")],
                last[table.place(of: "seq")])
        }
    }

    /// SQL expressions that convert the texts of a row to the types of the columns.
    private static func expressions(_ table: CopyTable) -> [String] {
        table.columns.map { column in
            switch column.kind {
            case .integer: "\"\(column.name)\"::bigint"
            case .text: "\"\(column.name)\""
            case .blob: "decode(\"\(column.name)\", 'hex')"
            }
        }
    }

    private static func texts(_ rows: [[SQLValue]], _ column: Int) -> [String?] {
        rows.map { row in
            switch row[column] {
            case .null: nil
            case .integer(let number): String(number)
            case .real(let number): String(number)
            case .text(let text): text
            case .blob(let bytes): bytes.hexadecimal
            }
        }
    }

    private func insert(_ rows: [[SQLValue]], _ table: CopyTable) throws {
        var (names, key) = (table.list, table.key)
        var values = Self.expressions(table)
        switch table.name {
        // Sets the size of a new customer to zero, because triggers add the sizes of the customer's other rows.
        case CopyTable.customers: values[table.place(of: "bytes")] = "0"
        case "app_usage", "key_use":
            names += ", lane"
            values.append("0")
            key.append("lane")
        default: break
        }
        let changes = table.columns.map { "\"\($0.name)\" = excluded.\"\($0.name)\"" }
        let conflict =
            table.isWrittenWhole
            ? "ON CONFLICT (\(CopyTable.quoted(key))) DO UPDATE SET \(changes.joined(separator: ", "))"
            // Keys that differ only in U+0000 become equal. The comparison of the copy reports the missing row.
            : "ON CONFLICT DO NOTHING"
        var parameters = Parameters()
        for column in table.columns.indices { parameters.add(texts: Self.texts(rows, column)) }
        try connection.each(
            """
            INSERT INTO "\(table.name)" (\(names)) SELECT \(values.joined(separator: ", "))
            FROM unnest(\(table.columns.indices.map { "$\($0 + 1)" }.joined(separator: ", "))) AS u (\(table.list))
            \(conflict)
            """, parameters
        ) { _ in true }
    }

    private func insertEvents(_ rows: [[SQLValue]], _ table: CopyTable) throws {
        func text(_ name: String, _ row: [SQLValue]) -> String? {
            if case .text(let text) = row[table.place(of: name)] { text } else { nil }
        }
        let keys = rows.map { row in
            MessageKey(
                EventIdentity(
                    appID: text("app_id", row) ?? "",
                    sender: EventSender(
                        named: text("sender", row), userID: text("user_id", row),
                        anonymousID: text("anonymous_id", row)),
                    messageID: text("message_id", row) ?? ""))
        }
        var parameters = Parameters()
        parameters.add(integers: keys.map { Int64($0.bucket) })
        parameters.add(texts: keys.map(\.whose))
        for column in table.columns.indices { parameters.add(texts: Self.texts(rows, column)) }
        let names = table.columns.map { $0.name == "seq" ? "position" : $0.name }
        try connection.each(
            """
            WITH u AS MATERIALIZED (
                SELECT * FROM unnest(\((1...table.columns.count + 2).map { "$\($0)" }.joined(separator: ", ")))
                    AS u (bucket, whose, \(table.list)))
            , known AS (
                INSERT INTO message_id (bucket, app_id, id, sender, position)
                    SELECT bucket::int, app_id, message_id, whose, seq::bigint FROM u ON CONFLICT DO NOTHING)
            INSERT INTO event (day, \(CopyTable.quoted(names)))
                SELECT floor(received_ms::bigint / 86400000.0)::int, \(Self.expressions(table).joined(separator: ", "))
                FROM u
            """, parameters
        ) { _ in true }
    }

    package func complete(_ log: CopiedLog, _ numbers: BytewiseDictionary<Int64>, _ tables: [CopyTable])
        throws
    {
        try connection.run("UPDATE event_log SET id = ?1", .blob(log.id))
        try set(numbers)
        try connection.execute("ANALYZE event; ANALYZE message_id")
    }

    package func finish() throws {
        try connection.execute("DROP TABLE \(UnfinishedCopy.table)")
    }
}
