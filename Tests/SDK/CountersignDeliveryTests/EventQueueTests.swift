import CountersignSQLite
import CountersignTesting
import Foundation
import Testing

@testable import CountersignDelivery

struct EventQueueTests {
    private let folder = TemporaryFolder()
    private var path: String { folder.url.appendingPathComponent("queue.sqlite").path }
    private let clock = ManualClock()

    init() throws {
        try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
    }

    private func open(_ limits: QueueLimits = QueueLimits()) throws -> EventQueue {
        try EventQueue(path: path, limits: limits, clock: clock)
    }

    private func rows(_ numbers: some Sequence<Int>, user: String? = nil, bytes: Int = 100) -> [RenderedEvent]
    {
        numbers.map { number in
            RenderedEvent(
                messageID: "m\(number)", userID: user, sessionID: "s",
                body: Array("{\"n\":\(number),\"x\":\"\(String(repeating: "x", count: bytes))\"}".utf8))
        }
    }

    private func ids(_ queue: EventQueue) throws -> [String] {
        try queue.claim(ClaimRequest(maximumEvents: .max, maximumBytes: .max)).map(\.messageID)
    }

    /// Expects that the counters account for every recorded event.
    private func expectBalance(_ queue: EventQueue, sourceLocation: SourceLocation = #_sourceLocation) throws
    {
        func count(_ counter: EventQueue.Counter) throws -> Int { try queue.value(of: counter) }
        let places =
            try count(.rows) + count(.sent) + count(.quarantined) + count(.evictedByCount)
            + count(.evictedByBytes)
            + count(.evictedByAge) + count(.wiped) + count(.unreadable) - count(.requeued)
        #expect(try count(.recorded) == places, sourceLocation: sourceLocation)
        let real = try queue.connection.first(
            "SELECT count(*), coalesce(sum(length(body) + \(EventQueue.rowOverheadBytes)), 0) FROM event"
        ) { row throws(SQLiteError) in [row.int(0), row.int(1)] }
        #expect(try real == [count(.rows), count(.bytes)], sourceLocation: sourceLocation)
    }

    // MARK: Limits

    @Test func eventsOverTheByteLimitEvictTheOldest() throws {
        let queue = try open(QueueLimits(maximumBytes: 5_000))
        try queue.append(rows(0..<100, bytes: 200))
        #expect(try queue.value(of: .bytes) <= 5_000)
        #expect(try ids(queue).last == "m99")
        #expect(try queue.value(of: .evictedByBytes) == 100 - (ids(queue).count))
        try expectBalance(queue)
    }

    @Test func eventsOverTheMaximumAgeAreEvicted() throws {
        let queue = try open(QueueLimits(maximumAge: 3_600))
        try queue.append(rows([1]))
        clock.advance(by: 3_599)
        try queue.append(rows([2]))
        #expect(try ids(queue) == ["m1", "m2"])
        clock.advance(by: 2)
        try queue.append(rows([3]))
        #expect(try ids(queue) == ["m2", "m3"])
        #expect(try queue.value(of: .evictedByAge) == 1)
        try expectBalance(queue)
    }

    @Test(arguments: [.infinity, .greatestFiniteMagnitude, TimeInterval(Int.max)])
    func withoutAMaximumAgeEventsAreNotEvicted(age: TimeInterval) throws {
        let queue = try open(QueueLimits(maximumAge: age))
        try queue.append(rows([1]))
        clock.advance(by: 1e9)
        try queue.append(rows([2]))
        #expect(try ids(queue) == ["m1", "m2"])
    }

    @Test(arguments: [
        "", "5", "5 6 7", "a b", "5 ", "9223372036854775807 1750000000", "-1 1750000000", "5 6 u", "5 6 u-1",
        "5 6 u9223372036854775807", "5 6 u7 8",
        "99999999999999999999 1",
    ])
    func aDamagedQueueTimeIsReset(text: String) throws {
        do {
            let queue = try open()
            try queue.append(rows([1]))
            try queue.connection.run("UPDATE setting SET value = ? WHERE name = 'queue_time'", .text(text))
            #expect(queue.connection.changes == 1)
        }
        let queue = try open()
        try queue.append(rows([2]))
        #expect(try ids(queue) == ["m1", "m2"])
    }

    /// Another process may have removed an event first.
    @Test func deletedEventsAreCountedOnce() throws {
        let queue = try open()
        try queue.append(rows([1, 2]))
        let event = try #require(try queue.claim(ClaimRequest(maximumEvents: 1, maximumBytes: .max)).first)
        #expect(try queue.remove(event.sequence))
        #expect(try !queue.remove(event.sequence))
        #expect(try queue.value(of: .rows) == 1)
        #expect(try queue.value(of: .bytes) == event.body.count + EventQueue.rowOverheadBytes)
    }

    @Test func anEventThatIsTooLongIsQuarantinedAndNeverQueued() throws {
        let queue = try open(QueueLimits(maximumEventBytes: 500))
        try queue.append(rows([1], bytes: 600) + rows([2]))
        #expect(try ids(queue) == ["m2"])
        #expect(try queue.quarantined().map(\.code) == ["event_too_large"])
        try expectBalance(queue)
    }

    @Test func quarantineHasALimitAndCanBeSentAgain() throws {
        let queue = try open(QueueLimits(maximumQuarantinedEvents: 3))
        try queue.append(rows(0..<5, user: "ada"))
        let events = try queue.claim(ClaimRequest(maximumEvents: 5, maximumBytes: .max))
        try queue.apply(
            DeliveryOutcome(quarantined: events.map { .init(event: $0, reason: .init("bad", "it is")) }))
        #expect(try queue.quarantined().map(\.messageID) == ["m2", "m3", "m4"])
        #expect(try queue.value(of: .evictedFromQuarantine) == 2)
        try expectBalance(queue)
        #expect(try queue.requeue() == 3)
        #expect(try ids(queue) == ["m2", "m3", "m4"])
        #expect(try queue.quarantined().isEmpty)
        try expectBalance(queue)
    }

    // MARK: Clock changes

    @Test func clockJumpsDoNotEvictNewEvents() throws {
        let limits = QueueLimits(maximumAge: 30 * 86_400)
        let year: TimeInterval = 365 * 86_400
        // The device is on for longer than an event may wait.
        clock.advance(by: 40 * 86_400 + 0.25)
        let start = clock.now
        for (number, jump) in [0, year, -year, -50 * year, 3_600, -3_600, 13 * year].enumerated() {
            clock.setNow(start + jump)
            // A new queue object, as after a restart of the app.
            let queue = try open(limits)
            try queue.append(rows([number]))
            clock.advance(by: 60)
            try queue.append(rows([100 + number]))
            #expect(try ids(queue).suffix(2) == ["m\(number)", "m\(100 + number)"])
        }
        #expect(try open(limits).value(of: .evictedByAge) == 0)
    }

    @Test func eventsAgeBetweenRunsWhateverTheDeviceClockShows() throws {
        let limits = QueueLimits(maximumAge: 30 * 86_400)
        try open(limits).append(rows([1]))
        clock.advance(by: 31 * 86_400)
        clock.setNow(Date(timeIntervalSince1970: 0))
        let queue = try open(limits)
        try queue.append(rows([2]))
        #expect(try ids(queue) == ["m2"])
        #expect(try queue.value(of: .evictedByAge) == 1)
    }

    @Test func afterADeviceRestartTheUptimeIsAddedToTheQueueTime() throws {
        let time = QueueTime(
            uptime: 1_000, after: QueueTime.Saved(seconds: 500, wall: 0, uptime: 5_000))
        #expect(time.seconds(uptime: 1_000) == 1_500)
        #expect(time.seconds(uptime: 1_060) == 1_560)
        let saved = time.saved(now: Date(timeIntervalSince1970: 7), uptime: 1_060)
        #expect(saved.text.hasPrefix("1560 7 u1060-"))
        let next = QueueTime(uptime: 1_100, after: QueueTime.Saved(text: saved.text))
        #expect(next.seconds(uptime: 1_100) == 1_600)
        let old = QueueTime(uptime: 1_100, after: QueueTime.Saved(text: "1560 7"))
        #expect(old.seconds(uptime: 1_100) == 1_560)
    }

    // MARK: Claims

    @Test func claimTakesTheOldestUserThatIsNotBlocked() throws {
        let queue = try open()
        try queue.append(
            rows([1], user: "ada") + rows([2]) + rows([3], user: "caf\u{E9}") + rows([4], user: "cafe\u{301}")
                + rows([5], user: "ada"))
        func claim(_ blocked: [String?], excluded: Set<Int64> = []) throws -> [String] {
            var request = ClaimRequest(maximumEvents: 10, maximumBytes: .max)
            request.blockedUsers = BlockedUsers(Set(blocked.map(UserKey.init)))
            request.excluded = excluded
            return try queue.claim(request).map(\.messageID)
        }
        #expect(try claim([]) == ["m1", "m5"])
        #expect(try claim(["ada"]) == ["m2"])
        #expect(try claim(["ada", nil]) == ["m3"])
        #expect(try claim(["ada", nil, "caf\u{E9}"]) == ["m4"])
        #expect(try claim(["ada", nil, "caf\u{E9}", "cafe\u{301}"]) == [])
        #expect(try claim([], excluded: [1]) == ["m2"])
        #expect(try claim([nil], excluded: [1]) == ["m3"])
    }

    @Test func aClaimIsLimitedByBytesButHasAtLeastOneEvent() throws {
        let queue = try open()
        try queue.append(rows(1...5, bytes: 100))
        #expect(try queue.claim(ClaimRequest(maximumEvents: 10, maximumBytes: 250)).count == 2)
        #expect(try queue.claim(ClaimRequest(maximumEvents: 10, maximumBytes: 10)).count == 1)
    }

    @Test func anOutcomeOfDeletedEventsChangesNoCounters() throws {
        let queue = try open()
        try queue.append(rows(1...3))
        let events = try queue.claim(ClaimRequest(maximumEvents: 3, maximumBytes: .max))
        try queue.wipe(("none", 0, 0), forgettingDevice: true)
        try queue.apply(DeliveryOutcome(delivered: events))
        #expect(try queue.value(of: .sent) == 0)
        try expectBalance(queue)
    }

    @Test func makeDurableSucceedsWithoutAJournalFile() throws {
        let queue = try open()
        try queue.append(rows(1...3))
        try queue.makeDurable()
        try? FileManager.default.removeItem(atPath: "\(path)-journal")
        try queue.makeDurable()
    }

    // MARK: Two processes (lease)

    @Test func aLeaseIsExclusiveUntilItExpiresOrItsOwnerEnds() throws {
        let first = try open()
        let second = try open()
        let holder = LeaseOwner()
        let other = LeaseOwner()
        func acquire(_ queue: EventQueue, _ holder: LeaseOwner, _ uptime: TimeInterval) throws
            -> TimeInterval?
        {
            try queue.acquireLease(for: holder, uptime: uptime, request: 30)
        }
        #expect(try acquire(first, holder, 100) == nil)
        #expect(try acquire(second, other, 101) == 160)
        #expect(try acquire(first, holder, 140) == nil)
        #expect(try acquire(second, other, 199) == 200)
        #expect(try acquire(second, other, 200) == nil)
        #expect(try acquire(first, holder, 201) == 260)
        try second.releaseLease(of: other)
        #expect(try acquire(first, holder, 202) == nil)
        // The machine was restarted, so uptime starts at 0.
        #expect(try acquire(second, other, 1) == nil)
        // A process that has ended, and an earlier process with this process's ID.
        for processID in [0x3FFF_FFFF, Int(ProcessInfo.processInfo.processIdentifier)] {
            try first.connection.execute("UPDATE lease SET holder = 'gone', process_id = \(processID)")
            #expect(try acquire(first, holder, 2) == nil)
        }
        // Process 1 is alive.
        try first.connection.execute("UPDATE lease SET holder = 'init', process_id = 1")
        #expect(try acquire(first, holder, 3) != nil)
    }

    @Test func aLeaseLastsLongerThanItsRequestMayTake() throws {
        let first = try open()
        let second = try open()
        let holder = LeaseOwner()
        let other = LeaseOwner()
        for timeout: TimeInterval in [1, 30, 60, 600] {
            #expect(try first.acquireLease(for: holder, uptime: 1_000, request: timeout) == nil)
            // Getting the token took 29 s. The lease is renewed for the request.
            #expect(try first.acquireLease(for: holder, uptime: 1_029, request: timeout) == nil)
            #expect(try second.acquireLease(for: other, uptime: 1_029 + timeout + 1, request: timeout) != nil)
            try first.releaseLease(of: holder)
        }
    }

    @Test func onAFullDiskOneClientMaySendWithoutAStoredLease() {
        let holder = LeaseOwner()
        let other = LeaseOwner()
        #expect(holder.acquire(path, uptime: 100, duration: 60) == nil)
        #expect(other.acquire(path, uptime: 101, duration: 60) == 160)
        #expect(other.acquire(path + "2", uptime: 101, duration: 60) == nil)
        #expect(holder.acquire(path, uptime: 130, duration: 60) == nil)
        holder.release(path)
        #expect(other.acquire(path, uptime: 131, duration: 60) == nil)
        #expect(holder.acquire(path, uptime: 191, duration: 60) == nil)
    }

    @Test func onAFullDiskALeaseIsExclusiveWithinTheProcess() throws {
        let (first, second) = (try open(), try open())
        try first.connection.execute("CREATE TABLE filler (x BLOB)")
        for queue in [first, second] {
            try queue.connection.execute(
                """
                CREATE TEMP TRIGGER full BEFORE INSERT ON lease
                BEGIN INSERT INTO filler VALUES (zeroblob(100000)); END;
                PRAGMA max_page_count = 1;
                """)
        }
        let (holder, other) = (LeaseOwner(), LeaseOwner())
        #expect(try first.acquireLease(for: holder, uptime: 1_000, request: 30) == nil)
        #expect(try second.acquireLease(for: other, uptime: 1_001, request: 30) != nil)
        try first.releaseLease(of: holder)
        #expect(try second.acquireLease(for: other, uptime: 1_002, request: 30) == nil)
    }

    // MARK: Schema

    @Test func aQueueFileOfANewerVersionIsUsedWithoutLoss() throws {
        try open().append(rows(1...50))
        do {
            let newer = try SQLiteConnection(path: path)
            try newer.execute(
                """
                ALTER TABLE event ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
                CREATE TABLE attachment (seq INTEGER PRIMARY KEY, body BLOB);
                PRAGMA user_version = 99;
                """)
        }
        let queue = try open()
        try queue.append(rows(51...60))
        #expect(try ids(queue) == (1...60).map { "m\($0)" })
        try queue.apply(
            DeliveryOutcome(delivered: try queue.claim(ClaimRequest(maximumEvents: 60, maximumBytes: .max))))
        try expectBalance(queue)
        #expect(
            try queue.connection.first("PRAGMA user_version") { row throws(SQLiteError) in row.int(0) } == 99)
    }
}
