import CountersignSQLite

/// A database as a test looks at it that knows no table: everything that is in it.
struct WholeDatabase {
    let sqlite: SQLiteConnection

    struct Column {
        let name: String
        let type: String
        let isKey: Bool
    }

    /// The tables, each with its columns.
    func tables() throws -> [String: [Column]] {
        let columns = try sqlite.all(
            """
            SELECT m.name, c.name, c.type, c.pk FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c
            WHERE m.type = 'table'
            """
        ) { ($0.text(0), Column(name: $0.text(1), type: $0.text(2), isKey: $0.int(3) > 0)) }
        return Dictionary(grouping: columns, by: \.0).mapValues { $0.map(\.1) }
    }

    /// Adds rows of an app to every table that is about apps, whatever else a row must have. Returns the tables.
    func addRows(of appID: String, count: Int, except: Set<String>) throws -> [String] {
        let found = try tables().filter { name, columns in
            columns.contains { $0.name == "app_id" } && !except.contains(name)
        }
        for (table, columns) in found {
            for number in 1...count {
                let values = columns.map { column -> SQLValue in
                    if column.name == "app_id" { return .text(appID) }
                    // A number within 1 to 3 satisfies every check; keys differ by the first column that is free to.
                    let isFree = column.isKey || ["message_id", "value", "id"].contains(column.name)
                    switch column.type {
                    case "TEXT": return .text(isFree ? "\(appID)-\(number)" : "x")
                    case "BLOB": return .blob(isFree ? Array("\(appID)-\(number)".utf8) : [1])
                    // What is over is swept by the gateway that runs.
                    case _ where column.name.hasSuffix("_ms") && !column.isKey:
                        return .integer(4_000_000_000_000)
                    default:
                        return .integer(isFree ? Int64(number) + 1_000 * Int64(appID.count) : 1)
                    }
                }
                try sqlite.run(
                    """
                    INSERT OR IGNORE INTO \(table) (\(columns.map(\.name).joined(separator: ", ")))
                    VALUES (\(columns.indices.map { "?\($0 + 1)" }.joined(separator: ", ")))
                    """, all: values)
            }
        }
        return found.keys.sorted()
    }

    /// How many rows of an app each table about apps has.
    func rows(of appID: String) throws -> [String: Int] {
        var counts: [String: Int] = [:]
        for (table, columns) in try tables() where columns.contains(where: { $0.name == "app_id" }) {
            counts[table] = try sqlite.first(
                "SELECT count(*) FROM \(table) WHERE app_id = ?1", .text(appID)
            ) { $0.int(0) }
        }
        return counts
    }

    /// Tables with a value that has this text in it, as anything.
    func tables(with text: String) throws -> [String] {
        try tables().filter { table, columns in
            try columns.contains { column in
                try sqlite.first(
                    "SELECT 1 FROM \(table) WHERE instr(CAST(\(column.name) AS BLOB), CAST(?1 AS BLOB)) > 0",
                    .text(text)
                ) { _ in true } == true
            }
        }.keys.sorted()
    }
}

extension SQLiteConnection {
    fileprivate func run(_ sql: String, all values: [SQLValue]) throws {
        _ = try all(sql, values) { _ in }
    }
}
