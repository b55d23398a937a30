import CountersignCore
import Foundation
import GatewayDelivery
import GatewayModel
import GatewayStorage
import GatewayTestSupport
import Testing

@testable import CountersignGatewayTesting

/// Rules for every kind of delivery: webhooks, streams, files and pull consumers.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct DeliveryConformanceTests {
    private func numbers(_ range: ClosedRange<Int>) -> [String] { range.map(String.init) }

    /// Distinct ids in the order of their first arrival.
    private func distinct(_ ids: [String]) -> [String] {
        var seen: Set<String> = []
        return ids.filter { seen.insert($0).inserted }
    }

    /// Expects that two messages have the same id if, and only if, they have the same content. So a receiver that
    /// drops messages with known ids has each event once.
    private func expectOneIDForEachContent(_ bench: DeliveryBench) {
        let sent = bench.sent
        let count = Set(sent.map { "\($0.id) \($0.content)" }).count
        #expect(count > 0)
        #expect(Set(sent.map(\.id)).count == count, "an id has several contents")
        #expect(Set(sent.map(\.content)).count == count, "a retry has another id")
    }

    @Test(arguments: WayCase.allCases)
    func eventsArriveInOrderAndThePositionFollows(_ way: WayCase) throws {
        let bench = try DeliveryBench(way)
        try bench.create()
        bench.log.add(10)
        bench.advance()
        #expect(bench.received == numbers(1...10))
        #expect(try bench.progress()?.committed == 10)
        #expect(try bench.progress()?.deliveredMilliseconds == bench.now.withLock { $0 })
        bench.log.add(1)
        bench.advance(after: 1_000)
        #expect(bench.received == numbers(1...11))
        #expect(way == .pull || bench.runner.counts.map(\.events) == [11])
    }

    /// ``DeliveryBench/advance(after:most:)`` wakes the runner. Here, only the arrival of an event does.
    @Test(arguments: WayCase.run)
    func aStoredEventWakesAnIdleWay(_ way: WayCase) throws {
        let bench = try DeliveryBench(way)
        try bench.create()
        bench.advance()
        for count in 1...2 {
            bench.log.add(1)
            bench.store.arrivals.note(["shop"])
            try bench.pool.waitForWork()
            bench.pool.drain()
            #expect(bench.received == numbers(1...count))
        }
    }

    @Test(arguments: WayCase.run)
    func aFailedDeliveryIsShownAndRetriedAlsoAfterARestart(_ way: WayCase) throws {
        let first = try DeliveryBench(way)
        try first.create()
        first.log.add(3)
        first.setAway(true)
        first.advance()
        let failing = try #require(try first.progress())
        #expect(failing.committed == 0 && failing.failures == 1 && failing.failure != nil)
        #expect(failing.failedMilliseconds == first.now.withLock { $0 })
        #expect(failing.nextMilliseconds > first.now.withLock { $0 })
        #expect(first.runner.counts.map(\.isFailing) == [true])
        first.setAway(false)
        first.advance()
        #expect(first.received.isEmpty, "the back-off has not ended")

        let second = try DeliveryBench(after: first)
        second.log.add(2)
        second.advance()
        #expect(second.received.isEmpty, "the back-off continues after a restart")
        second.advance(after: 86_400_000)
        #expect(second.received == numbers(1...5))
        let over = try #require(try second.progress())
        #expect(over.failures == 0 && over.failingSinceMilliseconds == nil && over.committed == 5)
        #expect(over.failure != nil, "the last failure stays visible")
        #expect(second.runner.counts.map(\.isFailing) == [false])
    }

    @Test(arguments: WayCase.run, [false, true])
    func aResumeRetriesAtOnce(_ way: WayCase, isPaused: Bool) throws {
        let bench = try DeliveryBench(way)
        try bench.create()
        bench.log.add(1)
        bench.setAway(true)
        bench.advance()
        if isPaused {
            try bench.setPause(true)
            bench.advance()
            #expect(bench.runner.counts.map(\.isFailing) == [false])
            bench.setAway(false)
            bench.advance(after: 86_400_000)
        }
        bench.setAway(false)
        #expect(bench.received.isEmpty)
        try bench.setPause(false)
        bench.advance()
        #expect(bench.received == ["1"])
    }

    /// All gaps are shown to operators. The messages of streams and the lines of `.sample` cannot report one.
    @Test(arguments: [
        (WayCase.webhook, true), (.stream, false), (.file, true), (.sample, false), (.pull, true),
    ])
    func aGapIsReportedUntilALaterEventIsAccepted(_ way: WayCase, toReceiver: Bool) throws {
        var bench = try DeliveryBench(way)
        try bench.create()
        bench.log.add(1)
        bench.advance()
        bench.log.add(2)
        bench.log.state.withLock { ($0.floor, $0.leftOut) = (2, [3]) }
        bench.advance()
        #expect(try bench.progress()?.committed == 3)
        #expect(try bench.consumers.find(try bench.id).gap.isOpen)
        bench = try DeliveryBench(after: bench)
        bench.log.add(1)
        bench.setAway(true)
        bench.advance()
        #expect(try bench.consumers.find(try bench.id).gap.isOpen)
        bench = try DeliveryBench(after: bench)
        bench.setAway(false)
        bench.advance(after: 86_400_000)
        #expect(bench.received == ["1", "4"])
        if toReceiver { #expect(bench.reportsGap == true) }
        #expect(try !bench.consumers.find(try bench.id).gap.isOpen)
        bench.log.add(1)
        bench.advance(after: 1_000)
        #expect(bench.received == ["1", "4", "5"])
        if toReceiver { #expect(bench.reportsGap == false, "the gap is reported once") }
        // Pull clients learn of the gap from the response, so nothing is logged.
        let lines = bench.logged("delivery missed events")
        #expect(way == .pull || lines.count == 1)
        #expect(lines.allSatisfy { $0.contains(#""way":"\#(way.noun)""#) })
    }

    @Test(arguments: [(WayCase.webhook, 1), (.stream, 1), (.sample, 0)])
    func eventsDeletedBeforeTheFirstDeliveryAreLoggedAsAGap(_ way: WayCase, reports: Int) throws {
        let bench = try DeliveryBench(way)
        try bench.create()
        bench.advance()
        bench.log.add(3)
        bench.log.state.withLock { $0.floor = 2 }
        bench.advance()
        #expect(bench.received == ["3"])
        #expect(bench.logged("delivery missed events").count == reports)
    }

    /// A file has more events than a batch.
    @Test func aGapWithinAFileIsLoggedOnce() throws {
        let bench = try DeliveryBench(.file)
        try bench.create()
        bench.log.add(1)
        bench.advance()
        bench.log.add(2_000)
        // Retention deletes events while the file is written.
        bench.log.state.withLock { $0.nextFloor = 1_500 }
        bench.advance()
        #expect(bench.received == numbers(1...1_001) + numbers(1_501...2_001))
        #expect(bench.reportsGap == true)
        #expect(bench.logged("delivery missed events").count == 1)
    }

    @Test func aGapBeforeTheFirstFileIsReported() throws {
        let bench = try DeliveryBench(.file)
        try bench.create()
        bench.advance()
        // The position moves past a deleted user's event, so it is above 0 before the first file.
        bench.log.add(1, users: ["ada"])
        bench.log.delete(user: "ada")
        bench.advance(after: 1_000)
        bench.log.add(3)
        bench.log.state.withLock { $0.floor = 3 }
        bench.advance(after: 1_000)
        #expect(bench.received == ["4"])
        #expect(bench.reportsGap == true)
    }

    @Test(arguments: WayCase.allCases)
    func eventsThatCannotBeReadAreNotLost(_ way: WayCase) throws {
        let bench = try DeliveryBench(way)
        try bench.create()
        bench.log.add(2)
        bench.log.state.withLock { $0.isBroken = true }
        bench.advance()
        #expect(try bench.received.isEmpty && bench.progress()?.failures == 0)
        bench.log.state.withLock { $0.isBroken = false }
        bench.advance(after: 1_000)
        #expect(bench.received == numbers(1...2))
    }

    /// Retention never waits for files.
    @Test(arguments: WayCase.flagged(exceptTrue: .file))
    func retentionWaitsUpToTheHoldAndThenReportsTheGap(_ way: WayCase, holds: Bool) throws {
        let bench = try DeliveryBench(way)
        try bench.create(holdDays: holds ? 3 : nil)
        bench.advance()
        let now = Milliseconds(Date()).count
        for (id, age) in [("older than the hold", 10), ("held", 2)] {
            _ = try StorageConformance.append(
                [StorageConformance.event(id, user: "ada")],
                receivedMilliseconds: now - Int64(age) * 86_400_000, to: bench.store)
        }
        bench.store.close()
        try bench.place.waitForTransactions()
        let missed = MissedEvents()
        let store = try bench.storage.openEvents(
            EventStoreOptions(
                pendingBytes: 1 << 20, observer: missed, retention: { ["shop": AppRules(days: 1)] }))
        defer { store.close() }
        // The store sweeps before it completes the batch.
        _ = try StorageConformance.append([StorageConformance.event("x")], of: "kiosk", to: store)
        let left = try bench.storage.log.follow(EventQuery(appID: "shop"), after: 0, limit: 9).events
        #expect(left.map(\.messageID) == (holds ? ["held"] : []))
        let id = try bench.id
        #expect(missed.names.withLock { $0 } == (holds ? ["\(way.noun) \(id.name)"] : []))
        let consumers = bench.storage.openConsumers(with: store, now: { now })
        // Event files begin with the oldest stored event, so nothing before it counts as missed.
        #expect(try consumers.find(id).gap.isOpen == (way.kind != .file))
    }

    private final class MissedEvents: GatewayObserver {
        let names = Lock<[String]>([])
        func requestEnded(_ record: RequestRecord) {}
        func eventsMissed(by consumer: String, ofKind kind: String, appID: String) {
            names.withLock { $0.append(kind + " " + consumer) }
        }
    }

    @Test(arguments: WayCase.allCases)
    func eachUsersEventsStayInOrderAcrossFailures(_ way: WayCase) throws {
        let bench = try DeliveryBench(way)
        try bench.create()
        for round in 0..<6 {
            bench.log.add(5, users: ["ada", "bob", "eve"])
            bench.setAway(round % 2 == 0)
            bench.advance(after: 60_000)
            if round % 2 == 0 { bench.setAway(false) }
        }
        bench.advance(after: 86_400_000)
        #expect(bench.received == numbers(1...30))
    }

    @Test(arguments: WayCase.allCases)
    func eventsOfADeletedUserAreNotDelivered(_ way: WayCase) throws {
        let bench = try DeliveryBench(way)
        try bench.create()
        bench.log.add(6, users: ["ada", "bob"])
        bench.setAway(true)
        bench.advance()
        bench.log.delete(user: "ada")
        bench.setAway(false)
        bench.advance(after: 86_400_000)
        #expect(bench.received == ["2", "4", "6"])
        #expect(try bench.progress()?.committed == 6 && bench.progress()?.gap == EventGap.none)
        if way == .webhook { expectOneIDForEachContent(bench) }
    }

    /// Only webhooks have changeable settings that affect a message. `aKillAtAnyStepLosesNothing` checks that streams and files
    /// have each event once.
    @Test func aRetryHasTheSameIDAndContentUntilSettingsChange() throws {
        let bench = try DeliveryBench(.webhook)
        try bench.create()
        bench.log.add(3)
        bench.setAway(true)
        bench.advance()
        bench.log.add(3)
        bench.advance(after: 60_000)
        try bench.directory.webhooks.change(try bench.id.name, of: "shop", ["batch_size": 2], at: 0)
        bench.advance()
        bench.setAway(false)
        bench.advance(after: 86_400_000)
        #expect(bench.requests.map(\.events) == [[1, 2, 3], [1, 2, 3], [1, 2], [1, 2], [3, 4], [5, 6]])
        expectOneIDForEachContent(bench)
    }

    /// Files and `.sample` cannot replay. For pull consumers and streams, the test moves the position back instead.
    @Test(arguments: [WayCase.webhook, .stream, .pull])
    func aReplayDeliversEventsAgainAndLosesNone(_ way: WayCase) throws {
        let bench = try DeliveryBench(way)
        try bench.create()
        bench.log.add(5)
        bench.advance()
        try bench.replay(after: 2, through: 5)
        bench.advance()
        bench.log.add(1)
        bench.advance(after: 10_000)
        #expect(bench.received == numbers(1...5) + numbers(3...6))
        #expect(try bench.progress()?.committed == 6)
    }

    /// Streams and files have all events of an app.
    @Test(arguments: [WayCase.webhook, .sample, .pull])
    func aFilterSelectsEventsAndThePositionPassesTheOthers(_ way: WayCase) throws {
        let bench = try DeliveryBench(way)
        try bench.create(name: "even")
        bench.log.add(7)
        bench.advance()
        bench.advance(after: 1_000)
        #expect(bench.received == ["2", "4", "6"])
        #expect(try bench.progress()?.committed == 7)
    }

    @Test(arguments: WayCase.allCases)
    func theLagCountsEventsThatWereNotAccepted(_ way: WayCase) throws {
        let bench = try DeliveryBench(way)
        try bench.create()
        bench.log.add(3)
        bench.setAway(true)
        bench.advance()
        let late = try bench.consumers.find(try bench.id)
        #expect(late.lag == 3 && late.oldestUnreadMilliseconds == 1)
        bench.setAway(false)
        bench.advance(after: 86_400_000)
        bench.advance(after: 1_000)
        let done = try bench.consumers.find(try bench.id)
        #expect(done.lag == 0 && done.oldestUnreadMilliseconds == nil)
    }

    /// The settings of `.sample` do not belong to an app.
    @Test(arguments: WayCase.flagged(exceptTrue: .sample))
    func aDeletedConsumerOrAppLeavesNoPosition(_ way: WayCase, isApp: Bool) throws {
        let bench = try DeliveryBench(way)
        try bench.create()
        bench.log.add(1)
        bench.advance()
        if isApp {
            _ = try bench.directory.deleteApp(id: "shop")
            try bench.store.erase(appID: "shop")
        } else {
            try bench.delete()
        }
        bench.log.add(1)
        bench.advance(after: 86_400_000)
        #expect(bench.received == ["1"])
        #expect(try bench.consumers.progress(way.kind).isEmpty && bench.runner.ids.isEmpty)
    }

    @Test(arguments: WayCase.run)
    func oneGatewayDeliversAtATime(_ way: WayCase) throws {
        let bench = try DeliveryBench(way)
        try bench.create()
        bench.log.add(2)
        bench.advance()
        bench.hasDuty.withLock { $0 = false }
        bench.log.add(2)
        bench.advance()
        #expect(bench.received == numbers(1...2))
        let otherHasDuty = Lock(true)
        let other = try bench.rival { otherHasDuty.withLock { $0 } }
        other.check()
        bench.pool.drain()
        other.check()
        #expect(bench.received == numbers(1...4))
        otherHasDuty.withLock { $0 = false }
        other.check()
        bench.log.add(1)
        bench.hasDuty.withLock { $0 = true }
        bench.advance()
        #expect(bench.received == numbers(1...5), "the position was read again")
    }

    /// Ends the runner after 0 to 6 steps. Only stored progress survives.
    @Test(arguments: WayCase.allCases)
    func aKillAtAnyStepLosesNothing(_ way: WayCase) throws {
        var bench = try DeliveryBench(way)
        try bench.create()
        for round in 1...20 {
            bench.log.add(3)
            bench.advance(after: 60_000, most: round % 7)
            bench = try DeliveryBench(after: bench)
        }
        bench.advance(after: 60_000)
        #expect(distinct(bench.received) == numbers(1...60))
        if way == .webhook || way == .stream { expectOneIDForEachContent(bench) }
        if way == .stream || way == .file {
            #expect(bench.received == numbers(1...60), "the receiver has each event once")
        }
    }

    @Test(arguments: [WayCase.webhook, .stream])
    func positionsOfAnEarlierVersionAreMigratedOnce(_ way: WayCase) throws {
        var bench = try DeliveryBench(way)
        try bench.create()
        bench.log.add(9)
        let webhook = try bench.directory.webhooks.all().first?.id ?? ""
        let current = try bench.directory.streams.all().first?.epoch ?? 0
        func store(_ sequence: Int64, epoch: Int64? = nil, last: Int64 = 4) throws {
            switch way {
            case .webhook:
                try bench.place.connection(to: "webhooks").execute(
                    """
                    DELETE FROM progress;
                    INSERT INTO progress (endpoint_id, committed_seq, message_id, through_seq, failures, next_ms,
                        digest, is_after_gap, revision)
                    VALUES ('\(webhook)', \(sequence), 'msg_a', 6, 2, 1800000050000, 'd', 1, 1)
                    """)
            default:
                let file = bench.place.folder + "/sinks.sqlite"
                if !FileManager.default.fileExists(atPath: file) {
                    #expect(FileManager.default.createFile(atPath: file, contents: nil))
                }
                _ = try bench.storage.openEarlierStreams()
                try bench.place.connection(to: "sinks").execute(
                    """
                    DELETE FROM sink_state;
                    INSERT INTO sink_state (sink, epoch, mark_seq, stream_seq)
                    VALUES ('shop/out', \(epoch ?? current), \(sequence), \(last))
                    """)
                bench.receiver.stream.last = last
            }
        }
        if way == .stream {
            try store(4, epoch: current + 1, last: 0)
            bench = try DeliveryBench(after: bench)
            bench.runner.check()
            let own = try #require(try bench.progress())
            #expect(own.committed == 0 && own.epoch == current, "the position is of another epoch")
            // The earlier version stored the position of a stream among the consumers too, without an epoch.
            try bench.consumers.follow(try bench.id, holdDays: nil, from: DeliveryProgress(committed: 4))
        }
        try store(4)
        bench = try DeliveryBench(after: bench)
        bench.runner.check()
        let moved = try #require(try bench.progress())
        #expect(moved.committed == 4)
        if way == .webhook {
            #expect(moved.messageID == "msg_a" && moved.through == 6 && moved.failures == 2)
            #expect(moved.digest == "d" && moved.gap.isOpen && moved.nextMilliseconds == 1_800_000_050_000)
        }
        bench.advance(after: 60_000)
        #expect(bench.received == numbers(5...9))
        // A gateway of the earlier version has delivered less than this one, then more.
        try store(2, last: bench.receiver.stream.last)
        bench = try DeliveryBench(after: bench)
        bench.advance(after: 60_000)
        #expect(try bench.received == numbers(5...9) && bench.progress()?.committed == 9)
        bench.log.add(3)
        try store(11, last: bench.receiver.stream.last)
        bench = try DeliveryBench(after: bench)
        bench.runner.check()
        #expect(try bench.progress()?.committed == 11)
    }
}
