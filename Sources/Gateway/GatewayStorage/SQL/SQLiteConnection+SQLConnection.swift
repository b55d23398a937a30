internal import CountersignCore
package import CountersignSQLite

extension SQLiteStatement: SQLRow {}

extension SQLiteError: StorageError {}

extension SQLiteConnection: SQLConnection {
    package func each(
        _ sql: String, _ values: [SQLValue], _ body: (any SQLRow) throws -> Bool
    ) throws {
        let statement = try cached(sql)
        defer { statement.reset() }
        try statement.bind(values)
        while try statement.step(), try body(statement) {}
    }

    package var forUpdate: String { "" }

    /// Secrets in files are protected by the file's mode only.
    package func sealed(_ secret: [UInt8], _ column: SecretColumn, _ key: String...) -> [UInt8] { secret }

    package func opened(_ stored: [UInt8], _ column: SecretColumn, _ key: String...) -> [UInt8] { stored }

    package func appTables() throws -> [AppTable] {
        let columns = try all(
            """
            SELECT m.name, c.name, c.pk FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c
            WHERE m.type = 'table' AND (c.name = '\(AppTable.column)' OR c.pk > 0) ORDER BY m.name, c.pk
            """
        ) { (table: $0.text(0), column: $0.text(1), isKey: $0.int(2) > 0) }
        return BytewiseDictionary(grouping: columns, by: \.table)
            .filter { $0.value.contains { $0.column == AppTable.column } }
            .map { name, columns in
                let key = columns.filter(\.isKey).map(\.column)
                return AppTable(name: name, key: key.isEmpty ? ["rowid"] : key)
            }
            .sorted { $0.name < $1.name }
    }
}
