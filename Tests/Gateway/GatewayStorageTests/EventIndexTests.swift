import CountersignCore
import CountersignGatewayTesting
import CountersignSQLite
import CountersignTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import TestSupport
import Testing

@testable import GatewayStorage

/// The event index returns the same events as the log, even after damage to its files.
@Suite(.onSQLite("its own index of events"), .timeLimit(.minutes(5)))
struct EventIndexTests {
    /// Small runs, so that few events make many runs and merge them.
    private static let sizes = EventIndex.Sizes(
        runEvents: 8, mergeWidth: 2, highestLevel: 3, timeEvents: 8, mostWaiting: 4)

    private let temporary = TemporaryFolder()
    private var folder: URL { temporary.url }
    private var path: String { folder.appendingPathComponent("events.sqlite").path }
    private var index: String { folder.appendingPathComponent("index").path }

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    private func open() throws -> EventLogWriter { try EventLogWriter(path: path, sizes: Self.sizes) }

    private func batch(_ events: [EventBatch.Event], app: String = "shop") -> EventBatch {
        EventBatch(appID: app, receivedMilliseconds: 1, body: Array("{}".utf8), events: events)
    }

    private func event(
        _ id: String, user: String? = nil, device: String? = nil, isIdentifiedByContent: Bool = false
    ) -> EventBatch.Event {
        EventBatch.Event(
            messageID: id, kind: .track, userID: user, anonymousID: device, timestampMilliseconds: 0,
            json: 0..<2, isIdentifiedByContent: isIdentifiedByContent)
    }

    private func store(_ id: String, user: String? = nil, device: String? = nil, in log: EventLogWriter)
        throws -> Bool
    {
        try log.store([batch([event(id, user: user, device: device)])], counting: nil)[0].accepted == 1
    }

    private var reader: SQLiteEventLog {
        SQLiteEventLog(readers: SQLiteReaders(path: path), runs: OpenIndexRuns())
    }

    private func messages(user: String) throws -> [String] {
        var query = EventQuery(appID: "shop")
        query.userID = user
        query.isExport = true
        return try reader.follow(query, after: 0, limit: 10_000).events.map(\.messageID)
    }

    private func files() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: index).sorted()
    }

    /// Damage to the index between two openings.
    enum Mishap: CaseIterable {
        case none, removedFolder, removedFile, flippedByte, cutFile, unfinishedFile, foreignLog, olderEvents
    }

    @Test(arguments: Mishap.allCases)
    func anEventIsStoredOnceWhateverHappensToTheIndex(_ mishap: Mishap) throws {
        var random = SeededGenerator(seed: 7)
        var kept: Set<String> = []
        let copy = folder.appendingPathComponent("copy.sqlite").path
        for round in 0..<12 {
            let log = try open()
            for _ in 0..<20 {
                let ids = (0..<Int.random(in: 1...5, using: &random)).map { _ in
                    "m-\(Int.random(in: 0..<400, using: &random))"
                }
                let outcome = try log.store(
                    [batch(ids.map { event($0, user: "user-\($0.utf8.last ?? 0)") })], counting: nil)
                #expect(outcome[0].accepted == Set(ids).subtracting(kept).count)
                #expect(outcome[0].accepted + outcome[0].duplicates == ids.count)
                kept.formUnion(ids)
            }
            log.close()
            let digit = UInt8(ascii: "3")
            #expect(
                try Set(messages(user: "user-\(digit)")) == kept.filter { $0.utf8.last == digit },
                "\(mishap), round \(round)")
            if mishap == .olderEvents {
                // Copies the events, to restore them after more are stored. The index is not restored.
                if round == 5 { try SQLiteConnection(path: path).copy(to: copy) }
                if round == 8 {
                    for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) }
                    try FileManager.default.copyItem(atPath: copy, toPath: path)
                    kept = Set(
                        try SQLiteConnection(path: path).all("SELECT message_id FROM event") { $0.text(0) })
                }
            } else {
                try happen(mishap, &random)
            }
        }
        let rows = try SQLiteConnection(path: path, mode: .readOnly)
        #expect(try rows.first("SELECT count(*) FROM event") { $0.int(0) } == kept.count)
        #expect(try Set(rows.all("SELECT message_id FROM event") { $0.text(0) }) == kept)
    }

    private func happen(_ mishap: Mishap, _ random: inout SeededGenerator) throws {
        let file = try files().randomElement(using: &random).map { index + "/" + $0 }
        switch mishap {
        case .none, .olderEvents: break
        case .removedFolder: try FileManager.default.removeItem(atPath: index)
        case .removedFile:
            if let file { unlink(file) }
        case .flippedByte, .foreignLog:
            guard let file, var data = FileManager.default.contents(atPath: file) else { return }
            // The log's id is in the trailer, which is 76 bytes long, after eight bytes of magic.
            let place =
                mishap == .foreignLog ? data.count - 68 : Int.random(in: 0..<data.count - 76, using: &random)
            data[place] ^= 1
            if mishap == .foreignLog {
                let sum = data.suffix(76).prefix(72).withUnsafeBytes { checksum($0) }
                data.replaceSubrange(
                    data.count - 4..<data.count, with: withUnsafeBytes(of: sum.littleEndian) { Data($0) })
            }
            try data.write(to: URL(fileURLWithPath: file))
            // A damaged block is noticed when it is read. The run is then dropped, and storing fails once.
            guard mishap == .flippedByte,
                let run = IndexRunName(file: URL(fileURLWithPath: file).lastPathComponent)
            else { return }
            let log = try open()
            let rows = try log.connection.all(
                "SELECT message_id, user_id FROM event WHERE seq BETWEEN ?1 AND ?2", .integer(run.first),
                .integer(run.last)
            ) { ($0.text(0), $0.text(1)) }
            for (id, user) in rows {
                do {
                    #expect(try !store(id, user: user, in: log))
                } catch is IndexFileError {
                    break
                }
            }
            log.close()
        case .cutFile:
            if let file { truncate(file, off_t(Int.random(in: 0..<100, using: &random))) }
        case .unfinishedFile:
            try Data("half".utf8).write(to: URL(fileURLWithPath: index + "/idx-1-8-0.run.tmp"))
        }
    }

    @Test func mergedRunsAreDeleted() throws {
        let log = try open()
        for number in 0..<64 { #expect(try store("m-\(number)", user: "ada", in: log)) }
        log.close()
        #expect(try files() == ["idx-1-64-3.run"])
        let again = try open()
        defer { again.close() }
        for number in 0..<64 { #expect(try !store("m-\(number)", user: "ada", in: again)) }
        #expect(try messages(user: "ada") == (0..<64).map { "m-\($0)" })
    }

    @Test func eventsOnBothSidesOfAGapOfUInt32MaxAreFound() throws {
        let log = try open()
        for number in 0..<8 { #expect(try store("m-\(number)", user: "ada", in: log)) }
        log.close()
        try SQLiteConnection(path: path).execute("UPDATE event SET seq = 1 + 4294967295 WHERE seq = 8")
        try FileManager.default.removeItem(atPath: index)
        try open().close()
        try check("shop", (0..<8).map { "m-\($0)" }, OpenIndexRuns())
    }

    @Test func uncommittedEventsAreNotDuplicates() throws {
        let log = try open()
        defer { log.close() }
        #expect(try store("m-1", user: "ada", in: log))
        try log.connection.execute("PRAGMA max_page_count = 1")
        let large = String(repeating: "x", count: 100_000)
        let full = EventBatch(
            appID: "shop", receivedMilliseconds: 1, body: Array(large.utf8),
            events: [
                event("m-2", user: "ada"),
                EventBatch.Event(
                    messageID: "m-3", kind: .track, userID: "bob", timestampMilliseconds: 0, json: 0..<100_000
                ),
            ])
        #expect(throws: SQLiteError.self) { try log.store([full], counting: nil) }
        try log.connection.execute("PRAGMA max_page_count = 1000000")
        #expect(try log.store([full], counting: nil)[0] == AppendOutcome(accepted: 2, duplicates: 0))
        #expect(try log.store([full], counting: nil)[0] == AppendOutcome(accepted: 0, duplicates: 2))
    }

    /// Two user ids with different bytes can be equal as Swift strings.
    @Test func usersOfABatchAreDistinguishedByBytes() throws {
        let log = try open()
        defer { log.close() }
        let users = ["zo\u{E9}", "zoe\u{301}"]
        for number in 0..<40 {
            let events = users.map { event("m-\(number)", user: $0) }
            #expect(try log.store([batch(events)], counting: nil)[0].accepted == 2)
        }
        #expect(try !files().isEmpty)
        for user in users { #expect(try messages(user: user) == (0..<40).map { "m-\($0)" }) }
    }

    /// Later versions read the runs that this version writes, so the hashes must not change.
    @Test func indexHashesAreStableAcrossVersions() {
        let hasher = IndexHasher(secret: Array(0..<32))
        let key = hasher.key(
            of: EventIdentity(appID: "shop", sender: .user("ada"), messageID: "m-1"))
        #expect(key == EventKey(high: 0x7C3E15DCC4348076, low: 0x55AA87E7BBB0E9BE))
        #expect(hasher.hash(of: .user("ä"), in: "shop") == 0x4A9E2CDD97BF6324)
    }

    /// After a failed flush, rows that SQLite recovers may exist in memory only.
    @Test func afterAFailedFlushRecoveredRowsAreInTheDatabaseFile() throws {
        let failed = try open()
        defer { failed.close() }
        #expect(try store("m-1", user: "ada", in: failed))
        let again = try EventLogWriter(path: path, afterFailure: true)
        defer { again.close() }
        // The database file without its write-ahead log.
        let copy = folder.appendingPathComponent("alone.sqlite").path
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        #expect(try SQLiteConnection(path: copy).first("SELECT count(*) FROM event") { $0.int(0) } == 1)
        #expect(try !store("m-1", user: "ada", in: again))
    }

    /// A backup or an export may read for minutes. `make prove` checks that the rewritten log is durable.
    @Test func afterAFailedFlushAnOpenReaderDoesNotBlockStoring() throws {
        let failed = try open()
        defer { failed.close() }
        #expect(try store("m-1", user: "ada", in: failed))
        let reader = try SQLiteConnection(path: path)
        try reader.execute("BEGIN")
        #expect(try reader.first("SELECT count(*) FROM event") { $0.int(0) } == 1)
        #expect(try store("m-2", user: "ada", in: failed))
        let log = FileManager.default.contents(atPath: path + "-wal")
        let again = try EventLogWriter(path: path, afterFailure: true)
        defer { again.close() }
        // The same bytes, except those appended while opening.
        let rewritten = try #require(FileManager.default.contents(atPath: path + "-wal"))
        #expect(rewritten.starts(with: try #require(log)))
        #expect(try !store("m-2", user: "ada", in: again))
        #expect(try store("m-3", user: "ada", in: again))
        #expect(try reader.first("SELECT count(*) FROM event") { $0.int(0) } == 1)
        try reader.execute("COMMIT")
        #expect(try reader.first("SELECT count(*) FROM event") { $0.int(0) } == 3)
    }

    @Test func aDeletedEventCanBeStoredAgainUnderANewNumber() throws {
        var log = try open()
        for number in 0..<20 { #expect(try store("m-\(number)", user: "ada", in: log)) }
        let other = try SQLiteConnection(path: path)
        try other.execute("DELETE FROM event WHERE message_id IN ('m-3', 'm-19')")
        #expect(try store("m-3", user: "ada", in: log))
        #expect(try !store("m-3", user: "ada", in: log))
        try other.execute("DELETE FROM event WHERE seq > 15")
        log.close()
        log = try open()
        defer { log.close() }
        #expect(try store("m-19", user: "ada", in: log))
        #expect(try other.first("SELECT max(seq) FROM event") { $0.int(0) } == 22)
    }

    @Test func aUserWithManyEventsIsReadInPagesFromBothEnds() throws {
        let log = try open()
        let all = (0..<700).map { "m-\($0)" }
        for start in stride(from: 0, to: 700, by: 7) {
            let events =
                all[start..<start + 7].map { event($0, user: "ada") } + [event("x-\(start)", user: "bob")]
            _ = try log.store([batch(events)], counting: nil)
        }
        log.close()
        var query = EventQuery(appID: "shop")
        query.userID = "ada"
        var found: [StoredEvent] = []
        var range = EventRange(scannedThrough: 0)
        repeat {
            range = try reader.follow(query, after: range.scannedThrough, limit: 90)
            found += range.events
        } while range.hasMore
        #expect(found.map(\.messageID) == all)
        found = []
        var next: Int64? = .max
        while let start = next {
            let page = try reader.newest(query, before: start, limit: 90)
            found += page.events
            next = page.next
        }
        #expect(found.map(\.messageID) == all.reversed())
        query.userID = nil
        query.messageID = "x-7"
        #expect(try reader.newest(query, before: nil, limit: 9).events.map(\.userID) == ["bob"])
    }

    /// The clock was wrong in the middle, so times do not follow the order of the events.
    @Test func aSearchByTimeSkipsImpossibleRanges() throws {
        let times: [Int64] = [100, 110, 5, 7, 120, 1_000_000, 130, 140, 150]
        let log = try open()
        for (round, time) in times.enumerated() {
            for number in 0..<9 {
                let events = [event("m-\(round)-\(number)", user: "ada")]
                let batch = EventBatch(
                    appID: "shop", receivedMilliseconds: time, body: Array("{}".utf8), events: events)
                _ = try log.store([batch], counting: nil)
            }
        }
        log.close()
        let limits = times.flatMap { [$0, $0 + 1] } + [.min, .max]
        for from in limits {
            for to in limits where from < to {
                var query = EventQuery(appID: "shop")
                (query.fromMilliseconds, query.toMilliseconds) = (from, to)
                let wanted = times.indices.filter { (from..<to).contains(times[$0]) }
                    .flatMap { round in (0..<9).map { "m-\(round)-\($0)" } }
                #expect(try reader.follow(query, after: 0, limit: 100).events.map(\.messageID) == wanted)
                let newest = try reader.newest(query, before: nil, limit: 100).events
                #expect(newest.map(\.messageID) == wanted.reversed())
            }
        }
        var query = EventQuery(appID: "shop")
        (query.fromMilliseconds, query.toMilliseconds) = (5, 8)
        // The 18 events are in three ranges of eight. One event follows the last full range.
        query.maximumScanned = 25
        #expect(try reader.follow(query, after: 0, limit: 100).hasMore == false)
        #expect(try reader.newest(query, before: nil, limit: 100).events.count == 18)
    }

    @Test func indexEntriesAreSortedByHashAndOffset() {
        var random = SeededGenerator(seed: 7)
        // Many with the same hash, and many whose hashes have the same first bits.
        let entries = (0..<6_000).map {
            SubjectEntry(hash: random.next() >> ($0 % 3 * 30), offset: UInt32($0))
        }
        #expect(entries.sortedByHash() == entries.sorted())
    }

    @Test func eventsAttributedLaterAreFoundByTheirUser() throws {
        let log = try open()
        let early = event("sha256-a", device: "d-1", isIdentifiedByContent: true)
        #expect(try log.store([batch([early])], counting: nil)[0].accepted == 1)
        for number in 0..<20 { #expect(try store("m-\(number)", user: "bob", in: log)) }
        let late = event("sha256-a", user: "ada", device: "d-1", isIdentifiedByContent: true)
        #expect(try log.store([batch([late])], counting: nil)[0].duplicates == 1)
        log.close()
        #expect(try messages(user: "ada") == ["sha256-a"])
        let people = SQLiteCustomerRecords(
            events: SQLiteReaders(path: path), analytics: SQLiteReaders(path: path + "-none"),
            runs: OpenIndexRuns())
        let ada = CustomerIdentifier(name: CustomerIdentifier.hardName, value: "ada")
        #expect(try people.delete(ada, in: "shop").events == 1)
        #expect(try messages(user: "ada") == [])
        #expect(try users() == ["bob"])
        // A deleted user is listed again after the next event.
        let again = try open()
        defer { again.close() }
        #expect(try store("n-1", user: "ada", in: again))
        #expect(try users() == ["ada", "bob"])
        #expect(try people.delete(ada, in: "shop").events == 1)
        #expect(try store("n-1", user: "ada", in: again))
        #expect(try users() == ["ada", "bob"])
    }

    /// Sequence numbers in a file that was copied from a database have gaps, which may exceed the range of a run.
    @Test func theIndexIsBuiltAcrossGapsInSequenceNumbers() throws {
        let first = try open()
        for number in 0..<5 { #expect(try store("m-\(number)", user: "ada", in: first)) }
        first.close()
        try SQLiteConnection(path: path).execute("UPDATE event SET seq = seq + (seq / 2) * 100000000000000")
        try FileManager.default.removeItem(atPath: index)
        for round in 1...3 {
            let log = try open()
            #expect(try !store("m-0", user: "ada", in: log))
            #expect(try store("new \(round)", user: "ada", in: log))
            log.close()
            #expect(try messages(user: "ada").count == 5 + round)
        }
    }

    private func users() throws -> [String] {
        var users: [String] = []
        try reader.users(of: "shop", after: "") { user in
            users.append(user)
            return false
        }
        return users
    }

    @Test func retentionDeletesUsersAndRunsToo() throws {
        let log = try open()
        defer { log.close() }
        let day: Int64 = 86_400_000
        for number in 0..<24 {
            let old = EventBatch(
                appID: "shop", receivedMilliseconds: number < 20 ? 1 : 9 * day, body: Array("{}".utf8),
                events: [event("m-\(number)", user: number.isMultiple(of: 2) || number > 20 ? "ada" : "bob")])
            _ = try log.store([old], counting: nil)
        }
        // Waits for runs that are being written. The sweep below would not delete them.
        log.close()
        var sweeper = RetentionSweeper()
        sweeper.begin(["shop": AppRules(days: 1)], nowMilliseconds: 9 * day + 1)
        var uses = KeyUseTally()
        while !sweeper.isDone { _ = try log.sweep(&sweeper, counting: &uses) }
        log.close()
        #expect(try users() == ["ada"])
        #expect(try messages(user: "ada") == ["m-20", "m-21", "m-22", "m-23"])
        #expect(try files().allSatisfy { IndexRunName(file: $0)?.last ?? 0 > 20 })
    }

    /// Reads and counts an app's events: all at once, and in small pages from the end and the middle.
    private func check(_ app: String, _ kept: [String], _ runs: OpenIndexRuns) throws {
        let reader = SQLiteEventLog(readers: SQLiteReaders(path: path), runs: runs)
        let query = EventQuery(appID: app)
        let all = try reader.follow(query, after: 0, limit: 10_000).events
        #expect(all.map(\.messageID) == kept)
        #expect(
            try reader.newest(query, before: nil, limit: 7).events.map(\.messageID)
                == kept.suffix(7).reversed())
        guard let middle = all.dropFirst(all.count / 2).first else { return }
        let after = all.drop { $0.sequence <= middle.sequence }.map(\.messageID)
        let before = all.prefix { $0.sequence < middle.sequence }.map(\.messageID)
        #expect(
            try reader.follow(query, after: middle.sequence, limit: 9).events.map(\.messageID)
                == after.prefix(9).map(\.self))
        #expect(
            try reader.newest(query, before: middle.sequence, limit: 9).events.map(\.messageID)
                == before.suffix(9).reversed())
        let counted = try reader.snapshot { sqlite, _ in
            try reader.index(sqlite).count(of: app, after: middle.sequence)
        }
        #expect(counted == after.count)
    }

    /// Events in runs, in memory and in rows not indexed yet, read by the writing process and by another one.
    @Test func anAppsEventsAreFoundAmongThoseOfOthers() throws {
        var kept: [String: [String]] = [:]
        for round in 0..<4 {
            let runs = OpenIndexRuns()
            let log = try EventLogWriter(path: path, recent: runs.recent, sizes: Self.sizes)
            for number in 0..<23 {
                let app = number.isMultiple(of: 5) ? "kiosk" : number.isMultiple(of: 7) ? "none" : "shop"
                let id = "m-\(round)-\(number)"
                _ = try log.store(
                    [batch([event(id, user: "user-\(number % 3)")], app: app)], counting: KeyUseTally())
                kept[app, default: []].append(id)
                for app in ["shop", "kiosk"] where number > 15 { try check(app, kept[app] ?? [], runs) }
            }
            for app in ["shop", "kiosk"] {
                try check(app, kept[app] ?? [], runs)
                // A reader that has only the runs.
                try check(app, kept[app] ?? [], OpenIndexRuns())
            }
            log.close()
            for app in ["shop", "kiosk"] { try check(app, kept[app] ?? [], runs) }
        }
    }

    /// Without the events of a damaged run, a consumer's lag would be too small.
    @Test func eventsInADamagedRunAreCounted() throws {
        let log = try open()
        for number in 0..<45 {
            let app = number.isMultiple(of: 3) ? "kiosk" : "shop"
            _ = try log.store([batch([event("m-\(number)", user: "ada")], app: app)], counting: KeyUseTally())
        }
        log.close()
        let runs = try files().filter { IndexRunName(file: $0) != nil }
        #expect(!runs.isEmpty)
        for name in runs {
            let file = URL(fileURLWithPath: IndexFolder.path(besides: path) + "/" + name)
            var bytes = try Data(contentsOf: file)
            // Damages the blocks only. Opening a run checks the parts after them.
            for index in 0..<bytes.count / 4 { bytes[index] ^= 0xFF }
            try bytes.write(to: file)
        }
        let reader = SQLiteEventLog(readers: SQLiteReaders(path: path), runs: OpenIndexRuns())
        for (app, expected) in [("kiosk", 15), ("shop", 30)] {
            let counted = try reader.snapshot { sqlite, _ in
                try reader.index(sqlite).count(of: app, after: 0)
            }
            #expect(counted == expected, "\(app)")
        }
    }

    #if os(Linux)
        /// Bytes that this thread has read from files.
        private func bytesRead() throws -> Int {
            let text = try String(contentsOfFile: "/proc/thread-self/io", encoding: .utf8)
            return try #require(text.firstMatch(of: #/rchar: (\d+)/#).flatMap { Int($0.output.1) })
        }

        @Test func openingAnIndexReadsFewBytesOfItsRuns() throws {
            let body = Array("\"\(String(repeating: "x", count: 9_998))\"".utf8)
            let first = try open()
            for number in 0..<400 {
                let event = EventBatch.Event(
                    messageID: "m-\(number)", kind: .track, userID: "ada", anonymousID: nil,
                    timestampMilliseconds: 0, json: 0..<body.count)
                let batch = EventBatch(appID: "shop", receivedMilliseconds: 1, body: body, events: [event])
                _ = try first.store([batch], counting: KeyUseTally())
            }
            first.close()
            let before = try bytesRead()
            let log = try open()
            let read = try bytesRead() - before
            log.close()
            #expect(read > 0 && read < 800_000, "of 4 MB, \(read) bytes were read")
        }
    #endif

    /// Moves two indexed rows of another app to this app. Only a scan of all rows would find them.
    @Test func readingOneAppReadsNoRowsOfOthers() throws {
        let first = try open()
        for number in 0..<45 {
            let app = number.isMultiple(of: 15) ? "kiosk" : "shop"
            let batch = batch([event("m-\(number)", user: "ada")], app: app)
            _ = try first.store([batch], counting: KeyUseTally())
        }
        // Closing completes all runs. While a run is being made, its rows may still be read.
        first.close()
        let runs = OpenIndexRuns()
        let log = try EventLogWriter(path: path, recent: runs.recent, sizes: Self.sizes)
        defer { log.close() }
        try log.connection.execute("UPDATE event SET app_id = 'kiosk' WHERE message_id IN ('m-1', 'm-44')")
        try check("kiosk", ["m-0", "m-15", "m-30"], runs)
    }
}
