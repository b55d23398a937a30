internal import CountersignCore
internal import Foundation

/// Decides when an access token is refreshed, what an answer means, and when to stop: a state machine without I/O, clock
/// or randomness.
///
/// `AccessTokens` drives it: `demand` says whether a request may go. A refresh goes through `begin`, `locked`, `answered`
/// and `saved`, each of which says what to do next. Instants are seconds of `ClientClock.uptime`; `now` is the device clock.
struct RefreshMachine {
    struct Policy {
        /// A token is refreshed this many seconds before it expires, or the share of its lifetime below, whichever is
        /// less; and up to half of that earlier at random, so that devices do not come all at once. Of what would be less
        /// than a second, nothing is left: servers count whole seconds.
        var leeway: TimeInterval = 60
        var leewayShare = 0.04
        /// This many refreshes in so many seconds that no expiry explains are too many.
        var windowCount = 5
        var window: TimeInterval = 30
        /// Fresh tokens in a row that were refused.
        var maximumRefusedTokens = 2
        /// Answers in a row that were no token and promise no better.
        var maximumUnusableAnswers = 3
        /// Seconds until one more try after any of these.
        var suspension: TimeInterval = 3_600
        var retry = RetryPolicy(baseDelay: 2, maximumDelay: 300)
        /// The same after an exchange whose answer was lost: servers give it again for a minute, and a request may take
        /// `AccessTokens.longestExchange` of that.
        var retryWhenLost = RetryPolicy(baseDelay: 2, maximumDelay: 30)
    }

    enum Demand: Equatable {
        /// Send with the token of this generation.
        case use(generation: Int)
        /// Refresh first, or wait for the refresh that is under way.
        case refresh
        /// Do not send; asking again before `retryAt` is useless, and if that is nil, before there are new credentials.
        case unavailable(ServerAnswer.Explanation, retryAt: TimeInterval?)
    }

    enum Action: Equatable {
        /// Take the lock and read the store; then `locked` or `notLocked`.
        case lock
        /// Ask the server; then `answered`.
        case send(accessToken: String?, refreshToken: String)
        /// Make this durable; then `saved`.
        case save(Credential)
        /// It is over.
        case finish
    }

    private enum Obstacle: Equatable {
        case none
        case waiting(until: TimeInterval, ServerAnswer.Explanation)
        case suspended(until: TimeInterval, ServerAnswer.Explanation)
    }

    let policy: Policy
    private var configuration: AuthorizationConfiguration

    /// The pair in use: it is on disk.
    private(set) var credential: Credential?
    /// Counts up with each change of the access token, so that a late refusal can be told from one of the present token.
    private(set) var generation = 0
    /// When the present token came.
    private var issuedAt: TimeInterval = 0
    /// When the present token expires, less the leeway; nil if that is not known.
    private var refreshAt: TimeInterval?
    private var expiresAt: TimeInterval?
    /// True when the present token was asked for since it came, so that an idle app does not refresh for ever.
    private var isUsed = false
    private var isFromRefresh = false
    private var wasAccepted = false
    /// What the store had at the start, as long as the app has not said that it goes on with it.
    private var dormant: Credential?
    /// True if `credential` is what the store has, as far as this process knows.
    private var isOnDisk = false

    private(set) var isRefreshing = false
    private var refreshingGeneration = 0
    /// What the store had when the lock was taken.
    private var base: Credential?
    private var obstacle = Obstacle.none
    private var failures = 0
    private var unusableAnswers = 0
    private var refusedTokens = 0
    /// The generation of the last refused token that was counted.
    private var countedRefusal = 0
    private var refreshes: [TimeInterval] = []
    /// A pair that the disk did not take yet.
    private var unsaved: Credential?
    /// Not before this instant with a token that was refused and cannot be refreshed.
    private var resendAt: TimeInterval?
    private var resends = 0
    private var serverClock = ServerClock()

    init(configuration: AuthorizationConfiguration, policy: Policy = Policy()) {
        self.configuration = configuration
        self.policy = policy
    }

    private var canRefresh: Bool {
        credential?.refreshToken?.isEmpty == false && RefreshRequest.url(configuration) != nil
    }

    // MARK: What the app says

    /// What the store has, at the start; `configure` decides about it.
    mutating func loaded(_ stored: Credential?) {
        dormant = stored
        serverClock = ServerClock(offset: stored?.clockOffset)
    }

    /// A configuration that is not sparse and has no tokens leaves what the store has where it is: it may be a former
    /// user's, and is good again once the app comes with a token of that chain.
    ///
    /// - Returns: The pair to make durable and then to hand to `adopted`; nil if nothing is new.
    mutating func configure(
        _ configuration: AuthorizationConfiguration, isSparse: Bool, now: Date, uptime: TimeInterval,
        fraction: Double
    ) -> Credential? {
        self.configuration = configuration
        let hasTokens =
            configuration.accessToken?.isEmpty == false || configuration.refreshToken?.isEmpty == false
        guard hasTokens || isSparse else { return nil }
        let clockOffset = serverClock.offset(now: now, uptime: uptime)
        let next = Credential.adopting(
            configuration, over: unsaved ?? credential ?? dormant, isSparse: isSparse,
            now: now + clockOffset, clockOffset: clockOffset)
        if next == nil, credential == nil, let dormant {
            take(dormant, lifetime: dormant.remaining(now: now), uptime: uptime, fraction: fraction)
            isOnDisk = true
        }
        dormant = nil
        // A refresh that is under way is about credentials that are gone.
        if next != nil { refreshingGeneration = -1 }
        return next
    }

    /// The app's new pair is on disk, or cannot be: it is used either way, since the app has it too.
    mutating func adopted(
        _ credential: Credential, isOnDisk: Bool, now: Date, uptime: TimeInterval, fraction: Double
    ) {
        take(credential, lifetime: credential.remaining(now: now), uptime: uptime, fraction: fraction)
        self.isOnDisk = isOnDisk
        isFromRefresh = false
        isUsed = true
        unsaved = nil
        obstacle = .none
        failures = 0
        unusableAnswers = 0
        refusedTokens = 0
        refreshes = []
    }

    /// The app forgets its user.
    mutating func forget() {
        credential = nil
        unsaved = nil
        dormant = nil
        generation += 1
        refreshAt = nil
        expiresAt = nil
        obstacle = .none
    }

    private mutating func take(
        _ credential: Credential, lifetime: TimeInterval?, uptime: TimeInterval, fraction: Double
    ) {
        if credential.accessToken != self.credential?.accessToken {
            generation += 1
            isUsed = false
            wasAccepted = false
            resendAt = nil
            resends = 0
        }
        self.credential = credential
        issuedAt = uptime
        expiresAt = lifetime.map { uptime + $0 }
        refreshAt = lifetime.map { lifetime in
            let leeway = min(policy.leeway, lifetime * policy.leewayShare)
            return uptime + max(0, lifetime - (leeway < 1 ? 0 : leeway * (1 + fraction / 2)))
        }
    }

    // MARK: What requests say

    /// A server has taken a request with the token of this generation.
    mutating func accepted(_ generation: Int) {
        guard generation == self.generation else { return }
        wasAccepted = true
        refusedTokens = 0
        resends = 0
    }

    mutating func noteServerTime(_ date: Date, now: Date, uptime: TimeInterval) {
        serverClock.learn(date, now: now, uptime: uptime)
    }

    /// Seconds by which the server's clock is ahead of the device's; 0 if nothing is known.
    mutating func clockOffset(now: Date, uptime: TimeInterval) -> TimeInterval {
        serverClock.offset(now: now, uptime: uptime)
    }

    /// A request wants to go. `rejected` is the generation of the token that a server has refused, and `hasWaited` is true
    /// for a request that has waited for a refresh already: it never leads to another.
    mutating func demand(rejected: Int?, hasWaited: Bool, uptime: TimeInterval) -> Demand {
        isUsed = true
        guard let credential else {
            // The app may have a server that asks for no token.
            return resend(isRejected: rejected == generation, uptime: uptime)
        }
        let isRejected = rejected == generation || credential.accessToken == nil
        if let code = credential.deathCode {
            // An access token outlives its refresh token, and a wrong clock may have called it old.
            guard isRejected else { return .use(generation: generation) }
            return .unavailable(
                .init(code, "the refresh token is dead; the app needs new credentials"), retryAt: nil)
        }
        if isRejected { noteRefusal(uptime: uptime) }
        let isDue = refreshAt.map { $0 <= uptime } ?? false
        guard isRejected || isDue || unsaved != nil else { return .use(generation: generation) }
        guard canRefresh || unsaved != nil else { return resend(isRejected: isRejected, uptime: uptime) }
        switch obstacle {
        case .waiting(let instant, let problem), .suspended(let instant, let problem):
            // A token that is only old may still be good: the server is the judge of that.
            if instant > uptime {
                return isRejected || unsaved != nil
                    ? .unavailable(problem, retryAt: instant) : .use(generation: generation)
            }
        case .none: break
        }
        if hasWaited {
            return isRejected
                ? .unavailable(.init("refresh_failed", "the token was not refreshed"), retryAt: uptime + 1)
                : .use(generation: generation)
        }
        return .refresh
    }

    /// Without a way to refresh, a refused token is tried again with growing pauses.
    private mutating func resend(isRejected: Bool, uptime: TimeInterval) -> Demand {
        guard isRejected else { return .use(generation: generation) }
        if credential != nil, credential?.accessToken == nil {
            return .unavailable(.init("no_access_token", "there is no access token"), retryAt: nil)
        }
        if let resendAt, resendAt <= uptime {
            self.resendAt = nil
            return .use(generation: generation)
        }
        if resendAt == nil {
            resends += 1
            resendAt = uptime + policy.retry.delay(afterFailure: resends, fraction: 1)
        }
        return .unavailable(
            .init("token_refused", "the server refuses the token, and it cannot be refreshed"),
            retryAt: resendAt)
    }

    /// Fresh tokens that are refused at once are no use; more of them would not be either.
    private mutating func noteRefusal(uptime: TimeInterval) {
        guard generation != countedRefusal, isFromRefresh, !wasAccepted, uptime - issuedAt < policy.window,
            !hasLived(at: uptime)
        else { return }
        countedRefusal = generation
        refusedTokens += 1
        if refusedTokens >= policy.maximumRefusedTokens {
            refusedTokens = 0
            suspend(
                .init("fresh_tokens_refused", "the server refuses tokens that it was just given"),
                uptime: uptime)
        }
    }

    /// Whether the token has been good for as long as the server said, which explains a refresh. Servers whose clock counts
    /// whole seconds may call it expired up to one second early.
    private func hasLived(at uptime: TimeInterval) -> Bool {
        guard let refreshAt, let expiresAt, uptime - issuedAt >= 1 else { return false }
        return min(refreshAt, expiresAt - 1) <= uptime
    }

    private mutating func suspend(_ problem: ServerAnswer.Explanation, uptime: TimeInterval) {
        obstacle = .suspended(until: uptime + policy.suspension, problem)
    }

    /// When to refresh without a request that asks for it: a used token that is about to expire.
    var timer: TimeInterval? {
        guard !isRefreshing, isUsed, canRefresh, credential?.deathCode == nil, let refreshAt else {
            return nil
        }
        switch obstacle {
        case .none: return refreshAt
        case .waiting(let instant, _), .suspended(let instant, _): return max(refreshAt, instant)
        }
    }

    // MARK: A refresh

    mutating func begin(uptime: TimeInterval) -> Action {
        obstacle = .none
        isRefreshing = true
        refreshingGeneration = generation
        base = nil
        if let unsaved { return .save(unsaved) }
        refreshes.removeAll { $0 <= uptime - policy.window }
        if !hasLived(at: uptime) {
            guard refreshes.count < policy.windowCount else {
                suspend(
                    .init("too_many_refreshes", "\(refreshes.count) refreshes in \(Int(policy.window)) s"),
                    uptime: uptime)
                return finish()
            }
        }
        return .lock
    }

    /// This process refreshes now, and `stored` is what the store has: perhaps another process was faster.
    mutating func locked(
        stored: Credential?, now: Date, uptime: TimeInterval, fraction: Double
    ) -> Action {
        guard generation == refreshingGeneration, let current = credential else { return finish() }
        if let stored, stored != current, isOnDisk {
            serverClock = ServerClock(offset: stored.clockOffset)
            take(stored, lifetime: stored.remaining(now: now), uptime: uptime, fraction: fraction)
            failures = 0
            return finish()
        }
        guard let refreshToken = current.refreshToken else { return finish() }
        if !hasLived(at: uptime) { refreshes.append(uptime) }
        base = stored
        return .send(accessToken: current.accessToken, refreshToken: refreshToken)
    }

    /// Whether an app has handed over other credentials, in another process, while this one refreshed.
    func isSuperseded(by stored: Credential) -> Bool { base != nil && stored != base }

    mutating func superseded(
        by stored: Credential, now: Date, uptime: TimeInterval, fraction: Double
    ) -> Action {
        unsaved = nil
        take(stored, lifetime: stored.remaining(now: now), uptime: uptime, fraction: fraction)
        return finish()
    }

    /// The lock or the store could not be had.
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
        // The app has handed over other credentials in the meantime: this answer is about the ones that are gone.
        guard generation == refreshingGeneration, var current = credential else { return finish() }
        switch answer.meaning {
        case .granted(let grant):
            let clockOffset = serverClock.offset(now: now, uptime: uptime)
            let next = current.rotated(
                to: grant, at: answer.serverTime ?? now + clockOffset, clockOffset: clockOffset)
            unsaved = next
            return .save(next)
        case .dead(let problem):
            current.deathCode = problem.code
            credential = current
            return .save(current)
        case .unusable(let problem):
            unusableAnswers += 1
            if unusableAnswers >= policy.maximumUnusableAnswers {
                unusableAnswers = 0
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

    /// What `save` named is on disk, unless there is a failure.
    mutating func saved(
        _ failure: ServerAnswer.Explanation?, uptime: TimeInterval, fraction: Double
    ) -> Action {
        guard generation == refreshingGeneration, let next = unsaved else { return finish() }
        if let failure {
            // Not used before it is on disk; the next try begins with the disk.
            wait(failure, serverDelay: nil, uptime: uptime, fraction: fraction)
            return finish()
        }
        unsaved = nil
        failures = 0
        unusableAnswers = 0
        take(next, lifetime: next.lifetime, uptime: uptime, fraction: fraction)
        isFromRefresh = true
        isOnDisk = true
        return finish()
    }

    private mutating func finish() -> Action {
        isRefreshing = false
        return .finish
    }

    private mutating func wait(
        _ problem: ServerAnswer.Explanation, mayBeExchanged: Bool = false, serverDelay: TimeInterval?,
        uptime: TimeInterval, fraction: Double
    ) {
        failures += 1
        let retry = mayBeExchanged ? policy.retryWhenLost : policy.retry
        let delay = retry.delay(afterFailure: failures, serverDelay: serverDelay, fraction: fraction)
        // Not at once even if chance says so: a refresh is never worth a busy loop.
        obstacle = .waiting(until: uptime + max(delay, 1), problem)
    }

    // MARK: Looking inside

    func state(uptime: TimeInterval) -> AuthorizationState {
        func reason(_ problem: ServerAnswer.Explanation) -> String { "\(problem.code): \(problem.reason)" }
        guard let credential else {
            return AuthorizationState(kind: .noCredential, reason: nil, retryIn: nil)
        }
        if let code = credential.deathCode {
            return AuthorizationState(kind: .reauthenticationRequired, reason: code, retryIn: nil)
        }
        switch obstacle {
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
