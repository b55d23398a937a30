import CountersignGatewayTesting
import CountersignSQLite
import Foundation
import GatewayModel
import GatewayStorage
import Testing

@testable import GatewayPostgreSQL

extension PostgreSQLTests {
    @Suite struct SchemaTests {
        @Test(arguments: [0, PostgreSQLSchema.oldestVersion])
        func eightProgramsAtOnceMigrateOnce(version: Int) async throws {
            try await TestDatabase.use(migrated: false) { database in
                if version > 0 {
                    try database.connect().execute(
                        """
                        \(PostgreSQLSchema.first + PostgreSQLSchema.migrations[0])
                        INSERT INTO schema_version VALUES (\(version), now(), 'earlier')
                        """)
                }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<8 {
                        group.addTask { try PostgreSQLSchema.migrate(database.settings) }
                    }
                    try await group.waitForAll()
                }
                let steps = try database.connect().all("SELECT version FROM schema_version ORDER BY 1") {
                    $0.int(0)
                }
                #expect(steps == Array(PostgreSQLSchema.oldestVersion...PostgreSQLSchema.newest))
            }
        }

        @Test(arguments: [(999, "a newer"), (1, "an older")])
        func anUnknownSchemaIsRejectedWithAReason(version: Int, age: String) throws {
            try TestDatabase.use { database in
                try database.connect().execute(
                    "DELETE FROM schema_version; INSERT INTO schema_version VALUES (\(version), now(), 'x')")
                let error = #expect(throws: GatewayError.self) {
                    try PostgreSQLSchema.migrate(database.settings)
                }
                #expect(error?.code == .conflict)
                #expect(error?.reason.contains("by \(age) version (schema \(version),") == true)
            }
        }

        /// Such a database cannot store every text, so storing some events would fail.
        @Test(arguments: ["SQL_ASCII", "LATIN1"])
        func aDatabaseThatIsNotUTF8IsRejectedWithAReason(encoding: String) throws {
            let database = try TestDatabase(encoding: encoding)
            defer { database.drop() }
            func check(_ error: GatewayError?) {
                #expect(error?.code == .conflict)
                #expect(error?.reason.contains("encoding is \(encoding)") == true)
                #expect(error?.reason.contains("ENCODING 'UTF8'") == true)
            }
            check(#expect(throws: GatewayError.self) { try PostgreSQLSchema.version(database.settings) })
            check(#expect(throws: GatewayError.self) { try PostgreSQLSchema.migrate(database.settings) })
            let address = try #require(database.address(tokenKeyFile: "/nowhere"))
            check(#expect(throws: GatewayError.self) { try PostgreSQLStorage(address) })
            let isMade = try database.connect().first("SELECT to_regnamespace('countersign') IS NOT NULL") {
                $0.int(0) != 0
            }
            #expect(isMade == false)
        }

        /// Every table that both engines have holds the same columns in the same order, since they share the SQL.
        @Test func sharedTablesHaveTheColumnsOfSQLite() throws {
            try TestDatabase.use { database in
                let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
                    .path
                defer { try? FileManager.default.removeItem(atPath: folder) }
                let storage = try SQLiteStorage(dataDirectory: folder)
                _ = try storage.openControl(as: .schedule)
                _ = try storage.openSecrets()
                _ = try storage.openTokenFamilies(refreshKey: [])
                _ = try storage.openAnalytics(from: NoTraffic(), now: { Date() }) { _ in }
                _ = try storage.openDeliveries()
                _ = try storage.openEarlierStreams()
                let connection = try database.connect()
                var compared = 0
                for file in try FileManager.default.contentsOfDirectory(atPath: folder)
                where file.hasSuffix(".sqlite") {
                    let sqlite = try SQLiteConnection(path: folder + "/" + file)
                    let tables = try sqlite.all(
                        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'schema_version'"
                    ) { $0.text(0) }
                    for table in tables {
                        let expected = try sqlite.all("SELECT name FROM pragma_table_info(?)", .text(table)) {
                            $0.text(0)
                        }
                        let found = try connection.all(
                            """
                            SELECT attname FROM pg_attribute
                            WHERE attrelid = to_regclass(?1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
                            """, .text("countersign.\"\(table)\"")
                        ) { $0.text(0) }
                        #expect(found == expected, "\(file): \(table)")
                        compared += 1
                    }
                }
                #expect(compared > 30)
            }
        }

        /// A text that has another collation would be compared and ordered otherwise than by SQLite.
        @Test func textsCompareByTheirBytes() throws {
            try TestDatabase.use { database in
                let others = try database.connect().all(
                    """
                    SELECT attrelid::regclass::text || '.' || attname FROM pg_attribute
                    JOIN pg_class ON pg_class.oid = attrelid JOIN pg_collation ON pg_collation.oid = attcollation
                    WHERE relnamespace = 'countersign'::regnamespace AND attnum > 0 AND collname <> 'C'
                    AND relname NOT LIKE 'schema_version%'
                    """
                ) { $0.text(0) }
                #expect(others == [])
            }
        }
    }
}
