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
        #expect(round.ending == .drained, "the next round reads the new events")
    }

    @Test func onlyAFlushWaitsForTheProviderAndAtMostItsTimeLimit() {
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

    @Test func aRoundEndsWithTheLastProviderCall() {
        var round = Round()
        round.flush(patience: nil)
        round.claimBegan()
        round.nothingWasClaimed(awaitsTokens: true, hasSuspects: false)
        #expect(round.idle(at: 0, awaitsTokens: true, next: nil) == .infinity)
        #expect(round.idle(at: 0, awaitsTokens: false, next: nil) == nil)
        #expect(round.ending == .drained)
    }

    @Test func theBackoffGrowsAndItsReasonStaysUntilAResume() {
        var pause = CircuitBreaker()
        for expected in [2.0, 4, 8] {
            pause.backOff(retry, serverDelay: nil, now: 0, fraction: 1)
            #expect(pause.end == expected)
        }
        pause.stop(problem, retry, serverDelay: nil, longest: 1, now: 0, fraction: 1)
        #expect(pause.end == 1)
        pause.lapse()
        #expect(pause.end == nil)
        #expect(pause.configurationProblem == problem)
        pause.resume()
        #expect(pause.configurationProblem == nil)
        #expect(pause.failures == 3, "resuming does not reset the failure count")
    }

    @Test func aBacklogIsDueAtItsEventCountOrInterval() {
        let policy = FlushPolicy(eventCount: 3, interval: 10, onBackground: false)
        let odd = FlushPolicy(eventCount: 0, interval: .nan, onBackground: false)
        var backlog = Backlog()
        #expect(backlog.dueAt(policy) == nil && !backlog.isFull(odd))
        backlog.stored(2, now: 5)
        backlog.stored(0, now: 6)
        #expect(!backlog.isFull(policy))
        #expect(backlog.dueAt(policy) == 15 && backlog.dueAt(odd) == 5)
        backlog.stored(1, now: 9)
        #expect(backlog.isFull(policy))
        backlog.claimBegan()
        #expect(backlog.dueAt(policy) == nil)
    }

    @Test func aFailedOutcomeIsRetriedWithGrowingPausesUntilItIsApplied() {
        let outcome = DeliveryOutcome(delivered: [event(1)])
        var pending = PendingOutcome()
        pending.apply(outcome)
        pending.failed(retry, now: 0, fraction: 1)
        #expect(pending.outcome == outcome && pending.retryAt == 2)
        pending.failed(retry, now: 2, fraction: 1)
        #expect(pending.outcome == outcome && pending.retryAt == 6)
        pending.applied()
        pending.failed(retry, now: 2, fraction: 1)
        #expect(pending.outcome == nil)
    }

    @Test func batchesAreHalvedAndOneEventIsNot() {
        var size = BatchSize()
        #expect((size.events(100), size.bytes(400)) == (100, 400))
        size.narrow([event(1, bytes: 30), event(2, bytes: 50), event(3, bytes: 20)])
        #expect((size.events(100), size.bytes(400)) == (1, 50))
        size.configured(events: 7)
        #expect((size.events(7), size.bytes(400)) == (7, 50))
        size.narrow([event(1)])
        #expect((size.events(7), size.bytes(400)) == (7, 50))
        size.widen()
        #expect((size.events(100), size.bytes(400)) == (100, 400))
    }

    @Test func aUserPausesUntilANewTokenOnlyWithoutAProvider() {
        for pauses in [true, false] {
            var backoff = UserBackoff()
            backoff.tokenRejected(1)
            backoff.park(problem, retry: retry, pauses: pauses, serverDelay: nil, now: 0, fraction: 1)
            #expect(backoff.state == .waiting(until: 2))
            #expect(backoff.mustNotResend(1))
            backoff.lapse(at: 2)
            #expect(backoff.state == .open)
            #expect(!backoff.mustNotResend(1))
            backoff.park(problem, retry: retry, pauses: pauses, serverDelay: nil, now: 2, fraction: 1)
            #expect(backoff.state == (pauses ? .paused : .waiting(until: 3_602)))
            backoff.lapse(at: 4_000)
            #expect(backoff.isPaused == pauses)
            backoff.unblock()
            #expect(backoff.state == .open)
            #expect(backoff.failures == 2)
        }
    }

    @Test func aUsersBackoffContinuesWhenTheProviderReturns() {
        var backoffs = UserBackoffs()
        let ada = UserKey("ada")
        backoffs.change(ada) { $0.hold(until: 5, problem) }
        backoffs.change(ada) { $0.tokenPending() }
        #expect(backoffs.awaitTokens)
        let wasAsked = (0..<2).map { _ in backoffs.tokenResolved(for: ada) }
        #expect(wasAsked == [true, false])
        #expect(backoffs[ada]?.state == .waiting(until: 5))
        backoffs.lapse(at: 5)
        #expect(backoffs.blocked.isEmpty)
    }

    @Test func newTokensResumeAtOnceFiveTimesUntilSomethingIsAccepted() {
        var backoffs = UserBackoffs()
        let ada = UserKey("ada")
        var generation = 0
        func resumptions(_ count: Int) -> [Bool] {
            (0..<count).map { _ in
                generation += 1
                backoffs.change(ada) { $0.tokenRejected(generation) }
                return backoffs.tokenChanged(for: ada, generation: generation, now: 0)
            }
        }
        #expect(resumptions(6) == [true, true, true, true, true, false])
        #expect(resumptions(100).allSatisfy { !$0 })
        #expect(backoffs[ada]?.blockedUntil == 60, "more tokens do not extend the wait")
        backoffs.accepted(ada)
        #expect(resumptions(2) == [true, true])
    }

    @Test func onlyATokenOfTheProviderEndsItsFailures() {
        var backoffs = UserBackoffs()
        let ada = UserKey("ada")
        backoffs.change(ada) { [retry, problem] in
            $0.parkForProvider(problem, retry: retry, serverDelay: nil, now: 0, fraction: 1)
        }
        backoffs.authorized(ada, generation: 1, provided: false)
        #expect(backoffs[ada]?.providerFailures == 1)
        backoffs.authorized(ada, generation: 1, provided: true)
        #expect(backoffs[ada]?.providerFailures == 0)
    }

    @Test func ofTwoSuspectEventsTheSecondIsProbedExceptAfterARejection() {
        let events = [event(1), event(2)]
        for (cause, expected) in [(BatchBisection.Cause.serverFault, 1), (.tooLarge, 1), (.rejected, 0)] {
            #expect(BatchBisection(cause: cause, suspects: events).probe == [events[expected]])
        }
    }
}
