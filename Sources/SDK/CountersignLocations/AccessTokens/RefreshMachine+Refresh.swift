internal import Foundation

extension RefreshMachine {
    mutating func begin(uptime: TimeInterval) -> Action {
        obstacle.clear()
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
    mutating func locked(stored: TokenPair?, at reading: ClockReading) -> Action {
        guard isUpToDate, let current = credential else { return finish() }
        if token.isOnDisk, stored != current {
            guard let stored else {
                // Another process has logged the user out.
                removeTokens()
                return finish()
            }
            serverClock = ServerClock(offset: stored.clockOffset)
            take(stored, at: reading)
            obstacle.resetCounts()
            return finish()
        }
        guard let refreshToken = current.refreshToken else { return finish() }
        if !token.hasLived(at: reading.uptime) { rate.refreshed(at: reading.uptime) }
        state = .refreshing(generation: generation, base: stored)
        return .send(accessToken: current.accessToken, refreshToken: refreshToken)
    }

    /// False if the app has replaced or deleted the credentials since the refresh began.
    private var isUpToDate: Bool {
        if case .refreshing(generation, _) = state { true } else { false }
    }

    /// The stored pair when this process took the lock.
    var base: TokenPair? {
        switch state {
        case .refreshing(_, let base), .outdated(let base): base
        case .resting: nil
        }
    }

    /// Handles credentials that another process has replaced or deleted during the refresh.
    mutating func superseded(by stored: TokenPair?, at reading: ClockReading) -> Action {
        if isUpToDate { reloaded(stored, at: reading) }
        return finish()
    }

    mutating func reloaded(_ stored: TokenPair?, at reading: ClockReading) {
        guard let stored else { return removeTokens() }
        unsaved = nil
        take(stored, isOnDisk: true, at: reading)
    }

    mutating func notLocked(_ problem: ServerAnswer.Explanation, at reading: ClockReading) -> Action {
        wait(problem, at: reading)
        return finish()
    }

    mutating func answered(_ answer: RefreshAnswer, at reading: ClockReading) -> Action {
        let (now, uptime) = (reading.now, reading.uptime)
        if let serverTime = answer.serverTime { noteServerTime(serverTime, now: now, uptime: uptime) }
        guard isUpToDate, let current = credential else { return finish() }
        switch answer.meaning {
        case .granted(let grant):
            let clockOffset = serverClock.offset(now: now, uptime: uptime)
            let next = current.rotated(
                to: grant, at: answer.serverTime ?? now + clockOffset, clockOffset: clockOffset)
            (unsaved, unsavedBase) = (next, base)
            return .save(next)
        case .invalid(let problem):
            if let invalid = token.invalidate(problem.code) { return .save(invalid) }
        case .rejected(let problem):
            let isFinal = obstacle.rejections.add(
                at: uptime, count: policy.maximumRejections, span: policy.rejectionSpan)
            if isFinal, let invalid = token.invalidate(problem.code) { return .save(invalid) }
            wait(problem, serverDelay: answer.retryAfter, at: reading)
        case .unusable(let problem):
            let isTooMuch = obstacle.unusableAnswers.add(
                at: uptime, count: policy.maximumUnusableAnswers, span: policy.unusableSpan)
            if isTooMuch {
                obstacle.unusableAnswers = .init()
                suspend(problem, uptime: uptime)
            } else {
                wait(problem, serverDelay: answer.retryAfter, at: reading)
            }
        case .transient(let problem):
            wait(
                problem, mayBeExchanged: answer.mayBeExchanged, serverDelay: answer.retryAfter, at: reading)
        }
        return finish()
    }

    mutating func saved(_ failure: ServerAnswer.Explanation?, at reading: ClockReading) -> Action {
        guard isUpToDate, let next = unsaved else { return finish() }
        if let failure {
            // The pair is not used before it is on disk. The next attempt saves it first.
            wait(failure, at: reading)
            return finish()
        }
        unsaved = nil
        obstacle.resetCounts()
        take(next, lifetime: next.lifetime, isOnDisk: true, at: reading)
        token.isFromRefresh = true
        return finish()
    }

    private mutating func finish() -> Action {
        state = .resting
        return .finish
    }

    private mutating func wait(
        _ problem: ServerAnswer.Explanation, mayBeExchanged: Bool = false,
        serverDelay: TimeInterval? = nil, at reading: ClockReading
    ) {
        obstacle.wait(
            problem, retry: mayBeExchanged ? policy.retryWhenLost : policy.retry, serverDelay: serverDelay,
            at: reading)
    }
}

extension RefreshMachine {
    func authorizationState(uptime: TimeInterval) -> AuthorizationState {
        guard let credential else {
            return AuthorizationState(kind: .noCredential, reason: nil, retryIn: nil)
        }
        if let code = credential.deathCode {
            return AuthorizationState(kind: .reauthenticationRequired, reason: code, retryIn: nil)
        }
        guard let wait = obstacle.wait else {
            return AuthorizationState(kind: .ready, reason: nil, retryIn: nil)
        }
        return AuthorizationState(
            kind: wait.isSuspended ? .suspended : .waiting,
            reason: "\(wait.problem.code): \(wait.problem.reason)", retryIn: max(0, wait.until - uptime))
    }
}
