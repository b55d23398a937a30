internal import CountersignCore
import CountersignGatewayTesting
import CountersignSQLite
import GatewayModel
import GatewayTestSupport
import Testing

@testable import GatewayStorage

@Suite(.onSQLite("its own sweeper; RetentionTests has PostgreSQL's"), .ownThreads, .timeLimit(.minutes(5)))
struct RetentionSweeperTests {
    private static let day: Int64 = 86_400_000
    private let connection: SQLiteConnection

    init() throws {
        connection = try SQLiteConnection(path: ":memory:")
        try connection.execute(
            """
            CREATE TABLE event (
                seq INTEGER PRIMARY KEY AUTOINCREMENT, app_id TEXT, user_id TEXT, received_ms INTEGER, body TEXT);
            CREATE TABLE event_claim (app_id TEXT, user_id TEXT, seq INTEGER);
            CREATE TABLE app_user (app_id TEXT, user_id TEXT);
            """)
        try connection.execute(
            CustomerSchema.script + RetentionSweeper.script + CustomerSchema.propertyCount
                + EventConsumerSchema.script)
    }

    private static func text(_ bytes: Int) -> String {
        String(decoding: [UInt8](repeating: UInt8(ascii: "x"), count: bytes), as: UTF8.self)
    }

    private func add(_ appID: String, day: Int64, bytes: Int = 10) throws {
        try connection.run(
            "INSERT INTO event (app_id, received_ms, body) VALUES (?1, ?2, ?3)", .text(appID),
            .integer(day * Self.day), .text(Self.text(bytes)))
        try connection.run(
            """
            INSERT INTO app_usage (app_id, events, bytes) VALUES (?1, 1, ?2)
            ON CONFLICT (app_id) DO UPDATE SET events = events + 1, bytes = bytes + excluded.bytes
            """, .text(appID), .integer(Int64(bytes)))
    }

    /// Simulates the index with the rows of the table.
    private func events() throws -> RetentionSweeper.Events {
        let newest = try connection.first("SELECT max(seq) FROM event") { $0.int64(0) } ?? 0
        return RetentionSweeper.Events(newest: newest) { appID, sequence, limit in
            try connection.all(
                "SELECT seq FROM event WHERE app_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3", .text(appID),
                .integer(sequence), .integer(Int64(limit))
            ) { $0.int64(0) }
        } hasAny: { _, _, _ in
            true
        }
    }

    /// Sweeps to the end and returns the number of steps.
    @discardableResult
    private func sweep(_ rules: BytewiseDictionary<AppRules>, day: Int64) throws -> Int {
        var sweeper = RetentionSweeper()
        sweeper.begin(rules, nowMilliseconds: day * Self.day)
        var steps = 0
        while !sweeper.isDone {
            try sweeper.step(connection, try events())
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

    @Test func onlyEventsOlderThanTheAppsRetentionAreDeleted() throws {
        for day in 1...5 {
            try add("short", day: Int64(day))
            try add("long", day: Int64(day))
            try add("all", day: Int64(day))
        }
        let short = AppRules(days: 2)
        try sweep(["short": short, "long": AppRules(days: 4), "all": AppRules()], day: 6)
        #expect(try left("short") == [4, 5])
        #expect(try left("long") == [2, 3, 4, 5])
        #expect(try left("all") == [1, 2, 3, 4, 5])
        #expect(try usage("short") == [2, 20])
        try sweep(["short": short], day: 7)
        #expect(try left("short") == [5])
    }

    @Test func theOldestEventsAreDeletedOverTheByteLimit() throws {
        for day in 1...5 { try add("a", day: Int64(day), bytes: 100) }
        try sweep(["a": AppRules(bytes: 250)], day: 6)
        #expect(try left("a") == [4, 5])
        #expect(try usage("a") == [2, 200])
    }

    @Test func retentionDeletesManyEventsInSmallSteps() throws {
        for _ in 0..<500 { try add("other", day: 1) }
        for _ in 0..<500 { try add("a", day: 1) }
        let rules = AppRules(days: 1)
        #expect(try sweep(["a": rules], day: 9) == 500 / RetentionSweeper.rowsPerStep + 1)
        #expect(try left("a").isEmpty)
        #expect(try left("other").count == 500)
        #expect(try sweep(["a": rules], day: 9) == 1)
    }

    /// The work of one sweep: its transactions, and the events requested from the index.
    private func work(
        of sweeper: inout RetentionSweeper, _ rules: BytewiseDictionary<AppRules>, day: Int64
    ) throws -> (transactions: Int, scanned: Int) {
        var (transactions, scanned) = (0, 0)
        sweeper.begin(rules, nowMilliseconds: day * Self.day)
        while !sweeper.isDone {
            var events = try events()
            let ofApp = events.ofApp
            events.ofApp = { appID, sequence, limit in
                let found = try ofApp(appID, sequence, limit)
                scanned += max(1, found.count)
                return found
            }
            try sweeper.step(connection, events, counting: { transactions += 1 })
        }
        return (transactions, scanned)
    }

    @Test func retentionOfAnAppWithNothingExpiredNeedsNoTransaction() throws {
        for _ in 0..<5_000 { try add("busy", day: 1) }
        try add("idle", day: 8)
        for _ in 0..<5_000 { try add("busy", day: 9) }
        let apps = BytewiseDictionary(
            uniqueKeysWithValues: ["idle", "empty"].map { ($0, AppRules(days: 2)) })
        var sweeper = RetentionSweeper()
        #expect(try work(of: &sweeper, apps, day: 9) == (0, 2))
        // Results are cached. After another app stores an event, only the empty app is read again.
        #expect(try work(of: &sweeper, apps, day: 9) == (0, 0))
        try add("busy", day: 9)
        #expect(try work(of: &sweeper, apps, day: 9) == (0, 1))
        // The app's only event has expired: one transaction, one event read.
        #expect(try work(of: &sweeper, apps, day: 11) == (1, 1))
        #expect(try left("idle").isEmpty && usage("idle") == [0, 0])
        try add("idle", day: 11)
        #expect(try work(of: &sweeper, apps, day: 11) == (0, 2))
        #expect(try work(of: &sweeper, apps, day: 14).transactions == 1)
        #expect(try left("idle").isEmpty)
        #expect(try left("busy").count == 10_001)
    }

    @Test func retentionScansDeletedRangesOnce() throws {
        for day in 1...9 { try add("a", day: Int64(day)) }
        let rules = AppRules(days: 2)
        var sweeper = RetentionSweeper()
        var gone = try events()
        // The index still has deleted events, such as an erased customer's.
        gone.newest = 5_000
        gone.ofApp = { _, sequence, limit in Array((sequence + 1...5_000).prefix(limit)) }
        try connection.execute("DELETE FROM event")
        sweeper.begin(["a": rules], nowMilliseconds: 20 * Self.day)
        var steps = 0
        while !sweeper.isDone {
            try sweeper.step(connection, gone)
            steps += 1
        }
        #expect(steps <= 5_000 / RetentionSweeper.rowsPerStep)
        gone.ofApp = { _, _, _ in
            Issue.record("a later sweep reads the index again")
            return []
        }
        sweeper.begin(["a": rules], nowMilliseconds: 21 * Self.day)
        while !sweeper.isDone { try sweeper.step(connection, gone) }
    }

    /// Stores properties of a customer with this cookie, seen on `day`.
    private func change(_ cookie: String, of appID: String, day: Int64, properties: Int, bytes: Int) throws {
        var change = CustomerChange(
            identifiers: [CustomerIdentifier(name: "cookie", value: cookie)], atMilliseconds: day * Self.day)
        change.properties = (0..<properties).map {
            ("p\($0)", Array("\"\(Self.text(bytes))\"".utf8))
        }
        try CustomerWriter(connection: connection, appID: appID)
            .apply(change, receivedMilliseconds: day * Self.day)
    }

    private func customers(_ appID: String) throws -> [Int64] {
        try connection.all("SELECT seen_ms FROM customer WHERE app_id = ?1 ORDER BY seen_ms", .text(appID)) {
            $0.int64(0) / Self.day
        }
    }

    private func customerBytes(_ appID: String) throws -> Int64? {
        try connection.first("SELECT customer_bytes FROM app_usage WHERE app_id = ?1", .text(appID)) {
            $0.int64(0)
        }
    }

    @Test func customersNotSeenWithinTheRetentionAreDeleted() throws {
        for day in 1...4 { try change("c\(day)", of: "a", day: Int64(day), properties: 3, bytes: 10) }
        try change("c1", of: "a", day: 4, properties: 0, bytes: 0)
        try change("c1", of: "all", day: 1, properties: 1, bytes: 10)
        let rules = AppRules(days: 2)
        try sweep(["a": rules, "all": AppRules()], day: 5)
        #expect(try customers("a") == [3, 4, 4])
        #expect(try customers("all") == [1])
        try sweep(["a": rules], day: 50)
        #expect(try customers("a").isEmpty)
        #expect(try customerBytes("a") == 0)
        for table in ["customer_property", "customer_identifier"] {
            #expect(try connection.first("SELECT count(*) FROM \(table)") { $0.int(0) } == 1)
        }
    }

    @Test func customersCountTowardsTheByteLimitAndTheOldestAreDeleted() throws {
        try change("c1", of: "a", day: 1, properties: 1_000, bytes: 100)
        for day in 2...3 { try add("a", day: Int64(day), bytes: 10_000) }
        try change("c4", of: "a", day: 4, properties: 1, bytes: 5_000)
        // 1,000 values of 102 bytes, the names of their properties, `c1` and `cookie`.
        let first: Int64 = 102_000 + 3_890 + 8
        let second: Int64 = 5_002 + 2 + 8
        #expect(try customerBytes("a") == first + second)
        // A large customer is deleted in several steps.
        #expect(try sweep(["a": AppRules(bytes: 25_000)], day: 5) > 1_000 / RetentionSweeper.rowsPerStep)
        #expect(try customers("a") == [4])
        #expect(try left("a") == [3])
        #expect(try customerBytes("a") == second)
    }

    @Test func aRetentionStepDeletesManyCustomers() throws {
        // Three rows each: the customer, the cookie and the property.
        for number in 0..<300 { try change("c\(number)", of: "a", day: 1, properties: 1, bytes: 10) }
        let most = 900 / RetentionSweeper.rowsPerStep + 2
        #expect(try sweep(["a": AppRules(days: 2)], day: 50) <= most)
        #expect(try customers("a").isEmpty)
        #expect(try customerBytes("a") == 0)
        for number in 0..<300 { try change("c\(number)", of: "a", day: 1, properties: 1, bytes: 10) }
        #expect(try sweep(["a": AppRules(bytes: 0)], day: 50) <= most)
        #expect(try customers("a").isEmpty)
    }

    @Test func retentionAlternatesBetweenApps() throws {
        for number in 0..<300 {
            for app in ["a", "b", "c"] {
                try change("c\(number)", of: app, day: 1, properties: 1, bytes: 10)
            }
        }
        let rules = AppRules(days: 2)
        var sweeper = RetentionSweeper()
        sweeper.begin(["a": rules, "b": rules, "c": rules], nowMilliseconds: 50 * Self.day)
        for _ in 0..<3 { try sweeper.step(connection, try events()) }
        for app in ["a", "b", "c"] { #expect((1..<300).contains(try customers(app).count), "\(app)") }
    }

    @Test func aRetentionStepIsLimitedByBytes() throws {
        for day in 1...20 { try add("a", day: Int64(day), bytes: 1 << 20) }
        // More than the limit, as in a file of an earlier version.
        try change("c1", of: "a", day: 1, properties: 0, bytes: 0)
        for number in 0..<40 {
            try connection.run(
                "INSERT INTO customer_property SELECT id, ?1, ?2, 0 FROM customer", .text("p\(number)"),
                .text(Self.text(500_000)))
        }
        var sweeper = RetentionSweeper()
        sweeper.begin(["a": AppRules(days: 1)], nowMilliseconds: 90 * Self.day)
        var before = try bytes("a")
        while !sweeper.isDone {
            try sweeper.step(connection, try events())
            let after = try bytes("a")
            // Rows of a large customer are deleted eight at a time, so a step may exceed the bound.
            #expect(before - after <= RetentionSweeper.bytesPerStep + 8 * 500_100)
            before = after
        }
        #expect(before == 0)
    }

    private func bytes(_ appID: String) throws -> Int64 {
        try connection.first("SELECT bytes + customer_bytes FROM app_usage WHERE app_id = ?1", .text(appID)) {
            $0.int64(0)
        } ?? 0
    }

    @Test func aCustomerWithManyMergesIsDeletedInSmallSteps() throws {
        try change("c1", of: "a", day: 1, properties: 0, bytes: 0)
        try connection.execute(
            """
            WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000)
            INSERT INTO customer_merge SELECT 's' || n, (SELECT id FROM customer), 1 FROM numbers
            """)
        #expect(try sweep(["a": AppRules(days: 1)], day: 90) > 1_000 / RetentionSweeper.rowsPerStep)
        #expect(try connection.first("SELECT count(*) FROM customer_merge") { $0.int(0) } == 0)
    }
}
