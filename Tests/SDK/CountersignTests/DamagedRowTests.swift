import CountersignCore
import CountersignSQLite
import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery

/// Damage that SQLite does not detect: a changed type or bit. Each damaged value loses at most one event and
/// never blocks the queue.
@Suite(.closing, .timeLimit(.minutes(5)))
struct DamagedRowTests {
    private static let eventCount = 10

    /// A queue file with events of two users, one event in quarantine, and every counter and setting.
    private func makeQueue(_ bench: Bench) async throws -> URL {
        var bench = bench
        bench.configuration.limits.maximumEventBytes = 2_000
        let client = try bench.makeClient()
        client.identify(userID: "ada", token: "a.a.a")
        #expect(await client.flush().isComplete)
        _ = try? await client.record("big", properties: ["x": .string(String(repeating: "x", count: 3_000))])
        for number in 0..<Self.eventCount {
            _ = client.setUser(number.isMultiple(of: 2) ? "ada" : "bob", token: "a.a.a")
            try await client.record("\(number)")
        }
        await client.close()
        return bench.queueFile
    }

    /// Runs statements on a file without its NOT NULL constraints.
    private func change(_ file: URL, _ body: (SQLiteConnection) throws -> Void) throws {
        func replace(_ old: String, _ new: String) throws {
            let database = try SQLiteConnection(path: file.path)
            try database.execute("PRAGMA writable_schema = ON")
            try database.run(
                "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE type = 'table' AND name <> 'sqlite_sequence'",
                .text(old), .text(new))
        }
        try replace(" NOT NULL", " CHECK (1)")
        do {
            let database = try SQLiteConnection(path: file.path)
            try body(database)
        }
        try replace(" CHECK (1)", " NOT NULL")
    }

    /// Sends the events in the file and one more. Returns the names of the events that the server received.
    private func deliver(_ bench: Bench) async throws -> (events: Set<String>, snapshot: CountersignSnapshot)
    {
        let client = try bench.makeClient()
        for user in ["ada", "bob"] { _ = client.setUser(user, token: "a.a.a") }
        let result = await client.flush()
        #expect(result.ending == .drained)
        try await client.record("new")
        #expect(await client.flush().ending == .drained)
        let snapshot = await client.snapshot()
        await client.close()
        return (Set(bench.gateway.events), snapshot)
    }

    @Test(arguments: ["message_id", "user_id", "body"], ["NULL", "7", "0.5", "x''", "x'ff00'", "''"])
    func aDamagedRowIsQuarantined(column: String, value: String) async throws {
        let bench = try Bench()
        let file = try await makeQueue(bench)
        try change(file) { database in
            try database.execute(
                "UPDATE event SET \(column) = \(value) WHERE seq = (SELECT min(seq) + 4 FROM event)")
        }
        let (events, snapshot) = try await deliver(bench)
        let isGood =
            value == "''" && column != "body" || column == "message_id" && ["7", "0.5"].contains(value)
        let expected = Set((0..<Self.eventCount).map { "\($0)" } + ["new"])
        #expect(events.isSubset(of: expected))
        #expect(events.count >= expected.count - (isGood ? 0 : 1), "\(events)")
        #expect(events.contains("new"))
        #expect(snapshot.queued == 0)
        #expect(snapshot.quarantined == 1 + expected.count - events.count)
    }

    @Test func manyDamagedRowsAreQuarantinedTogether() async throws {
        let bench = try Bench()
        let file = try await makeQueue(bench)
        try change(file) { database in
            try database.execute("UPDATE event SET body = NULL WHERE user_id = 'ada'")
        }
        let (events, snapshot) = try await deliver(bench)
        #expect(events == ["1", "3", "5", "7", "9", "new"])
        #expect(snapshot.quarantined == 1 + 5)
        let client = try bench.makeClient()
        #expect(try await client.requeueQuarantinedEvents() == 6)
        #expect(await client.flush().ending == .drained)
        #expect(await client.snapshot().queued == 0, "the rows are quarantined again")
    }

    /// Tries other types in every column, and flipped bits of numbers or changed bytes of text.
    @Test(arguments: [
        ("event", ["seq", "message_id", "user_id", "session_id", "queue_time_s", "body"]),
        ("quarantine", ["message_id", "user_id", "session_id", "body", "code", "reason", "quarantined_ms"]),
        ("counter", ["name", "value"]), ("setting", ["name", "value"]),
        ("lease", ["holder", "process_id", "until_uptime_ms", "duration_ms"]),
        ("sqlite_sequence", ["name", "seq"]),
    ])
    func anyDamageToAValueCostsOneEventAtMost(table: String, columns: [String]) async throws {
        let original = try Bench()
        let file = try await makeQueue(original)
        let saved = try Data(contentsOf: file)
        var random = SeededGenerator(seed: 7)
        for column in columns {
            let isNumber =
                ["seq", "queue_time_s", "quarantined_ms", "value", "process_id"].contains(column)
                && table != "setting" || column.hasSuffix("_ms")
            let types = column == "seq" && table == "event" ? [] : ["NULL", "'text'", "x'ff'", "-1", "1e300"]
            let flips: [String] =
                isNumber
                ? (0..<64).filter { $0 % 4 == 3 || $0 < 3 }.map { bit in
                    // SQLite has no XOR operator.
                    let mask = "(1 << \(bit))"
                    return "(\(column) | \(mask)) - (\(column) & \(mask))"
                }
                : (0..<8).map { _ in
                    let byte = Int.random(in: 1...24, using: &random)
                    let new = String(format: "%02x", Int.random(in: 0...255, using: &random))
                    return "CAST(substr(CAST(\(column) AS BLOB), 1, \(byte) - 1) || x'\(new)' || "
                        + "substr(CAST(\(column) AS BLOB), \(byte) + 1) AS \(column == "body" ? "BLOB" : "TEXT"))"
                }
            var changes = 0
            for value in types + flips {
                let bench = try Bench()
                let directory = bench.configuration.instanceDirectory
                try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
                let copy = directory.appendingPathComponent("queue.sqlite")
                try saved.write(to: copy)
                let key = ["counter": "name", "setting": "name", "sqlite_sequence": "rowid"][table]
                try change(copy) { database in
                    if table == "lease" {
                        try database.execute("INSERT INTO lease VALUES (1, 'holder', 1, 3600000, 60000)")
                    }
                    let row =
                        key.map { "\($0) = (SELECT max(\($0)) FROM \(table) WHERE \($0) <> 'recorded')" }
                        ?? (table == "lease" ? "id = 1" : "seq = (SELECT min(seq) FROM \(table))")
                    // The update fails for a duplicate key or an invalid rowid type.
                    guard (try? database.run("UPDATE \(table) SET \(column) = \(value) WHERE \(row)")) != nil
                    else { return }
                    changes += database.changes
                }
                if table == "lease" {
                    // The lease holder is alive, so only time can end the lease.
                    bench.clock.advance(by: 3_700)
                }
                let (events, snapshot) = try await deliver(bench)
                let expected = (0..<Self.eventCount).map { "\($0)" } + ["new"]
                let missing = expected.filter { !events.contains($0) }
                #expect(
                    missing.count <= 1 && !missing.contains("new"),
                    "\(table).\(column) = \(value): \(missing)")
                #expect(snapshot.recorded >= 0 && snapshot.sent >= 0 && snapshot.queued >= 0)
            }
            #expect(changes > 10, "\(table).\(column)")
        }
    }

    // MARK: Other files

    /// Damaged tokens and users count as missing. The user signs in again, and no event is lost.
    @Test func anyDamageToTheFilesOfTokensAndUsersIsNotAnError() throws {
        let folder = TemporaryFolder()
        let tokens = FileTokenStore(directory: folder.url)
        let user = StoredUser(directory: folder.url, writeKey: "wk")
        try tokens.store("a.b.c", for: "ada")
        try user.file.write(StoredUser.Identity(user: "ada").bytes)
        try user.change { $0.beginLogOut(of: "bob", in: "h") }
        let identityFile = URL(fileURLWithPath: user.file.path).lastPathComponent
        for name in ["tokens.json", "user.json", identityFile] {
            let file = folder.url.appendingPathComponent(name)
            let saved = try Data(contentsOf: file)
            for bit in 0..<min(saved.count, 256) * 8 {
                var bytes = saved
                bytes[bit / 8] ^= 1 << UInt8(bit % 8)
                try bytes.write(to: file)
                _ = try tokens.token(for: "ada")
                _ = try? user.load()
                // A damaged user is read as no user, never as another user.
                let found = user.loadIdentity().identity.user
                #expect(found == nil || found == "ada")
            }
            try saved.prefix(saved.count / 2).write(to: file)
            try tokens.store("d.e.f", for: "ada")
            try user.file.write(StoredUser.Identity(user: "cy").bytes)
            try user.change(replacesDamaged: true) { $0.beginLogOut(of: "cy", in: "h") }
            #expect(try tokens.token(for: "ada") == "d.e.f")
            #expect(user.loadIdentity().identity.user == "cy")
            #expect(try user.load().loggingOut.contains("cy"))
            try user.file.write(StoredUser.Identity(user: "ada").bytes)
        }
    }

    // MARK: Counters

    private let event = RenderedEvent(messageID: "m", userID: nil, sessionID: "s", body: Array("{}".utf8))

    @Test(arguments: [Int.min, -1, 0, 3, 1 << 40, Int.max], [EventQueue.Counter.rows, .bytes])
    func aDamagedCounterEvictsNothing(value: Int, counter: EventQueue.Counter) throws {
        let bench = try Bench()
        func open() throws -> EventQueue {
            try bench.openQueue(QueueLimits(maximumEvents: 10, maximumBytes: 20_000))
        }
        func append(_ queue: EventQueue, _ numbers: Range<Int>) throws {
            try queue.append(numbers.map { _ in event })
        }
        try append(try open(), 0..<8)
        // Damages the counter while the queue is closed, and then while it is open.
        for isOpen in [false, true] {
            var queue = try open()
            try SQLiteConnection(path: bench.queueFile.path).run(
                "UPDATE counter SET value = ? WHERE name = ?", .integer(Int64(value)), .text(counter.rawValue)
            )
            if !isOpen { queue = try open() }
            try append(queue, isOpen ? 9..<10 : 8..<9)
            #expect(try queue.value(of: .evictedByCount) == 0)
            #expect(try queue.value(of: .evictedByBytes) == 0)
            #expect(try queue.bodies().count == (isOpen ? 10 : 9))
        }
        // A plausible lower count looks like a deletion by another process.
        if 0...3 ~= value { return }
        let queue = try open()
        #expect(try queue.value(of: .rows) == 10)
        #expect(try queue.value(of: .bytes) == 10 * (2 + EventQueue.rowOverheadBytes))
        // The limit is still enforced.
        try append(queue, 10..<13)
        try append(queue, 13..<14)
        #expect(try queue.bodies().count == 10)
    }

    /// Flips each bit of the time from which the age of events is computed.
    @Test func aDamagedQueueTimeEvictsNothing() throws {
        let bench = try Bench()
        func append(_ queue: EventQueue) throws {
            try queue.append([event])
        }
        do {
            let queue = try bench.openQueue()
            try append(queue)
            bench.clock.advance(by: 20 * 86_400)
            try append(queue)
        }
        let saved = Array(try #require(try bench.openQueue().setting("queue_time")).utf8)
        for bit in 0..<saved.count * 8 {
            var damaged = saved
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            do {
                let queue = try bench.openQueue()
                try queue.save(String(decoding: damaged, as: UTF8.self), as: "queue_time")
            }
            let queue = try bench.openQueue()
            try append(queue)
            try #require(try queue.value(of: .evictedByAge) == 0, "bit \(bit)")
        }
    }

    @Test(arguments: [Int.min, -1, Int.max])
    func anImpossibleCountIsCorrected(value: Int) throws {
        let bench = try Bench()
        for counter in EventQueue.Counter.allCases {
            do {
                let queue = try bench.openQueue()
                try queue.append([event])
                try queue.connection.run(
                    "INSERT INTO counter VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2",
                    .text(counter.rawValue), .integer(Int64(value)))
            }
            let queue = try bench.openQueue()
            let values = try EventQueue.Counter.allCases.map { try queue.storedValue(of: $0) }
            #expect(values.allSatisfy { 0...100_000 ~= $0 }, "\(counter) \(values)")
        }
    }

    @Test func aCheckpointBeyondTheLogLosesNoEvent() throws {
        let bench = try Bench()
        let queue = try bench.openQueue()
        try queue.append([event.numbered(1)], from: "log")
        try queue.save("9001", as: "incoming:log")
        try queue.append([event.numbered(2), event.numbered(3)], from: "log")
        try queue.append([event.numbered(2), event.numbered(3), event.numbered(4)], from: "log")
        #expect(try queue.value(of: .rows) == 4)
    }
}
