import CountersignCore
import CountersignSQLite
import CountersignTesting
import Foundation
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery

/// Damaged queue files: no crash, the readable events are recovered, and the old file is kept.
@Suite(.closing)
struct QueueRecoveryTests {
    enum Damage: Sendable, CaseIterable {
        case header, wholeFirstPage, onePage, oneBit, truncated, garbage, journalGarbage, walGarbage,
            wrongSchema, empty
    }

    /// Fills dozens of pages.
    private static let eventCount = 500

    @Test(arguments: Damage.allCases, [1, 2, 3])
    func aDamagedQueueFileIsReplacedAndItsReadableEventsAreDelivered(damage: Damage, seed: Int) async throws {
        var bench = try Bench()
        bench.configuration.limits.maximumUnsavedEvents = 100_000
        let first = try bench.makeClient()
        first.identify(userID: "ada", token: "a.a.a")
        for number in 0..<Self.eventCount {
            first.track("event \(number)", properties: ["n": .integer(Int64(number))])
        }
        await first.close()

        let file = bench.queueFile
        let size = try #require(try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? Int)
        try spoil(file, damage, seed: seed, pages: size / 4_096)

        let second = try bench.makeClient()
        let result = await second.flush()
        let snapshot = await second.snapshot()
        await second.close()

        #expect(result.ending == .drained, "\(snapshot)")
        let arrived = Set(bench.gateway.events)
        switch damage {
        case .header, .wholeFirstPage, .onePage:
            #expect(arrived.count >= Self.eventCount * 95 / 100, "\(arrived.count)")
        case .oneBit, .journalGarbage, .walGarbage:
            #expect(arrived.count >= Self.eventCount * 99 / 100, "\(arrived.count)")
        case .truncated:
            #expect(arrived.count >= Self.eventCount / 4, "\(arrived.count)")
        case .garbage, .wrongSchema, .empty:
            #expect(arrived.isEmpty)
        }
        // SQLite does not notice damage to the text of an event or to an unused page.
        let isNoticed =
            [.oneBit, .onePage].contains(damage)
            ? snapshot.salvaged > 0 : ![.journalGarbage, .walGarbage, .empty].contains(damage)
        #expect(snapshot.damagedFiles == (isNoticed ? 1 : 0))
        let third = try SQLiteConnection(path: file.path)
        #expect(try third.first("PRAGMA integrity_check") { row throws(SQLiteError) in row.text(0) } == "ok")
    }

    /// One such body would make a whole batch unreadable for the server.
    @Test func aBodyThatIsNotAJSONObjectIsNotRecovered() async throws {
        let (bench, first) = try Bench.open()
        first.identify(userID: "ada", token: "a.a.a")
        for number in 0..<50 { first.track("event <\(number)>") }
        await first.close()

        let file = bench.queueFile
        var bytes = try Data(contentsOf: file)
        let name = try #require(bytes.range(of: Data(#""event <25>""#.utf8)))
        bytes[name.lowerBound] = UInt8(ascii: "#")
        bytes.replaceSubrange(0..<16, with: Data("no database, once".utf8.prefix(16)))
        try bytes.write(to: file)

        let second = try bench.makeClient()
        #expect(await second.flush().ending == .drained)
        let snapshot = await second.snapshot()
        #expect(snapshot.damagedFiles == 1)
        #expect(snapshot.salvaged == 50 && snapshot.quarantined == 0, "49 events and one identify event")
        #expect(
            Set(bench.gateway.events)
                == Set((0..<50).filter { $0 != 25 }.map { "event <\($0)>" }))
    }

    /// SQLite reads such an index without an error, and finds nothing.
    @Test(arguments: [false, true])
    func aDamagedSQLiteIndexHidesNoEvent(isEmpty: Bool) async throws {
        let (bench, first) = try Bench.open()
        first.identify(userID: "ada", token: "a.a.a")
        for number in 0..<50 { first.track("event \(number)") }
        await first.close()

        let file = bench.queueFile
        let (page, size) = try {
            let database = try SQLiteConnection(path: file.path)
            let root = try database.first("SELECT rootpage FROM sqlite_master WHERE name = 'event_user'") {
                row throws(SQLiteError) in row.int(0)
            }
            let size = try database.first("PRAGMA page_size") { row throws(SQLiteError) in row.int(0) }
            return (try #require(root), try #require(size))
        }()
        var bytes = try Data(contentsOf: file)
        let range = (page - 1) * size..<page * size
        var found = 0
        for index in range.dropLast(2) where bytes[index..<index + 3].elementsEqual("ada".utf8) {
            bytes[index] = UInt8(ascii: "b")
            found += 1
        }
        #expect(found >= 50)
        if isEmpty {
            // The number of cells of a b-tree page: bytes 3 and 4.
            bytes[range.lowerBound + 3] = 0
            bytes[range.lowerBound + 4] = 0
        }
        try bytes.write(to: file)

        let second = try bench.makeClient()
        _ = second.setUser("ada", token: "a.a.a")
        #expect(await second.flush().isComplete)
        #expect(bench.gateway.events.count == 50)
        #expect(await second.snapshot().damagedFiles == 1)
    }

    /// SQLite does not detect damage to the version of the schema or to a sequence number.
    @Test(arguments: [
        "PRAGMA user_version = 0", "PRAGMA user_version = 1", "PRAGMA user_version = 258",
        "PRAGMA user_version = \(Int32.min)", "UPDATE event SET seq = -2 WHERE seq = 2",
    ])
    func damageThatSQLiteDoesNotDetectHidesNoEvent(damage: String) async throws {
        let (bench, first) = try Bench.open()
        for name in ["one", "two"] { try await first.record(name) }
        await first.close()
        let queue = try SQLiteConnection(path: bench.queueFile.path)
        try queue.execute(damage)
        let second = try bench.makeClient()
        #expect(await second.flush().isComplete)
        #expect(bench.gateway.events == ["one", "two"])
    }

    /// Damages the number of free pages, so that only shrinking the file fails
    /// (https://sqlite.org/fileformat2.html#the_database_header).
    private func damageFreePages(_ file: URL) throws {
        var bytes = try Data(contentsOf: file)
        bytes.replaceSubrange(36..<40, with: [0, 0, 0xFF, 0xFF])
        try bytes.write(to: file)
    }

    @Test func aDamagedQueueWithoutEventsKeepsItsDeviceIDAndCounters() async throws {
        let bench = try Bench()
        let deviceID = try {
            let queue = try bench.openQueue()
            try queue.set(.sent, 7)
            return try queue.anonymousID()
        }()
        try damageFreePages(bench.queueFile)
        let storage = bench.makeStorage()
        let (found, sent) = try await storage.perform { queue in
            try queue.shrink(from: 0)
            return (try queue.anonymousID(), try queue.value(of: .sent))
        }
        #expect(found == deviceID)
        #expect(sent == 7)
        await storage.close()
        #expect(QueueRecovery.asideCount(besides: bench.queueFile.path) == 1)
    }

    @Test func anOutcomeIsCountedOnceIfTheFileCannotBeShrunk() async throws {
        let bench = try Bench()
        let event = RenderedEvent(messageID: "m", userID: "ada", sessionID: "s", body: Array("{}".utf8))
        try bench.openQueue().append([event])
        try damageFreePages(bench.queueFile)
        let storage = bench.makeStorage()
        try await storage.run { storage in
            let events = try storage.withQueue { queue in
                try queue.claim(ClaimRequest(maximumEvents: 1, maximumBytes: .max))
            }
            _ = try storage.apply(DeliveryOutcome(delivered: events, duplicates: 1))
        }
        await storage.close()
        let queue = try bench.openQueue()
        #expect(try queue.value(of: .sent) == 1)
        #expect(try queue.value(of: .duplicates) == 1)
        #expect(QueueRecovery.asideCount(besides: bench.queueFile.path) == 1, "the file was not shrunk")
    }

    private func spoil(_ file: URL, _ damage: Damage, seed: Int, pages: Int) throws {
        var bytes = try Data(contentsOf: file)
        var random = SeededGenerator(seed: UInt64(seed))
        let page = Int.random(in: 2..<pages, using: &random)
        func noise(_ range: Range<Int>) {
            for index in range { bytes[index] = UInt8.random(in: 0...255, using: &random) }
        }
        switch damage {
        case .header: noise(0..<100)
        case .wholeFirstPage: noise(0..<4_096)
        case .onePage: noise(page * 4_096..<(page + 1) * 4_096)
        case .oneBit:
            let index = Int.random(in: 4_096..<bytes.count, using: &random)
            bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case .truncated: bytes = bytes.prefix(bytes.count / 2 + page)
        case .garbage: noise(0..<bytes.count)
        case .journalGarbage, .walGarbage:
            let suffix = damage == .walGarbage ? "-wal" : "-journal"
            try Data((0..<10_000).map { _ in UInt8.random(in: 0...255, using: &random) }).write(
                to: URL(fileURLWithPath: file.path + suffix))
        case .wrongSchema:
            try FileManager.default.removeItem(at: file)
            let other = try SQLiteConnection(path: file.path)
            try other.execute("CREATE TABLE note (text TEXT); PRAGMA user_version = 1;")
            return
        case .empty: bytes = Data()
        }
        try bytes.write(to: file)
    }

    /// A locked file is not treated as damaged.
    @Test(.timeLimit(.minutes(5))) func eventsWaitInTheLogWhileTheQueueFileIsLocked() async throws {
        let (bench, client) = try Bench.open()
        try await client.record("one")
        await client.pipeline.recorder.drain()
        let file = bench.queueFile
        let other = try SQLiteConnection(path: file.path)
        try other.execute("BEGIN EXCLUSIVE")
        client.track("two")
        await client.pipeline.recorder.drain()
        let snapshot = client.pipeline.recorder.losses
        #expect(snapshot.unsaved == 0)
        #expect(snapshot.logged == 1, "\(snapshot)")
        #expect(snapshot.lastError?.contains("locked") == true)
        try other.execute("ROLLBACK")
        bench.clock.advance(to: await bench.clock.waitForSleeper())
        #expect(await client.flush().isComplete)
        #expect(bench.gateway.events == ["one", "two"])
        #expect(await client.snapshot().damagedFiles == 0)
    }
}
