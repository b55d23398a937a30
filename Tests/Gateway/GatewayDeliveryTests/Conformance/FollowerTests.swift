import CountersignCore
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

@testable import GatewayDelivery

extension Follower {
    /// Ends a step, with the longest back-off unless `fraction` is smaller.
    @discardableResult
    fileprivate mutating func end(
        _ outcome: Outcome, at now: Int64, fraction: Double = 1
    ) -> WayPause.Reason? {
        ended(outcome, atMilliseconds: now, fraction: fraction)
    }
}

/// Batches, retries and pauses of a delivery, decided without a clock or a network.
struct FollowerTests {
    private let start: Int64 = 1_800_000_000_000
    private let day: Int64 = 86_400_000

    private let id = EventConsumerID(appID: "shop", kind: .webhook, name: "wh")
    private let retry = Retry(first: 5, patience: 5 * 86_400_000)
    private let failure = DeliveryFailure("status", "it answered 500")

    private func machine(committed: Int64 = 0) -> Follower {
        Follower(DeliveryRoute(id), DeliveryProgress(committed: committed), retry: retry)
    }

    private func failed(_ seconds: Int? = nil) -> Follower.Outcome {
        .answer(.retry(failure, afterSeconds: seconds), events: 5)
    }

    private func delivered(_ sequence: Int64) -> Follower.Outcome {
        .answer(.delivered(through: sequence), events: 5)
    }

    private func work(_ work: Follower.Work?) throws -> Follower.Work { try #require(work) }

    @Test func aBatchIsRetriedUnderItsIDUntilAccepted() throws {
        var machine = machine(committed: 7)
        let first = try work(machine.next(atMilliseconds: start))
        #expect(first == .init(after: 7, through: nil, attempt: 1, limit: 1_000))
        #expect(machine.next(atMilliseconds: start) == nil)
        #expect(machine.willSend(through: 12, digest: "one") { "msg_a" } == "msg_a")
        #expect(machine.end(failed(), at: start) == nil)
        #expect(machine.progress.committed == 7)
        #expect(machine.next(atMilliseconds: start + 4_999) == nil)
        let second = try work(machine.next(atMilliseconds: start + 5_000))
        #expect(second == .init(after: 7, through: 12, attempt: 2, limit: 1_000))
        #expect(machine.willSend(through: 12, digest: "one") { "msg_x" } == "msg_a")
        machine.end(delivered(12), at: start + 5_000)
        #expect(machine.progress.committed == 12 && machine.progress.messageID == nil)
        #expect(machine.progress.failures == 0 && machine.progress.failure == failure)
        let third = try work(machine.next(atMilliseconds: start + 5_000))
        #expect(third == .init(after: 12, through: nil, attempt: 1, limit: 1_000))
        #expect(machine.willSend(through: 20, digest: "two") { "msg_b" } == "msg_b")
    }

    @Test func anIdleFollowerIsWokenByEventsStoredMeanwhile() throws {
        var machine = machine()
        _ = try work(machine.next(atMilliseconds: start))
        machine.end(.nothing(through: 3, hasMore: false, gap: .none), at: start)
        #expect(machine.next(atMilliseconds: start + day) == nil)
        machine.wake()
        _ = try work(machine.next(atMilliseconds: start))
        // An event is stored while the batch is read.
        machine.wake()
        machine.end(.nothing(through: 4, hasMore: false, gap: .none), at: start)
        #expect(try work(machine.next(atMilliseconds: start)).after == 4)
        // When a filter excludes every event, reading continues at once.
        machine.end(.nothing(through: 9, hasMore: true, gap: .none), at: start)
        #expect(try work(machine.next(atMilliseconds: start)).after == 9)
    }

    @Test func backOffGrowsFromSecondsToADayWithFullJitter() {
        func pause(_ failures: Int, _ retryAfter: Int? = nil, least: Bool = false) -> Int64 {
            retry.pause(failures: failures, afterSeconds: retryAfter, fraction: least ? 0 : 1)
        }
        #expect([1, 2, 3, 4].map { pause($0) } == [5_000, 10_000, 20_000, 40_000])
        #expect(pause(15) == 81_920_000 && pause(16) == day && pause(1_000_000) == day)
        #expect([1, 5, 100].map { pause($0, least: true) } == [1_000, 1_000, 1_000])
        // `Retry-After` only lengthens the pause, up to a day.
        #expect(pause(1, 120) == 120_000 && pause(1, 10_000_000) == day && pause(16, 1) == day)
        #expect(pause(1, -5) == 5_000)
    }

    @Test func fiveDaysOfFailuresPauseDeliveryAndASuccessRestartsTheCount() throws {
        var machine = machine()
        func fail(at time: Int64) throws -> WayPause.Reason? {
            _ = try work(machine.next(atMilliseconds: time))
            return machine.end(failed(), at: time, fraction: 0)
        }
        #expect(try fail(at: start) == nil)
        #expect(try fail(at: start + 4 * day) == nil)
        _ = try work(machine.next(atMilliseconds: start + 5 * day - 5_000))
        machine.end(delivered(1), at: start)
        #expect(try fail(at: start + 5 * day) == nil)
        #expect(try fail(at: start + 10 * day - 1) == nil)
        #expect(try fail(at: start + 10 * day + 1_000) == .failing)
        #expect(machine.next(atMilliseconds: start + 20 * day) == nil)
        machine.apply(DeliveryRoute(id))
        #expect(try work(machine.next(atMilliseconds: start + 20 * day)).attempt == 1)
    }

    @Test func anUnrelatedChangeNeitherProbesNorClearsAFailure() throws {
        var machine = Follower(
            DeliveryRoute(id), DeliveryProgress(committed: 0), retry: retry, probeMilliseconds: day)
        #expect(try work(machine.next(atMilliseconds: start)).isProbe)
        machine.end(.answer(.delivered(through: 0), events: 0), at: start)
        #expect(try !work(machine.next(atMilliseconds: start)).isProbe)
        machine.end(failed(), at: start)
        machine.apply(DeliveryRoute(id))
        let again = try work(machine.next(atMilliseconds: start + 5_000))
        #expect(!again.isProbe && again.attempt == 2)
        machine.end(failed(), at: start + 5_000)
        // After a change of the consumer's own settings, delivery continues at once, beginning with a probe.
        var changed = DeliveryRoute(id)
        changed.revision += 1
        machine.apply(changed)
        #expect(try work(machine.next(atMilliseconds: start + 5_000)).isProbe)
    }

    @Test func aGoneResponsePausesDelivery() throws {
        var machine = machine()
        _ = try work(machine.next(atMilliseconds: start))
        let reason = machine.end(.answer(.pause(.gone, failure), events: 1), at: start)
        #expect(reason == .gone && machine.isPaused && machine.progress.committed == 0)
    }

    @Test func anUntriedBatchIsNotAFailure() throws {
        var machine = machine()
        let first = try work(machine.next(atMilliseconds: start))
        #expect(first == .init(after: 0, through: nil, attempt: 1, limit: 1_000))
        #expect(machine.willSend(through: 5, digest: "one") { "a" } == "a")
        machine.end(.answer(.notTried, events: 0), at: start)
        #expect(machine.progress.failures == 0)
        let again = try work(machine.next(atMilliseconds: start + 1_000))
        #expect(again == .init(after: 0, through: 5, attempt: 1, limit: 1_000))
        #expect(machine.willSend(through: 5, digest: "one") { "b" } == "a")
    }

    @Test func settingTheClockBackDoesNotStopDelivery() throws {
        var machine = machine()
        _ = try work(machine.next(atMilliseconds: start + 365 * day))
        machine.end(failed(), at: start + 365 * day)
        let again = try work(machine.next(atMilliseconds: start))
        #expect(again == .init(after: 0, through: nil, attempt: 2, limit: 1_000))
    }

    @Test func timesSetWhileTheClockWasAheadAreDueAfterTheCorrection() throws {
        let request = DeliveryRequest(
            id: "1", wayName: "wh", kind: .replay, messageID: "a", after: 0, through: 9,
            nextMilliseconds: start + 365 * day)
        var route = DeliveryRoute(id)
        route.requests = [request]
        let kind = AppendingFiles(file: "", settings: Lock(route), hasDuty: { true })
        var destination = Destination(route, of: kind, DeliveryProgress(committed: 0))
        guard case .request(let begun)? = destination.begin(atMilliseconds: start) else {
            Issue.record("the request is not due")
            return
        }
        #expect(begun.id == "1")
    }

    @Test func aReplayContinuesAfterEachDeliveryAndFinallyFails() throws {
        let request = DeliveryRequest(
            id: "1", wayName: "wh", kind: .replay, messageID: "a", after: 0, through: 9,
            nextMilliseconds: start)
        func after(_ request: DeliveryRequest, delivered: Bool, hasMore: Bool) -> DeliveryRequest? {
            request.after(
                delivered ? .delivered(through: 4) : .retry(failure), events: 2, through: 4, hasMore: hasMore,
                retry: retry, atMilliseconds: start, newID: { "b" }, fraction: 1)
        }
        let next = try #require(after(request, delivered: true, hasMore: true))
        #expect(next.after == 4 && next.messageID == "b" && next.nextMilliseconds == start)
        #expect(after(next, delivered: true, hasMore: false) == nil)
        var failing: DeliveryRequest? = request
        var attempts = 0
        while let current = failing {
            #expect(current.messageID == "a" && current.after == 0)
            failing = after(current, delivered: false, hasMore: true)
            attempts += 1
        }
        #expect(attempts == DeliveryRequest.mostAttempts)
        let test = DeliveryRequest(
            id: "2", wayName: "wh", kind: .test, messageID: "t", nextMilliseconds: start)
        #expect(after(test, delivered: false, hasMore: false) == nil)
    }

    /// The answer to events of the old position does not move the new one.
    @Test func aPositionMovedDuringADeliveryIsNotOverwritten() throws {
        var machine = machine()
        _ = try work(machine.next(atMilliseconds: start))
        var route = DeliveryRoute(id)
        (route.start, route.epoch) = (3, 9)
        machine.apply(route)
        machine.end(delivered(12), at: start)
        #expect(machine.progress.committed == 3 && machine.progress.epoch == 9)
        #expect(try work(machine.next(atMilliseconds: start)).after == 3)
    }

    @Test func aMoveResetsEverythingButTheLastSuccessAndTheLastFailure() throws {
        var machine = machine()
        _ = try work(machine.next(atMilliseconds: start))
        machine.end(.answer(.delivered(through: 12, receiver: 5), events: 5), at: start)
        _ = try work(machine.next(atMilliseconds: start))
        _ = machine.willSend(through: 14, digest: "one") { "msg_a" }
        machine.end(failed(), at: start + 1)
        var route = DeliveryRoute(id)
        (route.start, route.epoch) = (3, 9)
        machine.apply(route)
        var expected = DeliveryProgress(committed: 3)
        (expected.epoch, expected.revision, expected.failure) = (9, route.revision, failure)
        (expected.deliveredMilliseconds, expected.failedMilliseconds) = (start, start + 1)
        #expect(machine.progress == expected)
    }

    @Test func anIdleReceiverIsProbedAndMayMoveThePosition() throws {
        var machine = Follower(
            DeliveryRoute(id), DeliveryProgress(committed: 7), retry: retry, probeMilliseconds: 10_000)
        #expect(try work(machine.next(atMilliseconds: start)).isProbe)
        machine.end(.answer(.moved(to: 4, receiver: 2), events: 0), at: start)
        let next = try work(machine.next(atMilliseconds: start))
        #expect(next.after == 4 && !next.isProbe && machine.progress.receiverSequence == 2)
        machine.end(.nothing(through: 7, hasMore: false, gap: .none), at: start)
        #expect(machine.next(atMilliseconds: start) == nil)
        #expect(try work(machine.next(atMilliseconds: start + 10_000)).isProbe)
    }

    /// The events of a failed attempt may be deleted, or excluded by another filter.
    @Test func eventsAfterAFailedAndDeletedBatchAreDelivered() throws {
        var machine = machine()
        _ = try work(machine.next(atMilliseconds: start))
        _ = machine.willSend(through: 4, digest: "one") { "msg_a" }
        machine.end(failed(), at: start)
        let retry = try work(machine.next(atMilliseconds: start + 5_000))
        #expect(retry.through == 4)
        machine.end(.nothing(through: 4, hasMore: false, gap: .none), at: start + 5_000)
        #expect(machine.progress.failures == 0 && machine.progress.failingSinceMilliseconds == nil)
        let next = try work(machine.next(atMilliseconds: start + 5_000))
        #expect(next == .init(after: 4, through: nil, attempt: 1, limit: 1_000))
    }

    @Test func rejectedBatchBacksOffAlthoughTheReceiverAnswersProbes() throws {
        var machine = Follower(
            DeliveryRoute(id), DeliveryProgress(committed: 7), retry: retry, probeMilliseconds: 10_000)
        #expect(try work(machine.next(atMilliseconds: start)).isProbe)
        machine.end(.answer(.delivered(through: 7), events: 0), at: start)
        var now = start
        for failures in 1...3 {
            let work = try work(machine.next(atMilliseconds: now))
            #expect(!work.isProbe && work.attempt == failures)
            _ = machine.willSend(through: 9, digest: "one") { "msg_a" }
            machine.end(failed(), at: now)
            #expect(machine.progress.failures == failures)
            now = machine.progress.nextMilliseconds
        }
    }
}
