import CountersignSQLite
import CountersignTesting
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayModel
@testable import GatewayStorage

@Suite(.onSQLite("the schemas of its files"), .ownThreads, .timeLimit(.minutes(5)))
struct SchemaTests {
    private let temporary = TemporaryFolder()
    private var folder: URL { temporary.url }
    private var path: String { folder.appendingPathComponent("events.sqlite").path }
    private var backups: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path + "/backups")) ?? []).sorted()
    }

    init() throws {
        try FileManager.default.createDirectory(at: temporary.url, withIntermediateDirectories: true)
    }

    private func versions() throws -> [Int] {
        try SQLiteConnection(path: path).all("SELECT version FROM schema_version ORDER BY version") {
            $0.int(0)
        }
    }

    @Test func aFileWithDataIsBackedUpBeforeItsMigration() throws {
        let first = ["CREATE TABLE a (x INTEGER)"]
        let connection = try SQLiteConnection(path: path)
        try Schema.migrate(connection, first)
        #expect(backups.isEmpty)
        #expect(try versions() == [1])
        try connection.execute("INSERT INTO a VALUES (42)")
        try Schema.migrate(connection, first + ["DROP TABLE a", "CREATE TABLE b (y INTEGER)"])
        #expect(try versions() == [1, 2, 3])
        let name = try #require(backups.first)
        #expect(backups.count == 1)
        #expect(name.hasPrefix("events-schema1-"))
        let copy = try SQLiteConnection(path: folder.path + "/backups/" + name)
        #expect(try copy.first("SELECT x FROM a") { $0.int(0) } == 42)
        #expect(try copy.first("PRAGMA user_version") { $0.int(0) } == 1)
        // A run without pending migrations makes no backup.
        try Schema.migrate(connection, first + ["DROP TABLE a", "CREATE TABLE b (y INTEGER)"])
        #expect(backups.count == 1)
    }

    @Test func withoutABackupCopyNoMigrationRuns() throws {
        let connection = try SQLiteConnection(path: path)
        try Schema.migrate(connection, ["CREATE TABLE a (x INTEGER)"])
        // A file blocks the path of the backup folder.
        try Data().write(to: folder.appendingPathComponent("backups"))
        #expect(throws: (any Error).self) {
            try Schema.migrate(connection, ["CREATE TABLE a (x INTEGER)", "DROP TABLE a"])
        }
        #expect(try connection.first("SELECT count(*) FROM a") { $0.int(0) } == 0)
        #expect(try versions() == [1])
    }

    @Test(arguments: [(9, "a newer"), (1, "an older")])
    func aFileOfAnUnknownVersionIsRejected(version: Int, age: String) throws {
        let connection = try SQLiteConnection(path: path)
        try connection.execute("PRAGMA user_version = \(version)")
        let error = #expect(throws: GatewayError.self) {
            try Schema.migrate(connection, ["CREATE TABLE a (x INTEGER)"], from: 2)
        }
        #expect(error?.code == .conflict)
        #expect(error?.reason.contains("by \(age) version (schema \(version), ") == true)
    }

    /// Earlier versions stored a gap (events deleted unread) per consumer.
    @Test func aConsumersGapIsMigratedToItsPartitions() throws {
        let connection = try SQLiteConnection(path: path)
        try Schema.migrate(
            connection, EventLogSchema.migrations.dropLast(), from: EventLogSchema.oldestVersion)
        try connection.execute(
            """
            INSERT INTO event_consumer (app_id, kind, name, created_ms, generation, missed_ms)
                VALUES ('shop', 'pull', 'one', 1, 1, 1), ('shop', 'pull', 'two', 1, 1, NULL);
            INSERT INTO event_consumer_position VALUES ('shop', 'pull', 'one', 0, 5),
                ('shop', 'pull', 'one', 1, 4), ('shop', 'pull', 'two', 0, 7);
            INSERT INTO event_floor VALUES ('shop', 5);
            """)
        try EventLogSchema.migrate(connection)
        let gaps = try connection.all(
            "SELECT is_after_gap FROM event_consumer_position ORDER BY name, partition"
        ) { $0.int(0) }
        #expect(gaps == [1, 0, 0])
    }
}
