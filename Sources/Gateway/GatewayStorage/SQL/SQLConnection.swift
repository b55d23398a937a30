package import CountersignSQLite

/// The current row of a statement. Columns are numbered from 0.
package protocol SQLRow {
    /// Whether the column is `NULL`.
    func isNull(_ column: Int32) -> Bool
    /// The column as an integer, with 1 and 0 for true and false; 0 for `NULL`.
    func int64(_ column: Int32) -> Int64
    /// The column as an integer; 0 for `NULL`.
    func int(_ column: Int32) -> Int
    /// The column as an integer, or nil for `NULL`.
    func optionalInt64(_ column: Int32) -> Int64?
    /// The column as a floating-point number; 0 for `NULL`.
    func double(_ column: Int32) -> Double
    /// The column as text; empty for `NULL`.
    func text(_ column: Int32) -> String
    /// The column as text, or nil for `NULL`.
    func optionalText(_ column: Int32) -> String?
    /// The column's bytes; empty for `NULL`.
    func blob(_ column: Int32) -> [UInt8]
}

/// A connection to an SQL database of any engine. Must be used by one thread at a time.
///
/// Portable stores use SQL that both SQLite and PostgreSQL accept, with SQLite's placeholders: `?` for the
/// next value, `?1` for the first. Errors are those of the engine, usually a ``StorageError``.
package protocol SQLConnection: AnyObject {
    /// Runs one or more statements without values and rows.
    func execute(_ sql: String) throws

    /// Runs a statement with these values and calls `body` with each row, until it returns false.
    func each(_ sql: String, _ values: [SQLValue], _ body: (any SQLRow) throws -> Bool) throws

    /// Rows changed by the last `INSERT`, `UPDATE` or `DELETE`.
    var changes: Int { get }

    /// The suffix of a `SELECT` that locks rows for a later change: ` FOR UPDATE`, or empty for an engine
    /// with a single writer.
    var forUpdate: String { get }

    /// Encrypts a secret for a column in the row with this key.
    func sealed(_ secret: [UInt8], _ column: SecretColumn, _ key: String...) throws -> [UInt8]

    /// Decrypts a stored secret. Returns secrets that are not encrypted unchanged. Throws `conflict` when the
    /// secret was encrypted for another row or with another key.
    func opened(_ stored: [UInt8], _ column: SecretColumn, _ key: String...) throws -> [UInt8]

    /// The tables with rows of apps, by name.
    func appTables() throws -> [AppTable]
}

extension SQLConnection {
    /// Runs a statement with these values and discards its rows.
    package func run(_ sql: String, _ values: SQLValue...) throws {
        try each(sql, values) { _ in true }
    }

    /// The first row, or nil.
    package func first<Row>(
        _ sql: String, _ values: SQLValue..., row: (any SQLRow) throws -> Row
    ) throws -> Row? {
        var found: Row?
        try each(sql, values) {
            found = try row($0)
            return false
        }
        return found
    }

    /// All rows.
    package func all<Row>(
        _ sql: String, _ values: SQLValue..., row: (any SQLRow) throws -> Row
    ) throws -> [Row] {
        try all(sql, values, row: row)
    }

    package func all<Row>(
        _ sql: String, _ values: [SQLValue], row: (any SQLRow) throws -> Row
    ) throws -> [Row] {
        var rows: [Row] = []
        try each(sql, values) {
            rows.append(try row($0))
            return true
        }
        return rows
    }

    /// Deletes at most `most` of an app's rows in a table. Returns their number.
    @discardableResult
    package func delete(of appID: String, in table: AppTable, most: Int) throws -> Int {
        let key = table.key.joined(separator: ", ")
        try run(
            """
            DELETE FROM \(table.name) WHERE \(AppTable.column) = ?1 AND (\(key)) IN (
                SELECT \(key) FROM \(table.name) WHERE \(AppTable.column) = ?1 LIMIT ?2)
            """, .text(appID), .integer(Int64(most)))
        return changes
    }
}
