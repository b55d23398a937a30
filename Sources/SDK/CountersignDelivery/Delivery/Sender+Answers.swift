internal import Foundation

/// Applies a response to the events of its request.
extension Sender {
    mutating func accept(
        _ parcel: Parcel, duplicates: Int, rejected: [ServerAnswer.Rejection],
        warning: ServerAnswer.TokenVerdict?, now: TimeInterval, fraction: Double
    ) -> Consequence {
        let reasons = Dictionary(rejected.map { ($0.index, $0.explanation) }) { first, _ in first }
        if reasons.count == parcel.events.count {
            return refuseAll(parcel, reasons, now: now, fraction: fraction)
        }
        var settlement = Settlement(duplicates: duplicates)
        for (index, event) in parcel.events.enumerated() {
            if let reason = reasons[index] {
                settlement.quarantined.append((event, .init(code: reason.code, reason: reason.reason)))
            } else {
                settlement.delivered.append(event)
            }
        }
        settling.settle(settlement)
        suspicion.accepted(parcel.events, now: now)
        users.accepted(parcel.user)
        pause = Pause()
        current = nil
        lastProblem = nil
        return Consequence(
            batch: parcel.result(.delivered, "", delivered: parcel.events.count - rejected.count),
            failure: warning, isOptional: warning != nil)
    }

    /// The server has refused one by one all events of a request: no event was accepted, so each is only suspected.
    private mutating func refuseAll(
        _ parcel: Parcel, _ reasons: [Int: ServerAnswer.Explanation], now: TimeInterval, fraction: Double
    ) -> Consequence {
        var condemned: [(event: QueuedEvent, verdict: Settlement.Verdict)] = []
        setAside()
        for (index, event) in parcel.events.enumerated() {
            let reason = reasons[index] ?? .init("refused", "")
            lastProblem = reason
            condemned += suspect(event, .refused, reason, now: now, fraction: fraction)
        }
        return conclude(parcel, condemned, now: now, fraction: fraction)
    }

    /// Goes on in smaller parts until one event is found that cannot be delivered.
    mutating func narrow(
        _ parcel: Parcel, _ cause: Isolation.Cause, _ problem: ServerAnswer.Explanation,
        now: TimeInterval, fraction: Double
    ) -> Consequence {
        current = nil
        lastProblem = problem
        guard let event = suspicion.narrow(parcel.events, cause, now: now) else {
            return Consequence(
                batch: parcel.result(cause == .serverFault ? .retryLater : .refused, problem.code))
        }
        if cause == .tooLarge { batchSize.widen() }
        return conclude(
            parcel, suspect(event, cause, problem, now: now, fraction: fraction), now: now,
            fraction: fraction)
    }

    /// Returns the event with its verdict if it is to be set aside, or nothing.
    private mutating func suspect(
        _ event: QueuedEvent, _ cause: Isolation.Cause, _ problem: ServerAnswer.Explanation,
        now: TimeInterval, fraction: Double
    ) -> [(event: QueuedEvent, verdict: Settlement.Verdict)] {
        let isCondemned = suspicion.failedAlone(
            event, cause, settings.networkRetry, now: now, fraction: fraction)
        return isCondemned ? [(event, .init(code: problem.code, reason: problem.reason))] : []
    }

    private mutating func conclude(
        _ parcel: Parcel, _ condemned: [(event: QueuedEvent, verdict: Settlement.Verdict)],
        now: TimeInterval, fraction: Double
    ) -> Consequence {
        let problem = lastProblem ?? .init("refused", "")
        if !condemned.isEmpty {
            settling.settle(Settlement(quarantined: condemned))
            return Consequence(batch: parcel.result(.quarantined, problem.code))
        }
        let isFault = suspicion.isFault
        if !isFault, suspicion.isOfEverything {
            // With one event per request, the events after several rejected ones were never tried. A batch
            // would have contained valid events too.
            let serverDelay = settings.batchEvents == 1 ? nil : settings.networkRetry.maximumServerDelay
            stop(
                .init(problem.code, "the server refuses every event: \(problem.reason)"),
                serverDelay: serverDelay, now: now, fraction: fraction)
        }
        return Consequence(batch: parcel.result(isFault ? .retryLater : .refused, problem.code))
    }

    mutating func refuseToken(
        _ parcel: Parcel, verdict: ServerAnswer.TokenVerdict, retryAfter: TimeInterval?,
        now: TimeInterval, fraction: Double
    ) -> Consequence {
        let result = parcel.result(.tokenProblem, verdict.reason)
        if users.isOutdated(parcel.generation, of: parcel.user) {
            // A late answer about a token that has been replaced since says nothing about the new one.
            setAside()
            return Consequence(batch: result)
        }
        users.change(parcel.user) { $0.tokenRefused(parcel.generation) }
        if let problem = parcel.providerProblem {
            parkForProvider(parcel, problem, serverDelay: retryAfter, now: now, fraction: fraction)
            return Consequence(batch: result, failure: verdict)
        }
        let problem = ServerAnswer.Explanation(verdict.reason, "the server refused the token")
        if settings.hasTokenProvider, users[parcel.user]?.failures == 0 {
            // A server that always says 401 must not loop us.
            users.change(parcel.user) { $0.replaceToken(problem) }
            setAside()
        } else {
            let settings = settings
            users.change(parcel.user) {
                // A provider's tokens change on their own, and a process without sessions would never ask for another.
                $0.park(
                    problem, retry: settings.authenticationRetry, pauses: !settings.hasTokenProvider,
                    serverDelay: retryAfter, now: now, fraction: fraction)
            }
            setAside(problem)
        }
        return Consequence(batch: result, failure: verdict)
    }

    mutating func parkForProvider(
        _ parcel: Parcel, _ problem: ServerAnswer.Explanation, serverDelay: TimeInterval?,
        now: TimeInterval, fraction: Double
    ) {
        let retry = settings.networkRetry
        users.change(parcel.user) {
            $0.parkForProvider(problem, retry: retry, serverDelay: serverDelay, now: now, fraction: fraction)
        }
        setAside(problem)
    }
}
