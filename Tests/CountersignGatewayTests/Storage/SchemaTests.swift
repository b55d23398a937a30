import CountersignSQLite
import Foundation
import Testing

@testable import CountersignGateway

@Suite(.timeLimit(.minutes(5)))
struct SchemaTests {
    private let folder: URL
    private var path: String { folder.appendingPathComponent("events.sqlite").path }
    private var backups: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path + "/backups")) ?? []).sorted()
    }

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("schema-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    private func versions() throws -> [Int] {
        try SQLiteConnection(path: path).all("SELECT version FROM schema_version ORDER BY version") {
            $0.int(0)
        }
    }

    @Test func aFileWithDataIsCopiedAsideBeforeItIsChanged() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
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
        // Nothing to do, nothing to copy.
        try Schema.migrate(connection, first + ["DROP TABLE a", "CREATE TABLE b (y INTEGER)"])
        #expect(backups.count == 1)
    }

    @Test func whenNoCopyCanBeMadeNothingIsChanged() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let connection = try SQLiteConnection(path: path)
        try Schema.migrate(connection, ["CREATE TABLE a (x INTEGER)"])
        // A file stands where the folder should be.
        try Data().write(to: folder.appendingPathComponent("backups"))
        #expect(throws: (any Error).self) {
            try Schema.migrate(connection, ["CREATE TABLE a (x INTEGER)", "DROP TABLE a"])
        }
        #expect(try connection.first("SELECT count(*) FROM a") { $0.int(0) } == 0)
        #expect(try versions() == [1])
    }

    @Test func aNewerFileIsRefused() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let connection = try SQLiteConnection(path: path)
        try connection.execute("PRAGMA user_version = 9")
        #expect(throws: SQLiteError.self) { try Schema.migrate(connection, ["CREATE TABLE a (x INTEGER)"]) }
    }

    // A window of 0 or 30 seconds cost nothing while a replaced token stayed good until its successor was used.
    @Test func aShortReuseWindowOfAnEarlierVersionBecomesAMinute() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let data = folder.path + "/data"
        let apps = try AppDirectory(dataDirectory: data)
        for (id, seconds) in [("a", 0), ("b", 30), ("c", 60)] {
            _ = try apps.createApp(id: id)
            var rules = TokenRules()
            rules.reuseSeconds = seconds
            rules.accessSeconds = 600
            try apps.setTokenRules(rules, for: id)
        }
        try SQLiteConnection(path: data + "/control.sqlite").execute("PRAGMA user_version = 12")
        let upgraded = try AppDirectory(dataDirectory: data)
        for id in ["a", "b", "c"] {
            #expect(try upgraded.tokenRules(of: id).reuseSeconds == 60)
            #expect(try upgraded.tokenRules(of: id).accessSeconds == 600)
        }
        // What an operator sets from then on stays.
        var rules = TokenRules()
        rules.reuseSeconds = 5
        try upgraded.setTokenRules(rules, for: "a")
        #expect(try AppDirectory(dataDirectory: data).tokenRules(of: "a").reuseSeconds == 5)
    }
}
