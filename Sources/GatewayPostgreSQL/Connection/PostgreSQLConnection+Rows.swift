internal import CountersignSQLite

extension PostgreSQLConnection {
    /// Runs a statement with these values and throws its rows away.
    func run(_ sql: String, _ values: SQLValue...) throws {
        try each(sql, values) { _ in true }
    }

    /// The first row, or nil.
    func first<Row>(_ sql: String, _ values: SQLValue..., row: (PostgreSQLRow) throws -> Row) throws -> Row? {
        var found: Row?
        try each(sql, values) {
            found = try row($0); return false
        }
        return found
    }

    /// All rows.
    func all<Row>(_ sql: String, _ values: SQLValue..., row: (PostgreSQLRow) throws -> Row) throws -> [Row] {
        var rows: [Row] = []
        try each(sql, values) {
            rows.append(try row($0)); return true
        }
        return rows
    }
}
