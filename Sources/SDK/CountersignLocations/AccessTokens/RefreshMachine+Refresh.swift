internal import Foundation

extension RefreshMachine {
    mutating func begin(uptime: TimeInterval) -> Action {
        obstacle.pass()
        state = .refreshing(generation: generation, base: unsavedBase)
        if let unsaved { return .save(unsaved) }
        let count = rate.count(at: uptime, window: policy.window)
        if !token.hasLived(at: uptime), count >= policy.windowCount {
            suspend(
                .init("too_many_refreshes", "\(count) refreshes in \(Int(policy.window)) s"), uptime: uptime)
            return finish()
        }
        return .lock
    }

    /// This process has the lock. `stored` is the stored pair, which another process may have refreshed.
    mutating func locked(
        stored: TokenPair?, now: Date, uptime: TimeInterval, fraction: Double
    ) -> Action {
        guard isUpToDate, let current = credential else { return finish() }
        if token.isOnDisk, stored != current {
            guard let stored else {
                // Another process has logged the user out.
                forget()
                return finish()
            }
            serverClock = ServerClock(offset: stored.clockOffset)
            take(stored, lifetime: stored.remaining(now: now), uptime: uptime, fraction: fraction)
            obstacle.forgive()
            return finish()
        }
        guard let refreshToken = current.refreshToken else { return finish() }
        if !token.hasLived(at: uptime) { rate.refreshed(at: uptime) }
        state = .refreshing(generation: generation, base: stored)
        return .send(accessToken: current.accessToken, refreshToken: refreshToken)
    }

    /// False if the app has replaced or deleted the credentials since the refresh began.
    private var isUpToDate: Bool {
        if case .refreshing(generation, _) = state { true } else { false }
    }

    /// The stored pair when the refresh began.
    var base: TokenPair? {
        switch state {
        case .refreshing(_, let base), .outdated(let base): base
        case .resting: nil
        }
    }

    /// Handles credentials that another process has replaced or deleted during the refresh.
    mutating func superseded(
        by stored: TokenPair?, now: Date, uptime: TimeInterval, fraction: Double
    ) -> Action {
        if isUpToDate { reloaded(stored, now: now, uptime: uptime, fraction: fraction) }
        return finish()
    }

    mutating func reloaded(_ stored: TokenPair?, now: Date, uptime: TimeInterval, fraction: Double) {
        guard let stored else { return forget() }
        unsaved = nil
        take(
            stored, lifetime: stored.remaining(now: now), isOnDisk: true, uptime: uptime, fraction: fraction)
    }

    mutating func notLocked(_ problem: ServerAnswer.Explanation, uptime: TimeInterval, fraction: Double)
        -> Action
    {
        wait(problem, serverDelay: nil, uptime: uptime, fraction: fraction)
        return finish()
    }

    mutating func answered(
        _ answer: RefreshAnswer, now: Date, uptime: TimeInterval, fraction: Double
    ) -> Action {
        if let serverTime = answer.serverTime { noteServerTime(serverTime, now: now, uptime: uptime) }
        guard isUpToDate, let current = credential else { return finish() }
        switch answer.meaning {
        case .granted(let grant):
            let clockOffset = serverClock.offset(now: now, uptime: uptime)
            let next = current.rotated(
                to: grant, at: answer.serverTime ?? now + clockOffset, clockOffset: clockOffset)
            (unsaved, unsavedBase) = (next, base)
            return .save(next)
        case .dead(let problem):
            if let dead = token.die(problem.code) { return .save(dead) }
        case .refused(let problem):
            let isFinal = obstacle.isRejectedForGood(
                at: uptime, count: policy.maximumRejections, span: policy.rejectionSpan)
            if isFinal, let dead = token.die(problem.code) { return .save(dead) }
            wait(problem, serverDelay: answer.retryAfter, uptime: uptime, fraction: fraction)
        case .unusable(let problem):
            let isTooMuch = obstacle.isUnusable(
                at: uptime, count: policy.maximumUnusableAnswers, span: policy.unusableSpan)
            if isTooMuch {
                suspend(problem, uptime: uptime)
            } else {
                wait(problem, serverDelay: answer.retryAfter, uptime: uptime, fraction: fraction)
            }
        case .transient(let problem):
            wait(
                problem, mayBeExchanged: answer.mayBeExchanged, serverDelay: answer.retryAfter,
                uptime: uptime,
                fraction: fraction)
        }
        return finish()
    }

    mutating func saved(
        _ failure: ServerAnswer.Explanation?, uptime: TimeInterval, fraction: Double
    ) -> Action {
        guard isUpToDate, let next = unsaved else { return finish() }
        if let failure {
            // The pair is not used before it is on disk. The next attempt saves it first.
            wait(failure, serverDelay: nil, uptime: uptime, fraction: fraction)
            return finish()
        }
        unsaved = nil
        obstacle.forgive()
        take(next, lifetime: next.lifetime, isOnDisk: true, uptime: uptime, fraction: fraction)
        token.isRefreshed()
        return finish()
    }

    private mutating func finish() -> Action {
        state = .resting
        return .finish
    }

    private mutating func wait(
        _ problem: ServerAnswer.Explanation, mayBeExchanged: Bool = false, serverDelay: TimeInterval?,
        uptime: TimeInterval, fraction: Double
    ) {
        obstacle.wait(
            problem, retry: mayBeExchanged ? policy.retryWhenLost : policy.retry, serverDelay: serverDelay,
            uptime: uptime, fraction: fraction)
    }
}

extension RefreshMachine {
    func authorizationState(uptime: TimeInterval) -> AuthorizationState {
        func reason(_ problem: ServerAnswer.Explanation) -> String { "\(problem.code): \(problem.reason)" }
        guard let credential else {
            return AuthorizationState(kind: .noCredential, reason: nil, retryIn: nil)
        }
        if let code = credential.deathCode {
            return AuthorizationState(kind: .reauthenticationRequired, reason: code, retryIn: nil)
        }
        switch obstacle.state {
        case .waiting(let instant, let problem):
            return AuthorizationState(
                kind: .waiting, reason: reason(problem), retryIn: max(0, instant - uptime))
        case .suspended(let instant, let problem):
            return AuthorizationState(
                kind: .suspended, reason: reason(problem), retryIn: max(0, instant - uptime))
        case .none: return AuthorizationState(kind: .ready, reason: nil, retryIn: nil)
        }
    }
}
