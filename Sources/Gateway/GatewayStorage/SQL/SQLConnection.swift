package import CountersignSQLite

/// The current row of a statement. Columns are numbered from 0. `NULL` is read as 0 or as empty.
package protocol SQLRow {
    func isNull(_ column: Int32) -> Bool
    /// Booleans are read as 1 and 0.
    func int64(_ column: Int32) -> Int64
    func int(_ column: Int32) -> Int
    func optionalInt64(_ column: Int32) -> Int64?
    func double(_ column: Int32) -> Double
    func text(_ column: Int32) -> String
    func optionalText(_ column: Int32) -> String?
    func blob(_ column: Int32) -> [UInt8]
}

/// A connection to an SQL database of any engine. Must be used by one thread at a time.
///
/// Portable stores use SQL that both SQLite and PostgreSQL accept, with SQLite's placeholders: `?` for the
/// next value, `?1` for the first. Errors are those of the engine, usually a ``StorageError``.
package protocol SQLConnection: AnyObject {
    func execute(_ sql: String) throws

    /// Calls `body` with each row until it returns false.
    func each(_ sql: String, _ values: [SQLValue], _ body: (any SQLRow) throws -> Bool) throws

    /// Rows changed by the last `INSERT`, `UPDATE` or `DELETE`.
    var changes: Int { get }

    /// The suffix of a `SELECT` that locks rows: ` FOR UPDATE`, or empty for an engine with a single writer.
    var forUpdate: String { get }

    /// Encrypts a secret for a column in the row with this key, if the engine encrypts secrets.
    func sealed(_ secret: [UInt8], _ column: SecretColumn, _ key: String...) throws -> [UInt8]

    /// Decrypts a secret, or returns a plain one. Throws `conflict` for the secret of another row or encryption key.
    func opened(_ stored: [UInt8], _ column: SecretColumn, _ key: String...) throws -> [UInt8]

    func appTables() throws -> [AppTable]
}

extension SQLConnection {
    package func run(_ sql: String, _ values: SQLValue...) throws {
        try each(sql, values) { _ in true }
    }

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

    /// Returns the number of deleted rows.
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
