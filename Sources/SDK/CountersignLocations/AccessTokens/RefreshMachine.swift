internal import Foundation

/// Decides when to refresh an access token, how to react to a response, and when to stop. A state machine without
/// I/O, clock or randomness.
///
/// `demand` decides whether to send a request. A refresh calls `begin`, `locked`, `answered` and `saved`, each of
/// which returns the next action. Instants are seconds of `ClientClock.uptime`.
struct RefreshMachine {
    enum Demand: Equatable {
        case use(generation: Int)
        /// Refresh first, or wait for the running refresh.
        case refresh
        /// Retry after `retryAt`; if nil, only with new credentials.
        case unavailable(ServerAnswer.Explanation, retryAt: TimeInterval?)
    }

    enum Action: Equatable {
        /// Lock and read the store, then call `locked` or `notLocked`.
        case lock
        /// Send a refresh request, then call `answered`.
        case send(accessToken: String?, refreshToken: String)
        /// Store the pair durably, then call `saved`.
        case save(TokenPair)
        case finish
    }

    enum State: Equatable {
        case resting
        /// A refresh of the token `generation`. `base` is the stored pair when the lock was taken.
        case refreshing(generation: Int, base: TokenPair?)
        case outdated(base: TokenPair?)
    }

    let policy = Policy()
    private var configuration: AuthorizationConfiguration
    var state = State.resting
    var token = TokenInUse()
    var obstacle = RefreshObstacle()
    var rate = RefreshRate()
    private var resending = Resending()
    /// A refreshed pair that is not on disk yet.
    var unsaved: TokenPair?
    /// The stored pair when `unsaved` was requested.
    var unsavedBase: TokenPair?
    var serverClock = ServerClock()

    init(configuration: AuthorizationConfiguration) {
        self.configuration = configuration
    }

    /// The pair in use. A refreshed pair is used only once it is on disk.
    var credential: TokenPair? { token.credential }

    var generation: Int { token.generation }

    private var canRefresh: Bool {
        credential?.refreshToken?.isEmpty == false && RefreshRequest.url(configuration) != nil
    }

    // MARK: Calls from the app

    /// Keeps the stored pair until `configure`, which decides whether to use it.
    mutating func loaded(_ stored: TokenPair?) {
        token.loaded(stored)
        serverClock = ServerClock(offset: stored?.clockOffset)
    }

    /// Returns the pair to store durably and then to pass to `adopted`; nil if nothing is new. If `isSparse` is true,
    /// tokens that the configuration lacks come from the stored pair. If `isSparse` is false and the configuration has
    /// no tokens, the stored pair stays unused, because it may belong to a former user. A later call that has a token
    /// in `TokenPair.known` uses the stored pair.
    mutating func configure(
        _ configuration: AuthorizationConfiguration, isSparse: Bool, handedOverAt: TimeInterval,
        at reading: ClockReading
    ) -> TokenPair? {
        self.configuration = configuration
        let hasTokens =
            configuration.accessToken?.isEmpty == false || configuration.refreshToken?.isEmpty == false
        guard hasTokens || isSparse else { return nil }
        let clockOffset = serverClock.offset(now: reading.now, uptime: reading.uptime)
        let next = TokenPair.adopting(
            configuration, over: unsaved ?? token.known, isSparse: isSparse,
            now: reading.now + clockOffset - (reading.uptime - handedOverAt), clockOffset: clockOffset)
        if next == nil, case .dormant(let dormant) = token.state {
            take(dormant, isOnDisk: true, at: reading)
        }
        token.dropDormant()
        if next != nil, case .refreshing(_, let base) = state { state = .outdated(base: base) }
        return next
    }

    /// Uses the app's new pair. A pair that could not be stored is used too, because the app has a copy.
    mutating func adopted(_ credential: TokenPair, isOnDisk: Bool, at reading: ClockReading) {
        take(credential, isOnDisk: isOnDisk, at: reading)
        token.isFromRefresh = false
        token.isUsed = true
        unsaved = nil
        obstacle = RefreshObstacle()
        rate.reset()
    }

    mutating func removeTokens() {
        token.remove()
        unsaved = nil
        obstacle.clear()
    }

    mutating func take(_ credential: TokenPair, isOnDisk: Bool? = nil, at reading: ClockReading) {
        take(credential, lifetime: credential.remaining(now: reading.now), isOnDisk: isOnDisk, at: reading)
    }

    mutating func take(
        _ credential: TokenPair, lifetime: TimeInterval?, isOnDisk: Bool?, at reading: ClockReading
    ) {
        let isAnother = token.take(
            credential, lifetime: lifetime, isOnDisk: isOnDisk, leeway: policy.leeway,
            share: policy.leewayShare, at: reading)
        if isAnother { resending = Resending() }
    }

    // MARK: Calls from requests

    mutating func accepted(_ generation: Int) {
        guard generation == self.generation else { return }
        token.wasAccepted = true
        rate.accepted()
        resending.accepted()
    }

    mutating func noteServerTime(_ date: Date, now: Date, uptime: TimeInterval) {
        serverClock.learn(date, now: now, uptime: uptime)
    }

    /// Seconds by which the server's clock is ahead; 0 if nothing is known.
    mutating func clockOffset(now: Date, uptime: TimeInterval) -> TimeInterval {
        serverClock.offset(now: now, uptime: uptime)
    }

    /// `rejected` is the generation of a token that a server has rejected. With `hasWaited` the request has waited
    /// for a refresh and starts no second one.
    mutating func demand(rejected: Int?, hasWaited: Bool, uptime: TimeInterval) -> Demand {
        token.isUsed = true
        guard let credential else {
            // Send without a token, because the app's server may not require one.
            return resend(isRejected: rejected == generation, uptime: uptime)
        }
        let isRejected = rejected == generation || credential.accessToken == nil
        if let code = credential.deathCode {
            // The access token may still be valid, even if it looks expired because of a wrong clock.
            guard isRejected else { return .use(generation: generation) }
            return .unavailable(
                .init(code, "the refresh token is invalid; the app needs new credentials"), retryAt: nil)
        }
        if isRejected { noteRejection(uptime: uptime) }
        let isDue = token.refreshAt.map { $0 <= uptime } ?? false
        guard isRejected || isDue || unsaved != nil else { return .use(generation: generation) }
        guard canRefresh || unsaved != nil else { return resend(isRejected: isRejected, uptime: uptime) }
        if let wait = obstacle.wait, wait.until > uptime {
            // A token that looks expired may still be valid, so let the server decide.
            return isRejected || unsaved != nil
                ? .unavailable(wait.problem, retryAt: wait.until) : .use(generation: generation)
        }
        if hasWaited {
            return isRejected
                ? .unavailable(.init("refresh_failed", "the token was not refreshed"), retryAt: uptime + 1)
                : .use(generation: generation)
        }
        return .refresh
    }

    /// Without refresh settings, a rejected token is retried with increasing delays.
    private mutating func resend(isRejected: Bool, uptime: TimeInterval) -> Demand {
        guard isRejected else { return .use(generation: generation) }
        if let credential, credential.accessToken == nil {
            return .unavailable(.init("no_access_token", "there is no access token"), retryAt: nil)
        }
        guard let instant = resending.take(at: uptime, retry: policy.retry) else {
            return .use(generation: generation)
        }
        return .unavailable(
            .init("token_refused", "the server rejects the token, and it cannot be refreshed"),
            retryAt: instant)
    }

    /// Suspends refreshes if fresh tokens are rejected repeatedly.
    private mutating func noteRejection(uptime: TimeInterval) {
        guard token.isFresh(at: uptime, window: policy.window),
            rate.rejected(generation, maximum: policy.maximumRejectedTokens)
        else { return }
        suspend(.init("fresh_tokens_refused", "the server rejects new tokens"), uptime: uptime)
    }

    mutating func suspend(_ problem: ServerAnswer.Explanation, uptime: TimeInterval) {
        obstacle.suspend(problem, until: uptime + policy.suspension)
    }

    /// Uptime of the next refresh without a request, for a used token that will expire.
    var timer: TimeInterval? {
        guard state == .resting, token.isUsed, canRefresh, credential?.deathCode == nil,
            let refreshAt = token.refreshAt
        else { return nil }
        return max(refreshAt, obstacle.wait?.until ?? refreshAt)
    }
}
