internal import Foundation

extension Sender {
    mutating func accept(
        _ batch: UserBatch, duplicates: Int, rejected: [ServerAnswer.Rejection],
        warning: ServerAnswer.TokenVerdict?, now: TimeInterval, fraction: Double
    ) -> Consequence {
        let reasons = Dictionary(rejected.map { ($0.index, $0.explanation) }) { first, _ in first }
        if reasons.count == batch.events.count {
            return rejectAll(batch, reasons, now: now, fraction: fraction)
        }
        var outcome = DeliveryOutcome(duplicates: duplicates)
        for (index, event) in batch.events.enumerated() {
            if let reason = reasons[index] {
                outcome.quarantined.append(.init(event: event, reason: reason))
            } else {
                outcome.delivered.append(event)
            }
        }
        pendingOutcome.apply(outcome)
        poisonEvents.accepted(batch.events, now: now)
        users.accepted(batch.user)
        breaker = CircuitBreaker()
        current = nil
        lastProblem = nil
        return Consequence(
            batch: batch.result(.delivered, "", delivered: batch.events.count - rejected.count),
            failure: warning, isOptional: warning != nil)
    }

    /// The cause may be the server's settings, so the events become suspects and stay in the queue.
    private mutating func rejectAll(
        _ batch: UserBatch, _ reasons: [Int: ServerAnswer.Explanation], now: TimeInterval, fraction: Double
    ) -> Consequence {
        var confirmed: [DeliveryOutcome.Rejected] = []
        setAside()
        for (index, event) in batch.events.enumerated() {
            let reason = reasons[index] ?? .init("refused", "")
            lastProblem = reason
            confirmed += suspect(event, .rejected, reason, now: now, fraction: fraction)
        }
        return conclude(batch, confirmed, now: now, fraction: fraction)
    }

    mutating func narrow(
        _ batch: UserBatch, _ cause: BatchBisection.Cause, _ problem: ServerAnswer.Explanation,
        now: TimeInterval, fraction: Double
    ) -> Consequence {
        current = nil
        lastProblem = problem
        guard let event = poisonEvents.narrow(batch.events, cause, now: now) else {
            return Consequence(
                batch: batch.result(cause == .serverFault ? .retryLater : .refused, problem.code))
        }
        if cause == .tooLarge { batchSize.widen() }
        return conclude(
            batch, suspect(event, cause, problem, now: now, fraction: fraction), now: now,
            fraction: fraction)
    }

    /// Returns the event if it must be moved to quarantine, otherwise nothing.
    private mutating func suspect(
        _ event: QueuedEvent, _ cause: BatchBisection.Cause, _ problem: ServerAnswer.Explanation,
        now: TimeInterval, fraction: Double
    ) -> [DeliveryOutcome.Rejected] {
        let isConfirmed = poisonEvents.failedAlone(
            event, cause, settings.networkRetry, now: now, fraction: fraction)
        return isConfirmed ? [.init(event: event, reason: problem)] : []
    }

    private mutating func conclude(
        _ batch: UserBatch, _ confirmed: [DeliveryOutcome.Rejected], now: TimeInterval, fraction: Double
    ) -> Consequence {
        let problem = lastProblem ?? .init("refused", "")
        if !confirmed.isEmpty {
            pendingOutcome.apply(DeliveryOutcome(quarantined: confirmed))
            return Consequence(batch: batch.result(.quarantined, problem.code))
        }
        let isFault = poisonEvents.isFault
        if !isFault, poisonEvents.isOfEverything {
            // With one event per request, other events were not sent yet and may be valid, so use a shorter delay.
            let serverDelay = settings.batchEvents == 1 ? nil : settings.networkRetry.maximumServerDelay
            stop(
                .init(problem.code, "the server rejects every event: \(problem.reason)"),
                serverDelay: serverDelay, now: now, fraction: fraction)
        }
        return Consequence(batch: batch.result(isFault ? .retryLater : .refused, problem.code))
    }

    mutating func rejectToken(
        _ batch: UserBatch, verdict: ServerAnswer.TokenVerdict, retryAfter: TimeInterval?,
        now: TimeInterval, fraction: Double
    ) -> Consequence {
        let result = batch.result(.tokenProblem, verdict.reason)
        if users.isOutdated(batch.generation, of: batch.user) {
            // A late response about a replaced token says nothing about the new token.
            setAside()
            return Consequence(batch: result)
        }
        users.change(batch.user) { $0.tokenRejected(batch.generation) }
        if let problem = batch.providerProblem {
            parkForProvider(batch, problem, serverDelay: retryAfter, now: now, fraction: fraction)
            return Consequence(batch: result, failure: verdict)
        }
        let problem = ServerAnswer.Explanation(verdict.reason, "the server rejected the token")
        if settings.hasTokenProvider, users[batch.user]?.failures == 0 {
            // Only the first rejection has no wait. Otherwise a server that always replies 401 would cause a busy loop.
            users.change(batch.user) { $0.replaceToken(problem) }
            setAside()
        } else {
            let settings = settings
            users.change(batch.user) {
                // With a provider, do not pause: during a pause, the provider is not called for another token.
                $0.park(
                    problem, retry: settings.authenticationRetry, pauses: !settings.hasTokenProvider,
                    serverDelay: retryAfter, now: now, fraction: fraction)
            }
            setAside(problem)
        }
        return Consequence(batch: result, failure: verdict)
    }

    mutating func parkForProvider(
        _ batch: UserBatch, _ problem: ServerAnswer.Explanation, serverDelay: TimeInterval?,
        now: TimeInterval, fraction: Double
    ) {
        let retry = settings.networkRetry
        users.change(batch.user) {
            $0.parkForProvider(problem, retry: retry, serverDelay: serverDelay, now: now, fraction: fraction)
        }
        setAside(problem)
    }
}
