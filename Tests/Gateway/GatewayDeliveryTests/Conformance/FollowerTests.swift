import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

@testable import GatewayDelivery

/// Batches, retries and pauses of a way, decided without a clock or a network.
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

    /// Jitter that always chooses the longest pause.
    private let longest = 1.0

    @Test func aBatchIsRetriedUnderItsIDUntilAccepted() throws {
        var machine = machine(committed: 7)
        let first = try work(machine.next(atMilliseconds: start))
        #expect(first == .init(after: 7, through: nil, attempt: 1, limit: 1_000))
        #expect(machine.next(atMilliseconds: start) == nil)
        #expect(machine.willSend(through: 12, digest: "one") { "msg_a" } == "msg_a")
        #expect(
            machine.ended(
                failed(), atMilliseconds: start, fraction: longest) == nil
        )
        #expect(machine.progress.committed == 7)
        #expect(
            machine.next(atMilliseconds: start + 4_999)
                == nil)
        let second = try work(machine.next(atMilliseconds: start + 5_000))
        #expect(second == .init(after: 7, through: 12, attempt: 2, limit: 1_000))
        #expect(machine.willSend(through: 12, digest: "one") { "msg_x" } == "msg_a")
        _ = machine.ended(delivered(12), atMilliseconds: start + 5_000, fraction: longest)
        #expect(machine.progress.committed == 12 && machine.progress.messageID == nil)
        #expect(machine.progress.failures == 0 && machine.progress.failure == failure)
        let third = try work(machine.next(atMilliseconds: start + 5_000))
        #expect(third == .init(after: 12, through: nil, attempt: 1, limit: 1_000))
        #expect(machine.willSend(through: 20, digest: "two") { "msg_b" } == "msg_b")
    }

    @Test func anIdleFollowerIsWokenByEventsStoredMeanwhile() throws {
        var machine = machine()
        _ = try work(machine.next(atMilliseconds: start))
        _ = machine.ended(
            .nothing(through: 3, hasMore: false, gap: .none), atMilliseconds: start, fraction: longest)
        #expect(machine.next(atMilliseconds: start + day) == nil)
        machine.wake()
        _ = try work(machine.next(atMilliseconds: start))
        // An event is stored while the batch is read.
        machine.wake()
        _ = machine.ended(
            .nothing(through: 4, hasMore: false, gap: .none), atMilliseconds: start, fraction: longest)
        #expect(try work(machine.next(atMilliseconds: start)).after == 4)
        // When a filter excludes every event, reading continues at once.
        _ = machine.ended(
            .nothing(through: 9, hasMore: true, gap: .none), atMilliseconds: start, fraction: longest)
        #expect(try work(machine.next(atMilliseconds: start)).after == 9)
    }

    @Test func pausesGrowFromSecondsToADayWithFullJitter() {
        func pause(_ failures: Int, _ retryAfter: Int? = nil, least: Bool = false) -> Int64 {
            retry.pause(failures: failures, afterSeconds: retryAfter, fraction: least ? 0 : longest)
        }
        #expect([1, 2, 3, 4].map { pause($0) } == [5_000, 10_000, 20_000, 40_000])
        #expect(pause(15) == 81_920_000 && pause(16) == day && pause(1_000_000) == day)
        #expect([1, 5, 100].map { pause($0, least: true) } == [1_000, 1_000, 1_000])
        // `Retry-After` sets the pause, up to a day.
        #expect(pause(1, 120) == 120_000 && pause(1, 10_000_000) == day && pause(16, 1) == day)
        #expect(pause(1, -5) == 5_000)
    }

    @Test func fiveDaysOfFailuresPauseDeliveryAndASuccessRestartsTheCount() throws {
        var machine = machine()
        func fail(at time: Int64) throws -> WayPause.Reason? {
            _ = try work(machine.next(atMilliseconds: time))
            return machine.ended(
                failed(), atMilliseconds: time,
                fraction: 0)
        }
        #expect(try fail(at: start) == nil)
        #expect(try fail(at: start + 4 * day) == nil)
        _ = try work(machine.next(atMilliseconds: start + 5 * day - 5_000))
        _ = machine.ended(delivered(1), atMilliseconds: start, fraction: longest)
        #expect(try fail(at: start + 5 * day) == nil)
        #expect(try fail(at: start + 10 * day - 1) == nil)
        #expect(try fail(at: start + 10 * day + 1_000) == .failing)
        #expect(machine.next(atMilliseconds: start + 20 * day) == nil)
        machine.take(over: DeliveryRoute(id))
        #expect(try work(machine.next(atMilliseconds: start + 20 * day)).attempt == 1)
    }

    @Test func anUnrelatedChangeNeitherProbesNorClearsAFailure() throws {
        var machine = Follower(
            DeliveryRoute(id), DeliveryProgress(committed: 0), retry: retry, probeMilliseconds: day)
        #expect(try work(machine.next(atMilliseconds: start)).isProbe)
        _ = machine.ended(
            .answer(.delivered(through: 0), events: 0), atMilliseconds: start, fraction: longest)
        #expect(try !work(machine.next(atMilliseconds: start)).isProbe)
        _ = machine.ended(failed(), atMilliseconds: start, fraction: longest)
        machine.take(over: DeliveryRoute(id))
        let again = try work(machine.next(atMilliseconds: start + 5_000))
        #expect(!again.isProbe && again.attempt == 2)
        _ = machine.ended(failed(), atMilliseconds: start + 5_000, fraction: longest)
        // A change of the way itself attempts at once, beginning with a probe.
        var changed = DeliveryRoute(id)
        changed.revision += 1
        machine.take(over: changed)
        #expect(try work(machine.next(atMilliseconds: start + 5_000)).isProbe)
    }

    @Test func aGoneResponsePausesDelivery() throws {
        var machine = machine()
        _ = try work(machine.next(atMilliseconds: start))
        let reason = machine.ended(
            .answer(.pause(.gone, failure), events: 1), atMilliseconds: start, fraction: longest)
        #expect(reason == .gone && machine.isPaused && machine.progress.committed == 0)
    }

    @Test func anUntriedBatchIsNotAFailure() throws {
        var machine = machine()
        let first = try work(machine.next(atMilliseconds: start))
        #expect(first == .init(after: 0, through: nil, attempt: 1, limit: 1_000))
        #expect(machine.willSend(through: 5, digest: "one") { "a" } == "a")
        _ = machine.ended(.answer(.notTried, events: 0), atMilliseconds: start, fraction: longest)
        #expect(machine.progress.failures == 0)
        let again = try work(machine.next(atMilliseconds: start + 1_000))
        #expect(again == .init(after: 0, through: 5, attempt: 1, limit: 1_000))
        #expect(machine.willSend(through: 5, digest: "one") { "b" } == "a")
    }

    @Test func settingTheClockBackDoesNotStopDelivery() throws {
        var machine = machine()
        _ = try work(machine.next(atMilliseconds: start + 365 * day))
        _ = machine.ended(
            failed(), atMilliseconds: start + 365 * day, fraction: longest
        )
        let again = try work(machine.next(atMilliseconds: start))
        #expect(again == .init(after: 0, through: nil, attempt: 2, limit: 1_000))
    }

    @Test func timesSetWhileTheClockWasAheadAreDueAfterTheCorrection() throws {
        let request = DeliveryRequest(
            id: "1", wayName: "wh", kind: .replay, messageID: "a", after: 0, through: 9,
            nextMilliseconds: start + 365 * day)
        var route = DeliveryRoute(id)
        route.requests = [request]
        var destination = Destination(route, IdleWay(), machine())
        guard case .request(let begun)? = destination.begin(atMilliseconds: start) else {
            Issue.record("it waits")
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
                retry: retry, atMilliseconds: start, newID: { "b" }, fraction: longest)
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
        machine.take(over: route)
        _ = machine.ended(delivered(12), atMilliseconds: start, fraction: longest)
        #expect(machine.progress.committed == 3 && machine.progress.epoch == 9)
        #expect(try work(machine.next(atMilliseconds: start)).after == 3)
    }

    @Test func anIdleReceiverIsProbedAndMayMoveThePosition() throws {
        var machine = Follower(
            DeliveryRoute(id), DeliveryProgress(committed: 7), retry: retry, probeMilliseconds: 10_000)
        #expect(try work(machine.next(atMilliseconds: start)).isProbe)
        _ = machine.ended(
            .answer(.moved(to: 4, receiver: 2), events: 0), atMilliseconds: start, fraction: longest)
        let next = try work(machine.next(atMilliseconds: start))
        #expect(next.after == 4 && !next.isProbe && machine.progress.receiverSequence == 2)
        _ = machine.ended(
            .nothing(through: 7, hasMore: false, gap: .none), atMilliseconds: start, fraction: longest)
        #expect(machine.next(atMilliseconds: start) == nil)
        #expect(try work(machine.next(atMilliseconds: start + 10_000)).isProbe)
    }

    private final class IdleWay: Way {
        func accept(_ batch: DeliveryBatch, _ done: @escaping @Sendable (DeliveryAnswer) -> Void) {
            done(.notTried)
        }

        func close() {}
    }

    /// The events of a failed attempt may be deleted, or excluded by another filter.
    @Test func eventsAfterAFailedAndDeletedBatchAreDelivered() throws {
        var machine = machine()
        _ = try work(machine.next(atMilliseconds: start))
        _ = machine.willSend(through: 4, digest: "one") { "msg_a" }
        _ = machine.ended(failed(), atMilliseconds: start, fraction: longest)
        let retry = try work(machine.next(atMilliseconds: start + 5_000))
        #expect(retry.through == 4)
        _ = machine.ended(
            .nothing(through: 4, hasMore: false, gap: .none), atMilliseconds: start + 5_000,
            fraction: longest)
        #expect(machine.progress.failures == 0 && machine.progress.failingSinceMilliseconds == nil)
        let next = try work(machine.next(atMilliseconds: start + 5_000))
        #expect(next == .init(after: 4, through: nil, attempt: 1, limit: 1_000))
    }

    @Test func rejectedBatchBacksOffAlthoughTheReceiverAnswersProbes() throws {
        var machine = Follower(
            DeliveryRoute(id), DeliveryProgress(committed: 7), retry: retry, probeMilliseconds: 10_000)
        #expect(try work(machine.next(atMilliseconds: start)).isProbe)
        _ = machine.ended(
            .answer(.delivered(through: 7), events: 0), atMilliseconds: start, fraction: longest)
        var now = start
        for failures in 1...3 {
            let work = try work(machine.next(atMilliseconds: now))
            #expect(!work.isProbe && work.attempt == failures)
            _ = machine.willSend(through: 9, digest: "one") { "msg_a" }
            _ = machine.ended(failed(), atMilliseconds: now, fraction: longest)
            #expect(machine.progress.failures == failures)
            now = machine.progress.nextMilliseconds
        }
    }
}
