import CountersignCore
import CountersignGatewayTesting
import Foundation
import GatewayDelivery
import GatewayModel
import GatewayStorage
import GatewayTestSupport
import Testing

/// The rules that every way out of the event log follows.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct DeliveryConformanceTests {
    private func numbers(_ range: ClosedRange<Int>) -> [String] { range.map(String.init) }

    /// Distinct ids in the order of their first arrival.
    private func distinct(_ ids: [String]) -> [String] {
        var seen: Set<String> = []
        return ids.filter { seen.insert($0).inserted }
    }

    @Test(arguments: WayCase.allCases)
    func eventsArriveInOrderAndThePositionFollows(_ way: WayCase) throws {
        let bench = try DeliveryBench(way)
        try bench.create()
        bench.log.add(10)
        bench.look()
        #expect(bench.received == numbers(1...10))
        #expect(try bench.progress()?.committed == 10)
        #expect(try bench.progress()?.deliveredMilliseconds == bench.now.withLock { $0 })
        bench.log.add(1)
        bench.look(after: 1_000)
        #expect(bench.received == numbers(1...11))
        #expect(bench.runner.counts.map(\.events) == [11])
    }

    @Test(arguments: WayCase.allCases)
    func aFailureIsShownAndRetriedAlsoAfterARestart(_ way: WayCase) throws {
        let first = try DeliveryBench(way)
        try first.create()
        first.log.add(3)
        first.setAway(true)
        first.look()
        let failing = try #require(try first.progress())
        #expect(failing.committed == 0 && failing.failures == 1 && failing.failure != nil)
        #expect(failing.failedMilliseconds == first.now.withLock { $0 })
        #expect(failing.nextMilliseconds > first.now.withLock { $0 })
        #expect(first.runner.counts.map(\.isFailing) == [true])
        first.setAway(false)
        first.look()
        #expect(first.received.isEmpty, "the back-off has not ended")

        let second = try DeliveryBench(after: first)
        second.log.add(2)
        second.look()
        #expect(second.received.isEmpty, "the back-off continues after a restart")
        second.look(after: 86_400_000)
        #expect(second.received == numbers(1...5))
        let over = try #require(try second.progress())
        #expect(over.failures == 0 && over.failingSinceMilliseconds == nil && over.committed == 5)
        #expect(over.failure != nil, "the last failure stays visible")
        #expect(second.runner.counts.map(\.isFailing) == [false])
    }

    @Test(arguments: WayCase.allCases, [false, true])
    func aResumeAttemptsAtOnce(_ way: WayCase, isPaused: Bool) throws {
        let bench = try DeliveryBench(way)
        try bench.create()
        bench.log.add(1)
        bench.setAway(true)
        bench.look()
        if isPaused {
            try bench.setPause(true)
            bench.look()
            #expect(bench.runner.counts.map(\.isFailing) == [false])
            bench.setAway(false)
            bench.look(after: 86_400_000)
        }
        bench.setAway(false)
        #expect(bench.received.isEmpty)
        try bench.setPause(false)
        bench.look()
        #expect(bench.received == ["1"])
    }

    @Test(arguments: WayCase.allCases)
    func aGapIsKnownUntilAnEventAfterItWasAccepted(_ way: WayCase) throws {
        var bench = try DeliveryBench(way)
        try bench.create()
        bench.log.add(1)
        bench.look()
        bench.log.add(2)
        bench.log.state.withLock { ($0.floor, $0.leftOut) = (2, [3]) }
        bench.look()
        #expect(try bench.progress()?.committed == 3 && bench.progress()?.gap.isOpen == true)
        bench = try DeliveryBench(after: bench)
        bench.log.add(1)
        bench.setAway(true)
        bench.look()
        #expect(try bench.progress()?.gap.isOpen == true)
        bench = try DeliveryBench(after: bench)
        bench.setAway(false)
        bench.look(after: 86_400_000)
        #expect(bench.received == ["1", "4"])
        #expect(try bench.progress()?.gap.isOpen == false)
    }

    @Test(arguments: WayCase.allCases)
    func eventsThatCannotBeReadAreNotLost(_ way: WayCase) throws {
        let bench = try DeliveryBench(way)
        try bench.create()
        bench.log.add(2)
        bench.log.state.withLock { $0.isBroken = true }
        bench.look()
        #expect(try bench.received.isEmpty && bench.progress()?.failures == 0)
        bench.log.state.withLock { $0.isBroken = false }
        bench.look(after: 1_000)
        #expect(bench.received == numbers(1...2))
    }

    @Test(arguments: WayCase.allCases.filter { $0 != .file })
    func retentionWaitsAsLongAsTheSettingsSay(_ way: WayCase) throws {
        let bench = try DeliveryBench(way)
        try bench.create(holdDays: 3)
        bench.look()
        #expect(try bench.consumers.all(way.kind, of: "shop").map(\.settings.holdDays) == [3])
    }

    @Test(arguments: WayCase.allCases)
    func aDeletedWayLeavesNoPosition(_ way: WayCase) throws {
        let bench = try DeliveryBench(way)
        try bench.create()
        bench.log.add(1)
        bench.look()
        try bench.delete()
        bench.log.add(1)
        bench.look(after: 86_400_000)
        #expect(bench.received == ["1"])
        #expect(try bench.consumers.progress(way.kind).isEmpty && bench.runner.ids.isEmpty)
    }

    @Test(arguments: WayCase.allCases)
    func oneGatewayDeliversAtATime(_ way: WayCase) throws {
        let first = try DeliveryBench(way)
        try first.create()
        first.log.add(2)
        first.look()
        first.hasDuty.withLock { $0 = false }
        first.log.add(2)
        first.look()
        #expect(first.received == numbers(1...2))
        // Another gateway has delivered meanwhile, and this one reads the position again.
        let second = try DeliveryBench(after: first)
        second.look()
        second.hasDuty.withLock { $0 = false }
        second.log.add(1)
        second.look()
        second.hasDuty.withLock { $0 = true }
        second.look()
        #expect(second.received == numbers(1...5))
    }

    /// Ends the runner after each number of steps. Only stored progress survives.
    @Test(arguments: WayCase.allCases)
    func aKillAtAnyStepLosesNothing(_ way: WayCase) throws {
        var bench = try DeliveryBench(way)
        try bench.create()
        for round in 1...20 {
            bench.log.add(3)
            bench.look(after: 60_000, most: round % 7)
            bench = try DeliveryBench(after: bench)
        }
        bench.look(after: 60_000)
        #expect(distinct(bench.received) == numbers(1...60))
        if way == .stream || way == .file {
            #expect(bench.received == numbers(1...60), "the receiver has each event once")
        }
    }

    @Test(arguments: [WayCase.webhook, .stream])
    func positionsOfAnEarlierVersionMoveOnce(_ way: WayCase) throws {
        var bench = try DeliveryBench(way)
        try bench.create()
        bench.log.add(9)
        let webhook = try bench.directory.webhooks.all().first?.id ?? ""
        let epoch = try bench.directory.streams.all().first?.epoch ?? 0
        func store(_ sequence: Int64) throws {
            switch way {
            case .webhook:
                try bench.place.connection(to: "webhooks").execute(
                    """
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
                    INSERT INTO sink_state (sink, epoch, mark_seq, stream_seq)
                    VALUES ('shop/out', \(epoch), \(sequence), 4)
                    """)
                bench.receiver.stream.last = 4
            }
        }
        try store(4)
        bench = try DeliveryBench(after: bench)
        bench.runner.look()
        let moved = try #require(try bench.progress())
        #expect(moved.committed == 4)
        if way == .webhook {
            #expect(moved.messageID == "msg_a" && moved.through == 6 && moved.failures == 2)
            #expect(moved.digest == "d" && moved.gap.isOpen && moved.nextMilliseconds == 1_800_000_050_000)
        }
        bench.look(after: 60_000)
        #expect(bench.received == numbers(5...9))
        // A gateway of the earlier version has delivered less than this one.
        try store(2)
        bench = try DeliveryBench(after: bench)
        bench.look(after: 60_000)
        #expect(try bench.received == numbers(5...9) && bench.progress()?.committed == 9)
    }
}
