package import CountersignSQLite

/// The row that a statement is at. Columns count from 0.
package protocol SQLRow {
    /// True when the column is `NULL`.
    func isNull(_ column: Int32) -> Bool
    /// The column as an integer, 1 and 0 for true and false; 0 for `NULL`.
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

/// One connection to a SQL database, whichever engine it is of. It belongs to one thread at a time.
///
/// Stores that work on any engine give it SQL that SQLite and PostgreSQL both take, with placeholders as SQLite has them: `?`
/// for the next value, `?1` for the first. What goes wrong is thrown as the engine says it, most often a ``StorageError``.
package protocol SQLConnection: AnyObject {
    /// Runs one or more statements that have no values and return no rows.
    func execute(_ sql: String) throws

    /// Runs a statement with these values and calls `body` with each row, until it returns false.
    func each(_ sql: String, _ values: [SQLValue], _ body: (any SQLRow) throws -> Bool) throws

    /// Rows changed by the last `INSERT`, `UPDATE` or `DELETE`.
    var changes: Int { get }

    /// What a `SELECT` ends with whose rows the transaction goes on to change: ` FOR UPDATE`, or nothing where a transaction
    /// that writes has the database alone.
    var forUpdate: String { get }

    /// What is to be stored in a column of secrets, in the row of this key.
    func sealed(_ secret: [UInt8], _ column: SecretColumn, _ key: String...) throws -> [UInt8]

    /// The secret that was stored in that row, sealed or not. Throws `conflict` when it was sealed elsewhere.
    func opened(_ stored: [UInt8], _ column: SecretColumn, _ key: String...) throws -> [UInt8]

    /// The tables of this database whose rows belong to apps, by name.
    func appTables() throws -> [AppTable]
}

extension SQLConnection {
    /// Runs a statement with these values and throws its rows away.
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

    /// All rows, of a statement whose values were gathered.
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

    /// Deletes at most `most` of an app's rows in a table. Returns how many.
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
