internal import CountersignSQLite

/// A table whose rows belong to apps: one with a column `app_id`, whatever else it holds. So a table that is added later
/// is covered without a line here.
struct AppTable {
    static let column = "app_id"

    let name: String
    /// What a row is named by.
    private let key: [String]

    /// All of them, by name.
    static func all(in sqlite: SQLiteConnection) throws -> [AppTable] {
        let columns = try sqlite.all(
            """
            SELECT m.name, c.name, c.pk FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c
            WHERE m.type = 'table' AND (c.name = '\(column)' OR c.pk > 0) ORDER BY m.name, c.pk
            """
        ) { (table: $0.text(0), column: $0.text(1), isKey: $0.int(2) > 0) }
        return Dictionary(grouping: columns, by: \.table)
            .filter { $0.value.contains { $0.column == column } }
            .map { AppTable(name: $0.key, key: $0.value.filter(\.isKey).map(\.column)) }
            .sorted { $0.name < $1.name }
    }

    /// Deletes at most so many of an app's rows. Returns how many.
    @discardableResult
    func delete(of appID: String, rows: Int, from sqlite: SQLiteConnection) throws -> Int {
        let key = key.isEmpty ? "rowid" : key.joined(separator: ", ")
        try sqlite.run(
            """
            DELETE FROM \(name) WHERE \(Self.column) = ?1 AND (\(key)) IN (
                SELECT \(key) FROM \(name) WHERE \(Self.column) = ?1 LIMIT ?2)
            """, .text(appID), .integer(Int64(rows)))
        return sqlite.changes
    }
}
