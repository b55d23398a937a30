import Testing

@testable import CountersignDelivery

/// The parts of the sender, each alone.
struct SenderPartsTests {
    private func event(_ sequence: Int64, bytes: Int = 10) -> QueuedEvent {
        QueuedEvent(
            sequence: sequence, messageID: "m\(sequence)", userID: "ada",
            body: Array(repeating: 0x20, count: bytes))
    }

    private let retry = RetryPolicy(baseDelay: 2, maximumDelay: 100, maximumFailures: 2)
    private let problem = ServerAnswer.Explanation("code", "words")

    @Test func aRoundReadsAgainWhenEventsWereStoredAfterItsClaim() {
        var round = Round()
        round.claimBegan()
        round.readAgain()
        round.nothingWasClaimed(awaitsTokens: false, hasSuspects: false)
        #expect(round.state == .reading(isStale: true))
        round.claimBegan()
        round.nothingWasClaimed(awaitsTokens: false, hasSuspects: false)
        #expect(round.ending == .drained)
        round.readAgain()
        #expect(round.ending == .drained, "the next round reads them")
    }

    @Test func onlyAFlushWaitsForTheProviderAndNoLongerThanItsPatience() {
        var round = Round()
        round.claimBegan()
        round.nothingWasClaimed(awaitsTokens: true, hasSuspects: false)
        #expect(round.ending == .drained)

        round.flush(patience: 10)
        round.claimBegan()
        round.nothingWasClaimed(awaitsTokens: true, hasSuspects: false)
        #expect(round.idle(at: 0, awaitsTokens: true, next: nil) == 10)
        #expect(round.idle(at: 0, awaitsTokens: true, next: 3) == 3)
        #expect(round.idle(at: 10, awaitsTokens: true, next: nil) == nil)
        #expect(round.ending == .waitingForTokenProvider)
    }

    @Test func aRoundIsOverWhenTheLastCallOfTheProviderIs() {
        var round = Round()
        round.flush(patience: nil)
        round.claimBegan()
        round.nothingWasClaimed(awaitsTokens: true, hasSuspects: false)
        #expect(round.idle(at: 0, awaitsTokens: true, next: nil) == .infinity)
        #expect(round.idle(at: 0, awaitsTokens: false, next: nil) == nil)
        #expect(round.ending == .drained)
    }

    @Test func aPauseGrowsAndItsReasonStaysUntilSomebodyResumes() {
        var pause = Pause()
        for expected in [2.0, 4, 8] {
            pause.backOff(retry, serverDelay: nil, now: 0, fraction: 1)
            #expect(pause.state == .until(expected))
        }
        pause.stop(problem, retry, serverDelay: nil, longest: 1, now: 0, fraction: 1)
        #expect(pause.state == .until(1))
        pause.lapse()
        #expect(pause.state == .none)
        #expect(pause.configurationProblem == problem)
        pause.resume()
        #expect(pause.configurationProblem == nil)
        #expect(pause.failures == 3, "a resumption is no success")
    }

    @Test func aBacklogIsDueAtItsSizeOrItsAge() {
        let policy = FlushPolicy(eventCount: 3, interval: 10, onBackground: false)
        var backlog = Backlog()
        #expect(backlog.dueAt(policy) == nil)
        backlog.stored(2, now: 5)
        backlog.stored(0, now: 6)
        #expect(!backlog.isFull(policy))
        #expect(backlog.dueAt(policy) == 15)
        backlog.stored(1, now: 9)
        #expect(backlog.isFull(policy))
        backlog.claimBegan()
        #expect(backlog.state == .empty)
    }

    @Test func aSettlementThatFailedWaitsLongerEachTimeAndNotAfterAWipe() {
        let settlement = Settlement(delivered: [event(1)])
        var settling = Settling()
        settling.settle(settlement)
        settling.failed(retry, now: 0, fraction: 1)
        #expect(settling.state == .waiting(settlement, until: 2, failures: 1))
        settling.failed(retry, now: 2, fraction: 1)
        #expect(settling.state == .waiting(settlement, until: 6, failures: 2))
        settling.settled()
        settling.failed(retry, now: 2, fraction: 1)
        #expect(settling.state == .none)
    }

    @Test func batchesAreHalvedAndOneEventIsNot() {
        var size = BatchSize()
        #expect((size.events(100), size.bytes(400)) == (100, 400))
        size.narrow([event(1, bytes: 30), event(2, bytes: 50), event(3, bytes: 20)])
        #expect((size.events(100), size.bytes(400)) == (1, 50))
        size.configured(events: 7)
        #expect((size.events(7), size.bytes(400)) == (7, 50))
        size.narrow([event(1)])
        #expect(size.state == .narrowed(events: 7, bytes: 50))
        size.widen()
        #expect(size.state == .full)
    }

    @Test func aLanePausesForGoodOnlyWhereNoTokenChangesByItself() {
        for pauses in [true, false] {
            var lane = Lane()
            lane.tokenRefused(1)
            lane.park(problem, retry: retry, pauses: pauses, serverDelay: nil, now: 0, fraction: 1)
            #expect(lane.state == .waiting(until: 2))
            #expect(lane.mustNotResend(1))
            lane.lapse(at: 2)
            #expect(lane.state == .open)
            #expect(!lane.mustNotResend(1))
            lane.park(problem, retry: retry, pauses: pauses, serverDelay: nil, now: 2, fraction: 1)
            #expect(lane.state == (pauses ? .paused : .waiting(until: 3_602)))
            lane.lapse(at: 4_000)
            #expect(lane.isPaused == pauses)
            lane.unblock()
            #expect(lane.state == .open)
            #expect(lane.failures == 2)
        }
    }

    @Test func aLaneThatWaitsStillDoesWhenTheProviderReturns() {
        var lanes = Lanes()
        let ada = UserKey("ada")
        lanes.change(ada) { $0.hold(until: 5, problem) }
        lanes.change(ada) { $0.tokenPending() }
        #expect(lanes.awaitTokens)
        let wasAsked = (0..<2).map { _ in lanes.tokenResolved(for: ada) }
        #expect(wasAsked == [true, false])
        #expect(lanes[ada]?.state == .waiting(until: 5))
        lanes.lapse(at: 5)
        #expect(lanes.blocked.isEmpty)
    }

    @Test func newTokensResumeAtOnceFiveTimesUntilSomethingIsAccepted() {
        var lanes = Lanes()
        let ada = UserKey("ada")
        var generation = 0
        func resumptions(_ count: Int) -> [Bool] {
            (0..<count).map { _ in
                generation += 1
                lanes.change(ada) { $0.tokenRefused(generation) }
                return lanes.tokenChanged(for: ada, generation: generation, now: 0)
            }
        }
        #expect(resumptions(6) == [true, true, true, true, true, false])
        lanes.accepted(ada)
        #expect(resumptions(2) == [true, true])
    }

    @Test func onlyATokenOfTheProviderEndsItsFailures() {
        var lanes = Lanes()
        let ada = UserKey("ada")
        lanes.change(ada) { [retry, problem] in
            $0.parkForProvider(problem, retry: retry, serverDelay: nil, now: 0, fraction: 1)
        }
        lanes.authorized(ada, generation: 1, provided: false)
        #expect(lanes[ada]?.providerFailures == 1)
        lanes.authorized(ada, generation: 1, provided: true)
        #expect(lanes[ada]?.providerFailures == 0)
    }

    @Test func ofTheLastTwoTheSecondIsTriedUnlessTheServerSaysWhoIsRefused() {
        let events = [event(1), event(2)]
        for (cause, expected) in [(Isolation.Cause.serverFault, 1), (.tooLarge, 1), (.refused, 0)] {
            #expect(Isolation(cause: cause, suspects: events).probe == [events[expected]])
        }
    }
}
