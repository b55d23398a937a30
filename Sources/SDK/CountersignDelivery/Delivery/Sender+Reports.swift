internal import CountersignTransport
internal import Foundation

extension Sender {
    // MARK: The queue

    mutating func claimed(_ events: [QueuedEvent], now: TimeInterval) {
        if !events.isEmpty {
            current = UserBatch(events: events)
        } else if let suspect = poisonEvents.suspects.first(where: { canTry($0) && $0.retryAt <= now }) {
            // No other event can be sent to show whether the server works, so send the suspect.
            current = UserBatch(events: [suspect.event])
        } else {
            round?.nothingWasClaimed(
                awaitsTokens: users.awaitTokens, hasSuspects: !poisonEvents.suspects.isEmpty)
        }
    }

    /// Also called if the lease could not be renewed.
    mutating func claimFailed(_ problem: ServerAnswer.Explanation, now: TimeInterval, fraction: Double) {
        backOff(problem, serverDelay: nil, now: now, fraction: fraction)
    }

    mutating func leased(until instant: TimeInterval) {
        current = nil
        breaker.wait(until: instant)
        round?.end(.otherProcessIsSending)
    }

    mutating func applied() { pendingOutcome.applied() }

    /// Retries storing the outcome before the next request. Otherwise delivered events would be sent again.
    mutating func applyFailed(_ problem: ServerAnswer.Explanation, now: TimeInterval, fraction: Double) {
        pendingOutcome.failed(settings.networkRetry, now: now, fraction: fraction)
        lastProblem = problem
    }

    // MARK: Tokens

    mutating func authorized(generation: Int) {
        guard let user = current?.user else { return }
        current?.authorize(generation)
        users.authorized(user, generation: generation, provided: true)
    }

    /// The source fetches a token and later reports `tokenResolved`. Other users' events are sent meanwhile.
    mutating func authorizationPending() {
        guard let current else { return }
        users.change(current.user) { $0.tokenPending() }
        setAside()
    }

    /// Sends the batch with the user's last token or without one, because the server may not require tokens. If the
    /// server has rejected that token, the user's events wait first. `generation` is the last token's generation, 0 for
    /// no token, or nil if requests need a token.
    mutating func authorizationFailed(
        _ problem: ServerAnswer.Explanation, generation: Int?, now: TimeInterval, fraction: Double
    ) -> Consequence? {
        guard let current else { return nil }
        guard let generation, users[current.user]?.mustNotResend(generation) != true else {
            parkForProvider(current, problem, serverDelay: nil, now: now, fraction: fraction)
            return Consequence(batch: current.result(.tokenProblem, problem.code))
        }
        users.authorized(current.user, generation: generation, provided: false)
        self.current?.authorize(generation, providerProblem: problem)
        return nil
    }

    /// There is no credential before `instant` or, if it is nil, before the app sets one.
    mutating func authorizationDeferred(
        _ problem: ServerAnswer.Explanation, until instant: TimeInterval?
    ) -> Consequence? {
        guard let current else { return nil }
        users.change(current.user) { $0.hold(until: instant, problem) }
        setAside(problem)
        return Consequence(batch: current.result(.tokenProblem, problem.code))
    }

    // MARK: Requests

    mutating func failed(
        _ error: HTTPTransportError, now: TimeInterval, fraction: Double
    ) -> Consequence? {
        guard let current else { return nil }
        let problem = ServerAnswer.Explanation(error.code.rawValue, error.detail)
        if error.code == .notPermitted {
            // The system or the app's settings forbid the request. Wait long, because no proxy can be the cause.
            stop(
                problem, serverDelay: settings.networkRetry.maximumServerDelay, now: now, fraction: fraction)
            return Consequence(batch: current.result(.configurationProblem, problem.code))
        }
        backOff(problem, serverDelay: nil, now: now, fraction: fraction)
        return Consequence(batch: current.result(.retryLater, problem.code))
    }

    mutating func answered(
        _ answer: ServerAnswer, now: TimeInterval, fraction: Double
    ) -> Consequence? {
        guard let current else { return nil }
        switch answer.meaning {
        case .accepted(let duplicates, let rejected, let warning):
            return accept(
                current, duplicates: duplicates, rejected: rejected, warning: warning, now: now,
                fraction: fraction)
        case .tokenProblem(let verdict):
            return rejectToken(
                current, verdict: verdict, retryAfter: answer.retryAfter, now: now, fraction: fraction)
        case .tooLarge:
            batchSize.narrow(current.events)
            return narrow(
                current, .tooLarge, .init("too_large", "the server rejects requests of this size"),
                retryAfter: answer.retryAfter, now: now, fraction: fraction)
        case .rejected(let problem):
            return narrow(
                current, .rejected, problem, retryAfter: answer.retryAfter, now: now, fraction: fraction)
        case .serverFault(let problem), .notUnderstood(let problem):
            let consequence = narrow(current, .serverFault, problem, now: now, fraction: fraction)
            if pendingOutcome.outcome == nil {
                backOff(problem, serverDelay: answer.retryAfter, now: now, fraction: fraction)
            }
            return consequence
        case .configurationProblem(let problem):
            stop(problem, serverDelay: answer.retryAfter, now: now, fraction: fraction)
            return Consequence(batch: current.result(.configurationProblem, problem.code))
        case .tryLater(let problem):
            backOff(problem, serverDelay: answer.retryAfter, now: now, fraction: fraction)
            return Consequence(batch: current.result(.retryLater, problem.code))
        case .userRestricted(let problem):
            let delay = settings.configurationRetry.delay(
                afterFailure: answer.retryAfter == nil ? .max : 1, serverDelay: answer.retryAfter,
                fraction: fraction)
            users.change(current.user) { $0.hold(until: now + delay, problem) }
            setAside(problem)
            return Consequence(batch: current.result(.retryLater, problem.code))
        }
    }

    /// Waits for the server's `Retry-After` if there is one (RFC 9110, section 15.5.14).
    private mutating func narrow(
        _ batch: UserBatch, _ cause: BatchBisection.Cause, _ problem: ServerAnswer.Explanation,
        retryAfter: TimeInterval?, now: TimeInterval, fraction: Double
    ) -> Consequence {
        let consequence = narrow(batch, cause, problem, now: now, fraction: fraction)
        if let retryAfter, pendingOutcome.outcome == nil {
            backOff(problem, serverDelay: retryAfter, now: now, fraction: fraction)
        }
        return consequence
    }

    private mutating func backOff(
        _ problem: ServerAnswer.Explanation, serverDelay: TimeInterval?, now: TimeInterval, fraction: Double
    ) {
        breaker.backOff(settings.networkRetry, serverDelay: serverDelay, now: now, fraction: fraction)
        lastProblem = problem
        current = nil
        round?.end(.interrupted)
    }

    mutating func stop(
        _ problem: ServerAnswer.Explanation, serverDelay: TimeInterval?, now: TimeInterval, fraction: Double
    ) {
        breaker.stop(
            problem, settings.configurationRetry, serverDelay: serverDelay,
            longest: settings.networkRetry.maximumServerDelay, now: now, fraction: fraction)
        setAside(problem)
        round?.end(.configurationProblem)
    }

    mutating func setAside(_ problem: ServerAnswer.Explanation? = nil) {
        if let problem { lastProblem = problem }
        poisonEvents.endSearch()
        current = nil
    }
}
