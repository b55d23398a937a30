import Foundation
import Testing

@testable import CountersignSQLite

struct SQLiteConnectionTests {
    private func withFile(_ body: (String) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder.appendingPathComponent("file").path)
    }

    @Test func valuesComeBackAsTheyWereBound() throws {
        let database = try SQLiteConnection(path: ":memory:")
        try database.execute("CREATE TABLE t (a INTEGER, b REAL, c TEXT, d BLOB, e TEXT, f TEXT, g BLOB)")
        try database.run(
            "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", .integer(.min), .real(0.1), .text("e\u{301}\0x"),
            .blob([0, 255]),
            .null, .text(""), .blob([]))
        let row = try #require(
            try database.first("SELECT * FROM t") { row in
                (
                    row.int64(0), row.double(1), Array(row.text(2).utf8), row.blob(3), row.optionalText(4),
                    row.optionalText(5), row.isNull(6)
                )
            })
        #expect(row.0 == .min && row.1 == 0.1 && row.2 == [0x65, 0xCC, 0x81, 0, 0x78] && row.3 == [0, 255])
        #expect(row.4 == nil && row.5 == "" && row.6 == false)
    }

    @Test func aPartOfABufferIsBoundAsText() throws {
        let database = try SQLiteConnection(path: ":memory:")
        let statement = try database.prepare("SELECT ?1, ?2")
        try Array("abcdef".utf8).withUnsafeBufferPointer { bytes in
            try statement.bind(borrowing: bytes, 2..<4, at: 1)
            try statement.bind(borrowing: bytes, 2..<2, at: 2)
            #expect(try statement.step())
            #expect(statement.text(0) == "cd")
            #expect(statement.optionalText(1) == "")
            statement.rewind()
            try statement.bind(.text("x"), at: 2)
            #expect(try statement.step())
            #expect(statement.text(0) == "cd" && statement.text(1) == "x")
        }
    }

    /// A query with optional filters is another statement for each combination of filters.
    @Test func aConnectionKeepsABoundedNumberOfStatements() throws {
        let database = try SQLiteConnection(path: ":memory:")
        let inUse = try database.cached("SELECT 1 UNION SELECT 2")
        #expect(try inUse.step())
        for number in 0..<1_000 { #expect(try database.first("SELECT \(number)") { _ in true } == true) }
        #expect(database.cache.count <= SQLiteConnection.mostStatements)
        #expect(try inUse.step() && inUse.int64(0) == 2)
    }

    @Test func aTransactionIsAllOrNothing() throws {
        let database = try SQLiteConnection(path: ":memory:")
        try database.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
        #expect(throws: SQLiteError.self) {
            try database.transaction {
                try database.run("INSERT INTO t VALUES (1)")
                try database.run("INSERT INTO t VALUES (1)")
            }
        }
        #expect(!database.isInTransaction)
        #expect(try database.first("SELECT count(*) FROM t") { $0.int(0) } == 0)
    }

    @Test func errorsHaveSQLitesCodesAndNoValues() throws {
        let database = try SQLiteConnection(path: ":memory:")
        try database.execute("CREATE TABLE t (a TEXT PRIMARY KEY)")
        try database.run("INSERT INTO t VALUES (?)", .text("secret"))
        let error = #expect(throws: SQLiteError.self) {
            try database.run("INSERT INTO t VALUES (?)", .text("secret"))
        }
        #expect(error?.code == 19)
        #expect(error?.extendedCode == 1555)
        #expect("\(try #require(error))".contains("secret") == false)
    }

    @Test func aLockedFileIsBusyAndATextFileIsCorrupt() throws {
        try withFile { path in
            let first = try SQLiteConnection(path: path)
            try first.execute("CREATE TABLE t (a); BEGIN EXCLUSIVE")
            let second = try SQLiteConnection(path: path, busyTimeoutMilliseconds: 1)
            #expect(#expect(throws: SQLiteError.self) { try second.execute("DELETE FROM t") }?.isBusy == true)
        }
        try withFile { path in
            try Data(repeating: 0x41, count: 4_096).write(to: URL(fileURLWithPath: path))
            let database = try SQLiteConnection(path: path)
            #expect(
                #expect(throws: SQLiteError.self) { try database.execute("SELECT * FROM t") }?.isCorrupt
                    == true)
        }
    }

    @Test func onlyTheFirstTransactionWaitsForALockThatIsNotReleased() throws {
        try withFile { path in
            let holder = try SQLiteConnection(path: path)
            try holder.execute("CREATE TABLE t (a); BEGIN IMMEDIATE")
            let waiting = try SQLiteConnection(path: path, busyTimeoutMilliseconds: 1, waitsOnceForLock: true)
            func timeout() throws -> Int? { try waiting.first("PRAGMA busy_timeout") { $0.int(0) } }
            #expect(try !waiting.isLockHeld && timeout() == 1)
            #expect(throws: SQLiteError.self) { try waiting.transaction {} }
            #expect(try waiting.isLockHeld && timeout() == 20)
            try holder.execute("COMMIT")
            try waiting.transaction {}
            #expect(try !waiting.isLockHeld && timeout() == 1)
        }
    }

    @Test func migrationsRunOnce() throws {
        try withFile { path in
            let first = ["CREATE TABLE t (a)", "INSERT INTO t VALUES (1)"]
            try SQLiteConnection(path: path).migrate(first)
            let database = try SQLiteConnection(path: path)
            try database.migrate(first + ["INSERT INTO t VALUES (2)"])
            #expect(try database.all("SELECT a FROM t") { $0.int(0) } == [1, 2])
        }
    }

    @Test func aFailedMigrationIsRolledBack() throws {
        let database = try SQLiteConnection(path: ":memory:")
        #expect(throws: SQLiteError.self) { try database.migrate(["CREATE TABLE t (a); CREATE TABLE t (a)"]) }
        try database.migrate(["CREATE TABLE t (a)"])
    }

    /// Another process migrates between the version check and the lock of the transaction.
    @Test func aMigrationAppliedByAnotherProcessIsSkipped() throws {
        let database = try SQLiteConnection(path: ":memory:")
        let migrations = ["CREATE TABLE a (x)", "CREATE TABLE b (x)", "CREATE TABLE c (x)"]
        var applied: [Int] = []
        try database.migrate(migrations) { number in
            applied.append(number)
            if number == 1 { try database.execute("\(migrations[1]); PRAGMA user_version = 2") }
        }
        #expect(applied == [1, 3])
    }

    @Test func aFailedStatementIsReported() throws {
        let database = try SQLiteConnection(path: ":memory:")
        #expect(throws: SQLiteError.self) { try database.execute("CREATE TABLE t (a); no SQL") }
        // Statements before the error take effect.
        #expect(try database.first("SELECT count(*) FROM t") { $0.int(0) } == 0)
    }

    @Test func bindingToAMissingParameterThrows() throws {
        let database = try SQLiteConnection(path: ":memory:")
        let statement = try database.prepare("SELECT ?1")
        let bytes = Array("text".utf8)
        bytes.withUnsafeBufferPointer { bytes in
            let ways: [() throws -> Void] = [
                { try statement.bind([.integer(1), .integer(2)]) },
                { try statement.bind(text: "text", at: 2) },
                { try statement.bind(borrowing: bytes, 0..<4, at: 2) },
            ]
            for way in ways { #expect(#expect(throws: SQLiteError.self) { try way() }?.code == 25) }
        }
    }

    @Test func aFailedCopyIsReportedAndCanBeRepeated() throws {
        try withFile { path in
            let writer = try SQLiteConnection(path: path)
            try writer.execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
            let reader = try SQLiteConnection(path: path, busyTimeoutMilliseconds: 1)
            let copy = path + "-copy"
            defer { try? FileManager.default.removeItem(atPath: copy) }
            try writer.execute("BEGIN EXCLUSIVE")
            let error = #expect(throws: SQLiteError.self) { try reader.copy(to: copy) }
            #expect(error?.isBusy == true)
            try writer.execute("ROLLBACK")
            try reader.copy(to: copy)
            #expect(try SQLiteConnection(path: copy).first("SELECT a FROM t") { $0.int(0) } == 1)
        }
    }

    @Test func aCopyIsAConsistentSnapshotAndStopsOnRequest() throws {
        try withFile { path in
            let writer = try SQLiteConnection(path: path)
            try writer.execute("PRAGMA journal_mode = WAL; CREATE TABLE t (a)")
            for _ in 0..<1_000 { try writer.run("INSERT INTO t VALUES (randomblob(4000))") }
            let copy = path + "-copy"
            defer { try? FileManager.default.removeItem(atPath: copy) }
            var steps = 0
            try SQLiteConnection(path: path).copy(to: copy) {
                steps += 1
                // If each commit restarted the copy, the copy would never end.
                try writer.run("INSERT INTO t VALUES (1)")
            }
            #expect(steps > 2)
            #expect(try SQLiteConnection(path: copy).first("SELECT count(*) FROM t") { $0.int(0) } == 1_000)
            #expect(try writer.first("SELECT count(*) FROM t") { $0.int(0) } == 1_000 + steps)

            struct Ended: Error {}
            let reader = try SQLiteConnection(path: path)
            #expect(throws: Ended.self) { try reader.copy(to: path + "-other") { throw Ended() } }
            // The aborted copy is empty, and holds no lock.
            let other = try SQLiteConnection(path: path + "-other")
            defer { try? FileManager.default.removeItem(atPath: path + "-other") }
            #expect(try other.first("SELECT count(*) FROM sqlite_schema") { $0.int(0) } == 0)
            #expect(try writer.first("PRAGMA wal_checkpoint(TRUNCATE)") { $0.int(0) } == 0)
        }
    }

    @Test func anotherConnectionsCommitShowsInTheDataVersion() throws {
        try withFile { path in
            let first = try SQLiteConnection(path: path)
            try first.execute("CREATE TABLE t (a)")
            let before = try first.dataVersion()
            try first.execute("INSERT INTO t VALUES (1)")
            #expect(try first.dataVersion() == before)
            try SQLiteConnection(path: path).execute("INSERT INTO t VALUES (2)")
            #expect(try first.dataVersion() != before)
        }
    }
}
