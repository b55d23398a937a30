import CountersignCore
import CountersignSQLite
import Testing

@testable import CountersignGateway

struct RetentionSweeperTests {
    private static let day: Int64 = 86_400_000
    private let connection: SQLiteConnection

    init() throws {
        connection = try SQLiteConnection(path: ":memory:")
        try connection.execute(
            """
            CREATE TABLE event (seq INTEGER PRIMARY KEY AUTOINCREMENT, app_id TEXT, received_ms INTEGER, body TEXT)
            """)
    }

    private func add(_ appID: String, day: Int64, bytes: Int = 10) throws {
        try connection.run(
            "INSERT INTO event (app_id, received_ms, body) VALUES (?1, ?2, ?3)", .text(appID),
            .integer(day * Self.day), .text(String(repeating: "x", count: bytes)))
    }

    /// Sweeps to the end and returns the number of steps that it took.
    @discardableResult
    private func sweep(_ rules: [String: AppRules], day: Int64) throws -> Int {
        var sweeper = RetentionSweeper()
        sweeper.begin(rules, nowMilliseconds: day * Self.day)
        var steps = 0
        while !sweeper.isDone {
            try sweeper.step(connection)
            steps += 1
        }
        return steps
    }

    private func left(_ appID: String) throws -> [Int64] {
        try connection.all(
            "SELECT received_ms FROM event WHERE app_id = ?1 ORDER BY seq", .text(appID)
        ) { $0.int64(0) / Self.day }
    }

    private func usage(_ appID: String) throws -> [Int64] {
        try connection.first("SELECT events, bytes FROM app_usage WHERE app_id = ?1", .text(appID)) {
            [$0.int64(0), $0.int64(1)]
        } ?? []
    }

    @Test func whatIsOlderThanItsAppKeepsGoesAndNothingElse() throws {
        for day in 1...5 {
            try add("short", day: Int64(day))
            try add("long", day: Int64(day))
            try add("all", day: Int64(day))
        }
        try connection.execute(RetentionSweeper.script)
        var short = AppRules()
        short.retentionDays = 2
        var long = AppRules()
        long.retentionDays = 4
        try sweep(["short": short, "long": long, "all": AppRules()], day: 6)
        #expect(try left("short") == [4, 5])
        #expect(try left("long") == [2, 3, 4, 5])
        #expect(try left("all") == [1, 2, 3, 4, 5])
        #expect(try usage("short") == [2, 20])
        // The next sweep goes on where this one ended.
        try sweep(["short": short], day: 7)
        #expect(try left("short") == [5])
    }

    @Test func theOldestGoWhileThereIsTooMuch() throws {
        for day in 1...5 { try add("a", day: Int64(day), bytes: 100) }
        try connection.execute(RetentionSweeper.script)
        var rules = AppRules()
        rules.retentionBytes = 250
        try sweep(["a": rules], day: 6)
        #expect(try left("a") == [4, 5])
        #expect(try usage("a") == [2, 200])
    }

    @Test func aLongWayIsDoneInSmallSteps() throws {
        for _ in 0..<500 { try add("other", day: 1) }
        for _ in 0..<500 { try add("a", day: 1) }
        try connection.execute(RetentionSweeper.script)
        var rules = AppRules()
        rules.retentionDays = 1
        #expect(try sweep(["a": rules], day: 9) == 1_000 / RetentionSweeper.rowsPerStep + 1)
        #expect(try left("a").isEmpty)
        #expect(try left("other").count == 500)
        // What it has looked at, it does not look at again.
        #expect(try sweep(["a": rules], day: 9) == 1)
    }
}
