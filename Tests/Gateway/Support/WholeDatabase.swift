package import CountersignGatewayTesting
import CountersignSQLite
package import GatewayStorage

/// A whole database, for tests that do not name its tables.
package struct WholeDatabase {
    /// The SQLite file without its extension, or `database` on PostgreSQL.
    package let name: String
    package let connection: any SQLConnection

    package struct Column {
        package let name: String
        package let type: String
        package let isKey: Bool
    }

    /// Returns the named SQLite files, or the one PostgreSQL database.
    package static func all(
        of place: TestStorage, files: [String] = ["control", "events", "analytics", "tokens"]
    ) throws -> [WholeDatabase] {
        try (TestEngine.standard == .sqlite ? files : ["database"]).map {
            WholeDatabase(name: $0, connection: try place.connection(to: $0))
        }
    }

    private static let sqliteColumns = """
        SELECT m.name, c.name, c.type, c.pk FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c
        WHERE m.type = 'table'
        """
    private static let postgreSQLColumns = """
        SELECT relname, attname, upper(format_type(atttypid, NULL)), attnum = ANY (coalesce(indkey, ''))
        FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
            AND attgenerated = ''
        LEFT JOIN pg_index ON indrelid = pg_class.oid AND indisprimary
        WHERE relnamespace = 'countersign'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
        """

    /// Returns the columns of each table.
    package func tables() throws -> [String: [Column]] {
        let columns = try connection.all(
            TestEngine.standard == .sqlite ? Self.sqliteColumns : Self.postgreSQLColumns
        ) { ($0.text(0), Column(name: $0.text(1), type: $0.text(2), isKey: $0.int(3) > 0)) }
        return Dictionary(grouping: columns, by: \.0).mapValues { $0.map(\.1) }
    }

    /// Adds `count` rows of an app to each table with an `app_id` column. Returns the names of the tables.
    package func addRows(of appID: String, count: Int, except: Set<String>) throws -> [String] {
        // The new rows may reference rows that do not exist.
        try connection.execute(
            TestEngine.standard == .sqlite
                ? "PRAGMA foreign_keys = OFF" : "SET session_replication_role = replica")
        let found = try tables().filter { name, columns in
            columns.contains { $0.name == "app_id" } && !except.contains(name)
        }
        for (table, columns) in found {
            for number in 1...count {
                let values = columns.map { column -> SQLValue in
                    if column.name == "app_id" { return .text(appID) }
                    // The integer 1 satisfies every check. Key columns get different values in each row.
                    let isFree = column.isKey || ["message_id", "value", "id"].contains(column.name)
                    switch column.type {
                    case "TEXT": return .text(isFree ? "\(appID)-\(number)" : "x")
                    case "BLOB", "BYTEA":
                        return .blob(isFree ? Array("\(appID)-\(number)".utf8) : [1])
                    // A time in the future, so that a running gateway does not sweep the row.
                    case _ where column.name.hasSuffix("_ms") && !column.isKey:
                        return .integer(4_000_000_000_000)
                    default:
                        return .integer(isFree ? Int64(number) + 1_000 * Int64(appID.count) : 1)
                    }
                }
                _ = try connection.all(
                    """
                    INSERT INTO \(table) (\(columns.map { "\"\($0.name)\"" }.joined(separator: ", ")))
                    VALUES (\(columns.indices.map { "?\($0 + 1)" }.joined(separator: ", "))) ON CONFLICT DO NOTHING
                    """, values
                ) { _ in }
            }
        }
        return found.keys.sorted()
    }

    /// Returns the number of an app's rows in each table with an `app_id` column.
    package func rows(of appID: String) throws -> [String: Int] {
        var counts: [String: Int] = [:]
        for (table, columns) in try tables() where columns.contains(where: { $0.name == "app_id" }) {
            counts[table] = try connection.first(
                "SELECT count(*) FROM \(table) WHERE app_id = ?1", .text(appID)
            ) { $0.int(0) }
        }
        return counts
    }

    /// Returns the tables that contain this text in a column of any type.
    package func tables(with text: String) throws -> [String] {
        try tables().filter { table, columns in
            try columns.contains { column in
                let name = "\"\(column.name)\""
                let place =
                    if TestEngine.standard == .sqlite {
                        "instr(CAST(\(name) AS BLOB), CAST(?1 AS BLOB))"
                    } else if column.type == "BYTEA" {
                        "position(convert_to(?1, 'UTF8') IN \(name))"
                    } else {
                        "strpos(\(name)::text, ?1)"
                    }
                return try connection.first("SELECT 1 FROM \(table) WHERE \(place) > 0", .text(text)) { _ in
                    true
                } == true
            }
        }.keys.sorted()
    }
}
