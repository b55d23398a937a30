internal import CountersignCore
internal import CountersignTransport
internal import Foundation

/// The credentials of signed users: the last known token, the stored token, or a new one from the app's provider.
///
/// Calls of the provider run concurrently with other work: one at a time for each user, and a limited number in
/// total. After a failure the provider is called again after a delay that grows with each further failure.
actor UserTokenSource: CredentialSource {
    struct Settings: Sendable {
        var scheme = Credential.Scheme.bearer
        var provider: TokenProvider?
        var timeout: TimeInterval
        var retry: RetryPolicy
        /// The limit of concurrent provider calls, all for different users.
        var maximumCalls = ProviderThread.isApart ? 4 : 1
    }

    /// The state of a user's token when a provider call began. If it has changed, the result is outdated: the app has
    /// set a newer token or removed the token.
    struct Baseline: Sendable, Equatable {
        /// 0 without a token.
        let generation: Int
        let removals: Int
    }

    private struct Fetch {
        let call: TokenProviderCall
        let reason: TokenRequest.Reason
        let baseline: Baseline
        let requestTime: Date
        let task: Task<Void, Never>
        var hasTimedOut = false
    }

    /// The back-off of the provider. The back-off in `Sender` protects the server, which is meanwhile retried with
    /// the last token. The two delays run in parallel.
    private struct ProviderBackoff {
        var failures = 0
        var retryAt: TimeInterval
        var problem: ServerAnswer.Explanation
        var code: AuthErrorCode
    }

    /// A token that expires within this many seconds is replaced before use.
    private static let expiryMargin: TimeInterval = 5
    /// Seconds until an unreadable store is read again.
    private static let storeRetryInterval: TimeInterval = 5

    nonisolated let isRenewing: Bool

    nonisolated var remedy: String? {
        isRenewing
            ? "have the token provider return a token that the server accepts"
            : "pass a new token for the user, or set a token provider"
    }

    let settings: Settings
    let stored: SignedUserTokens
    private let clock: any ClientClock
    private let random: @Sendable () -> Double
    /// Users who are logging out and have not received a token since.
    var loggingOut: Set<UserKey> = []
    /// `Recorder.userRevision` of the last app call for each user. Late calls with an earlier revision are ignored.
    private var revisions: [UserKey: Int] = [:]
    /// `removeAll()` removes the tokens of app calls up to this revision, and keeps later ones.
    private var wipeRevision = Int.max
    /// Users with a log-out that could not be written, or with a token that could not be removed.
    var pendingRemoval: Set<UserKey> = []
    private var isStored: [UserKey: Bool] = [:]
    /// Users who had a token in an earlier run or until another process logged them out. Their events wait for a token.
    var signed: Set<UserKey>
    /// The version of `user.json` at the last check for a log-out, for each user with a token in memory.
    private var seenVersions: [UserKey: [Int]] = [:]
    /// Set if removing all tokens from the store has failed. Stored tokens are then ignored.
    private var distrustsStore = false
    private var removals: (of: [UserKey: Int], ofAll: Int) = ([:], 0)
    private var fetches: [UserKey: Fetch] = [:]
    private var providerBackoffs: [UserKey: ProviderBackoff] = [:]
    /// Users to request tokens for once other calls have returned.
    private var waiting: Set<UserKey> = []
    /// Generations of provider tokens that seem expired. They are sent nevertheless, because the clock may be wrong.
    private var doubtful: [UserKey: Int] = [:]

    private(set) var cache = TokenCache()
    private var verdicts: [UserKey: ServerAnswer.TokenVerdict] = [:]
    private var serverClock = ServerClock()

    init(
        settings: Settings, stored: SignedUserTokens, signed: Set<UserKey> = [], clock: any ClientClock,
        random: @escaping @Sendable () -> Double = { Double.random(in: 0...1) }
    ) {
        self.signed = signed
        isRenewing = settings.provider != nil
        self.settings = settings
        self.stored = stored
        self.clock = clock
        self.random = random
    }

    func token(of user: UserKey) -> SignedToken? { cache[user]?.token }

    /// The generation of the user's token; 0 without a token.
    func generation(of user: UserKey) -> Int { cache[user]?.generation ?? 0 }

    func baseline(of user: UserKey) -> Baseline {
        Baseline(
            generation: generation(of: user),
            removals: removals.ofAll + removals.of[user, default: 0])
    }

    private func credential(of user: UserKey) -> Credential {
        Credential(settings.scheme, token: token(of: user), generation: generation(of: user))
    }

    func accepted(_ credential: Credential, of user: UserKey) {
        verdicts[user] = nil
    }

    func rejected(_ credential: Credential, of user: UserKey, _ verdict: ServerAnswer.TokenVerdict) -> Bool {
        verdicts[user] = verdict
        // False if the app was already notified: the provider has failed, and its failure had the same code.
        return providerBackoffs[user]?.code != verdict.code
    }

    func noteServerTime(_ date: Date) {
        serverClock.learn(date, now: clock.now, uptime: clock.uptime)
    }

    /// Seconds by which the server's clock is ahead; 0 if unknown.
    var clockOffset: TimeInterval { serverClock.offset(now: clock.now, uptime: clock.uptime) }

    // MARK: Calls from the app

    /// Uses and stores a token that the app has set, and cancels a log-out. `revision` is that of the app's call.
    func take(_ token: SignedToken, for user: UserKey, at revision: Int) async -> [CredentialUpdate] {
        guard isNewest(revision, of: user) else { return [] }
        let wasLoggingOut = loggingOut.remove(user) != nil
        return await take(token, for: user, from: wasLoggingOut ? .appDuringLogOut : .app)
    }

    /// Stores the revision of an app call. Returns false if a later call for this user has arrived already.
    func isNewest(_ revision: Int, of user: UserKey) -> Bool {
        guard revision >= revisions[user, default: 0] else { return false }
        revisions[user] = revision
        return true
    }

    private func take(
        _ token: SignedToken, for user: UserKey, from origin: LogOut.TokenOrigin
    ) async -> [CredentialUpdate] {
        guard let generation = await set(token, for: user, from: origin) else {
            guard let code = verdicts[user]?.code else { return [] }
            return [.failed(failure(code, "token_unchanged", of: user, token: token, origin: .app))]
        }
        var updates = [CredentialUpdate.changed(user, generation: generation)]
        // Report an expired token only after a rejection. Otherwise the clock may be wrong, and the server decides.
        if verdicts[user] != nil, isExpired(token) {
            updates.insert(
                .failed(failure(.expired, "token_expired", of: user, token: token, origin: .app)), at: 0)
        }
        return updates
    }

    func rejectMalformed(for user: UserKey) -> [CredentialUpdate] {
        [.failed(failure(.decodingError, "token_malformed", of: user, token: nil, origin: .app))]
    }

    func takeLate(_ token: SignedToken, for user: UserKey, since baseline: Baseline) async
        -> [CredentialUpdate]
    {
        self.baseline(of: user) == baseline ? await take(token, for: user, from: .provider) : []
    }

    /// Removes the token from memory only.
    func removeToken(of user: UserKey) {
        cache.remove(user)
        isStored[user] = nil
        verdicts[user] = nil
        providerBackoffs[user] = nil
        removals.of[user, default: 0] += 1
    }

    private func retrySaving() async {
        await retryRemovals()
        for (user, isStored) in isStored where !isStored {
            guard let userID = user.userID, let token = token(of: user) else { continue }
            self.isStored[user] = await stored.save(token, of: userID, from: .provider)
        }
    }

    private func failure(
        _ code: AuthErrorCode, _ reason: String, of user: UserKey, token: SignedToken?,
        origin: AuthenticationFailure.Origin, requestTime: Date? = nil
    ) -> AuthenticationFailure {
        AuthenticationFailure(
            code: code, reason: reason, userID: user.userID, token: token, isOptional: false,
            requestTime: requestTime ?? clock.now, origin: origin, clockSkew: nil, occurrences: 1)
    }

    // MARK: Storing

    /// Uses and stores the token. Returns its generation, or nil if the token equals the current one.
    private func set(
        _ token: SignedToken, for user: UserKey, from origin: LogOut.TokenOrigin
    ) async -> Int? {
        guard let userID = user.userID else { return nil }
        guard let generation = cache.set(token, for: user) else {
            // Store an equal token again: a log-out in this or another process may be removing the stored one.
            if origin != .provider { isStored[user] = await stored.save(token, of: userID, from: origin) }
            return nil
        }
        pendingRemoval.remove(user)
        providerBackoffs[user] = nil
        isStored[user] = await stored.save(token, of: userID, from: origin)
        return generation
    }

    /// The next `removeAll` keeps the tokens of app calls after this revision.
    func willRemoveAll(upTo revision: Int) -> [CredentialUpdate] {
        wipeRevision = revision
        return []
    }

    func removeAll() async {
        let kept = revisions.filter { $0.value > wipeRevision }.keys.compactMap { user in
            loggingOut.contains(user) ? nil : token(of: user).map { (user, $0) }
        }
        wipeRevision = .max
        cache.removeAll()
        isStored = [:]
        signed = []
        pendingRemoval = []
        loggingOut = []
        verdicts = [:]
        providerBackoffs = [:]
        removals.ofAll += 1
        distrustsStore = await !stored.tokens.removeAll()
        for (user, token) in kept { _ = await set(token, for: user, from: .app) }
    }

    /// Reads the store if the token is unknown or was rejected: another process may have stored a newer one.
    private func load(_ user: UserKey, _ userID: String, replacing rejected: Int?) async
        -> SignedUserTokens.Found
    {
        if cache[user] != nil { await removeIfLoggedOutElsewhere(user, userID) }
        guard cache[user] == nil || cache[user]?.generation == rejected else { return .none }
        if pendingRemoval.contains(user) { return .loggedOut }
        let version = stored.users.version
        let found = await stored.find(userID)
        switch found {
        case .token(let token):
            if distrustsStore { return .none }
            if cache.set(token, for: user) != nil { isStored[user] = true }
            seenVersions[user] = version
            return found
        case .none: return cache[user] == nil && signed.contains(user) ? .lost : found
        case .loggedOut, .lost, .unreadable: return found
        }
    }

    /// Removes a token from memory if another process has signed the user out.
    private func removeIfLoggedOutElsewhere(_ user: UserKey, _ userID: String) async {
        let version = stored.users.version
        guard isStored[user] == true, !loggingOut.contains(user), seenVersions[user] != version else {
            return
        }
        switch await stored.find(userID) {
        case .none, .lost, .loggedOut:
            // The user's events wait for another token, instead of being sent without one.
            signed.insert(user)
            removeToken(of: user)
        case .token: seenVersions[user] = version
        case .unreadable: break
        }
    }

    /// The reason why events must wait for a token. Nil if there is a token, or if events may be sent without a
    /// token.
    private static func obstacle(_ found: SignedUserTokens.Found) -> ServerAnswer.Explanation? {
        switch found {
        case .loggedOut:
            .init("logged_out", "the user has logged out; the remaining events wait for a new token")
        case .lost: .init("no_token", "the user's token is not stored; the events wait for another one")
        case .unreadable: .init("store_unreadable", "the stored token cannot be read now")
        case .token, .none: nil
        }
    }

    // MARK: Finding

    func credential(
        for user: UserKey, replacing rejected: Int?,
        post: @escaping @Sendable (@escaping CredentialAction) -> Void
    ) async -> CredentialDecision {
        guard let userID = user.userID else { return .ready(Credential(settings.scheme, token: nil)) }
        let found = await load(user, userID, replacing: rejected)
        let entry = cache[user]
        let obstacle = entry == nil ? Self.obstacle(found) : nil
        let current = obstacle == nil ? credential(of: user) : nil
        guard let provider = settings.provider else {
            guard let obstacle else { return .ready(credential(of: user)) }
            // Only the app can supply another token. An unreadable store is read again soon.
            let retryAt = found == .unreadable ? clock.uptime + Self.storeRetryInterval : nil
            return .unavailable(obstacle, retryAt: retryAt)
        }
        let reason: TokenRequest.Reason
        if entry == nil {
            reason = .missing
        } else if entry?.generation == rejected {
            reason = .rejected
        } else if let entry, doubtful[user] != entry.generation,
            isExpired(entry.token, margin: Self.expiryMargin)
        {
            reason = .expired
        } else {
            return .ready(credential(of: user))
        }
        fetches = fetches.filter { $0.value.call.isRunning || !$0.value.hasTimedOut }
        if let fetch = fetches[user] {
            return fetch.hasTimedOut ? .doubtful(current, Self.timedOut) : .pending
        }
        if let backoff = providerBackoffs[user], clock.uptime < backoff.retryAt {
            return .doubtful(current, backoff.problem)
        }
        guard fetches.count < settings.maximumCalls else {
            if fetches.values.contains(where: { !$0.hasTimedOut }) {
                waiting.insert(user)
                return .pending
            }
            // Do not wait: calls over the time limit may never return.
            return .doubtful(
                current, .init("provider_busy", "the provider is running for other users"))
        }
        let baseline = baseline(of: user)
        let request = TokenRequest(
            userID: userID, reason: reason, code: reason == .rejected ? verdicts[user]?.code : nil)
        let call = TokenProviderCall(provider: { try await provider(request) }) { text in
            guard let token = SignedToken(text) else { return }
            post { await self.takeLate(token, for: user, since: baseline) }
        }
        let task = Task { [timeout = settings.timeout, clock] in
            let outcome = await call.outcome(within: timeout, on: clock)
            post { await self.returned(call, outcome, for: user) }
        }
        fetches[user] = Fetch(
            call: call, reason: reason, baseline: baseline, requestTime: clock.now, task: task)
        return .pending
    }

    private static let timedOut = ServerAnswer.Explanation("provider_timed_out", "the provider took too long")

    /// Handles the result of a provider call. The engine then requests tokens for `waiting` users again.
    private func returned(
        _ call: TokenProviderCall, _ outcome: TokenProviderCall.Outcome, for user: UserKey
    ) async -> [CredentialUpdate] {
        var updates: [CredentialUpdate] = []
        if let failure = await apply(call, outcome, for: user) { updates.append(.failed(failure)) }
        updates.append(.resolved(user))
        updates += waiting.map { .resolved($0) }
        waiting = []
        return updates
    }

    /// Returns the failure to report to the app. Nil if there is a token or the call is outdated.
    private func apply(
        _ call: TokenProviderCall, _ outcome: TokenProviderCall.Outcome, for user: UserKey
    ) async -> AuthenticationFailure? {
        guard let fetch = fetches[user], fetch.call === call else { return nil }
        if case .timedOut = outcome { fetches[user]?.hasTimedOut = true } else { fetches[user] = nil }
        if baseline(of: user) != fetch.baseline { return nil }
        let problem: ServerAnswer.Explanation
        switch outcome {
        case .token(let text):
            guard let token = SignedToken(text) else {
                problem = .init("token_malformed", "the provider returned a text that is not a token")
                break
            }
            if token == cache[user]?.token, fetch.reason == .rejected {
                problem = .init("token_unchanged", "the provider returned the same token again")
                break
            }
            let generation = await set(token, for: user, from: .provider) ?? self.generation(of: user)
            // Send the token even if it seems expired: the device clock may be wrong, and only the server can tell.
            doubtful[user] = isExpired(token, margin: Self.expiryMargin) ? generation : nil
            providerBackoffs[user] = nil
            return nil
        case .none: problem = .init("no_token", "the provider has no token")
        case .failed: problem = .init("provider_failed", "the provider threw an error")
        case .timedOut: problem = Self.timedOut
        }
        let code: AuthErrorCode =
            switch fetch.reason {
            case .missing: .missingToken
            case .rejected: verdicts[user]?.code ?? .expired
            default: .expired
            }
        let failures = (providerBackoffs[user]?.failures ?? 0) + 1
        // At least one second, even if the random fraction is small.
        let delay = max(1, settings.retry.delay(afterFailure: failures, fraction: random()))
        providerBackoffs[user] = ProviderBackoff(
            failures: failures, retryAt: clock.uptime + delay, problem: problem, code: code)
        return failure(
            code, problem.code, of: user, token: token(of: user), origin: .provider,
            requestTime: fetch.requestTime)
    }

    /// Ends the back-off of the provider, but not its count of failures. Retries failed writes.
    func resume() async {
        for user in providerBackoffs.keys { providerBackoffs[user]?.retryAt = clock.uptime }
        await retrySaving()
    }

    /// Stops waiting for provider calls, and retries failed writes.
    func stop() async {
        for fetch in fetches.values { fetch.task.cancel() }
        await retrySaving()
    }

    // MARK: Time

    /// Compares with the server's time, because the device clock may be wrong.
    func isExpired(_ token: SignedToken, margin: TimeInterval = 0) -> Bool {
        guard let expiresAt = token.expiresAt else { return false }
        return expiresAt <= clock.now.timeIntervalSince1970 + clockOffset + margin
    }
}
