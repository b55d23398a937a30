internal import CountersignCore
package import CountersignSQLite

/// A table that is copied between storage engines. Read from the SQLite schema, so that new tables are copied too.
package struct CopyTable: Sendable {
    package enum Kind: Sendable { case integer, text, blob }

    package struct Column: Sendable {
        package let name: String
        package let kind: Kind

        func value(_ row: any SQLRow, _ index: Int32) -> SQLValue {
            guard !row.isNull(index) else { return .null }
            return switch kind {
            case .integer: .integer(row.int64(index))
            case .text: .text(row.text(index))
            case .blob: .blob(row.blob(index))
            }
        }
    }

    package static let events = "event"
    package static let customers = "customer"

    package let name: String
    package let file: String
    package let columns: [Column]
    /// The key columns, which also determine the order of copying.
    package let key: [String]

    /// Whether each run copies all rows of the table. These tables are small, and a new target may already have rows.
    package var isWrittenWhole: Bool { ["app_usage", "audit_head", "key_use"].contains(name) }

    package var list: String { Self.quoted(columns.map(\.name)) }

    package static func quoted(_ names: [String]) -> String {
        names.map { "\"\($0)\"" }.joined(separator: ", ")
    }

    /// Tables that are not copied, because they are derived from other tables or specific to the engine.
    private static let left: BytewiseSet = [
        "schema_version", "event_log", "counted", "probe", "event_claim", "app_user", "event_time",
        "event_key", UnfinishedCopy.table,
    ]
    private static let leftColumns: BytewiseDictionary<BytewiseSet> = [
        "app_usage": ["customer_bytes"], "event_consumer": ["generation"],
        events: ["key_number", "request_uuid"], customers: ["properties"],
    ]
    /// Unique columns that replace the primary key of tables whose numeric primary key exists only in SQLite.
    private static let keys: BytewiseDictionary = [
        "customer_identifier": ["app_id", "name", "value"], "inbox_read": ["customer_id", "message_id"],
    ]
    /// Tables referenced by other tables, in the order of copying.
    private static let first = [
        "app", "admin_user", "session", "webhook_endpoint", "event_consumer", customers,
    ]

    /// The tables of a file. Referenced tables come first, and events last.
    static func all(in file: String, _ sqlite: SQLiteConnection) throws -> [CopyTable] {
        let columns = try sqlite.all(
            """
            SELECT m.name, c.name, c.type, c.pk FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c
            WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid
            """
        ) { (table: $0.text(0), column: $0.text(1), type: $0.text(2), place: $0.int(3)) }
        return try BytewiseDictionary(grouping: columns, by: \.table).filter { !left.contains($0.key) }
            .map { name, columns in
                let taken = columns.filter { leftColumns[name]?.contains($0.column) != true }
                return CopyTable(
                    name: name, file: file,
                    columns: try taken.map { Column(name: $0.column, kind: try kind($0.type)) },
                    key: keys[name]
                        ?? columns.filter { $0.place > 0 }.sorted { $0.place < $1.place }.map(\.column))
            }
            .sorted { order($0) == order($1) ? $0.name < $1.name : order($0) < order($1) }
    }

    private static func order(_ table: CopyTable) -> Int {
        table.name == events ? first.count + 1 : first.firstIndex(of: table.name) ?? first.count
    }

    private static func kind(_ type: String) throws -> Kind {
        switch type {
        case "INTEGER": .integer
        case "TEXT": .text
        case "BLOB": .blob
        default: throw SQLiteError.damaged("no column of type \(type) is copied")
        }
    }
}

extension CopyTable {
    /// A query for the rows after `lastKey`; all rows if it is empty. `source` may be an aliased subquery.
    package func page(
        from source: String, by key: [String], after lastKey: [SQLValue], most: Int, more: String = ""
    ) -> String {
        let names = Self.quoted(key)
        let placeholders = lastKey.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
        let condition = lastKey.isEmpty ? "" : " WHERE (\(names)) > (\(placeholders))"
        return "SELECT \(list)\(more) FROM \(source)\(condition) ORDER BY \(names) LIMIT \(most)"
    }

    /// Reads a row of ``page(from:by:after:most:more:)``.
    package func values(_ row: any SQLRow) -> [SQLValue] {
        columns.enumerated().map { $1.value(row, Int32($0)) }
    }
}

extension SQLConnection {
    /// The key of the last row of a table, or of the last copied event. Empty if the table has no rows.
    package func lastKey(of table: CopyTable, by key: [String]) throws -> [SQLValue] {
        let isEvents = table.name == CopyTable.events
        let order = key.map { "\"\($0)\" DESC" }.joined(separator: ", ")
        let kinds = key.map { name in table.columns.first { $0.name == name } }
        return try all(
            "SELECT \(CopyTable.quoted(key)) FROM "
                + (isEvents
                    ? "\(UnfinishedCopy.table) WHERE seq IS NOT NULL"
                    : "\"\(table.name)\" ORDER BY \(order) LIMIT 1"),
            []
        ) { row in
            kinds.enumerated().map { $1?.value(row, Int32($0)) ?? .null }
        }.first ?? []
    }
}
