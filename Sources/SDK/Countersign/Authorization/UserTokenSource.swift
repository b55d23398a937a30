internal import CountersignCore
internal import CountersignTransport
internal import Foundation

/// The credentials of signed users: each user's events are sent under the last known token, the stored one, or a new one of
/// the app's provider.
///
/// The provider is called beside everything else: never twice at the same time for one user, and for a few users at most.
/// After a failure it is left alone for a while that grows with each further one.
actor UserTokenSource: CredentialSource {
    struct Settings: Sendable {
        var scheme = Credential.Scheme.bearer
        var provider: TokenProvider?
        /// Seconds that the provider may take.
        var timeout: TimeInterval
        var retry: RetryPolicy
        /// Calls of the provider at the same time, all for different users.
        var maximumCalls = ProviderThread.isApart ? 4 : 1
    }

    /// How it stood with a user's token when the provider was called. If that has changed, what it returns is out of date: the
    /// app has handed over a newer token, or wants this user's forgotten.
    struct Baseline: Sendable, Equatable {
        /// Of the newest token; 0 if there was none.
        let generation: Int
        /// How often the user's token had been forgotten.
        let forgettings: Int
    }

    private struct Search {
        let call: TokenProviderCall
        let reason: TokenRequest.Reason
        let baseline: Baseline
        let requestTime: Date
        let task: Task<Void, Never>
        var hasTimedOut = false
    }

    /// How the provider fails for a user. Its wait spares the provider; that of the user's lane in `Sender` spares the server,
    /// which is asked with the last token meanwhile. They do not add up: each is drawn when something has failed.
    private struct Standing {
        var failures = 0
        /// The provider is not asked before this uptime.
        var retryAt: TimeInterval
        var problem: ServerAnswer.Explanation
        var code: AuthErrorCode
    }

    /// A token that expires this soon, in seconds, is replaced before it is used.
    private static let expiryMargin: TimeInterval = 5
    /// Seconds until a store that could not be read is read again.
    private static let storeRetryInterval: TimeInterval = 5

    nonisolated let isRenewing: Bool

    nonisolated var remedy: String? {
        isRenewing
            ? "have the token provider return a token that the server accepts"
            : "pass a new token for the user, or set a token provider"
    }

    private let settings: Settings
    private let stored: SignedUserTokens
    private let clock: any ClientClock
    private let random: @Sendable () -> Double
    /// Who is logging out, and was handed no token since.
    private var leaving: Set<UserKey> = []
    /// The last that the app said of a user, as `Recorder` counts: what it said before comes too late.
    private var lastWords: [UserKey: Int] = [:]
    /// What the app has said up to here is forgotten with everything else.
    private var forgottenCount = Int.max
    /// Users whose log-out could not be written to disk.
    private var unforgotten: Set<UserKey> = []
    /// Users whose newest token is stored, and those whose token could not be stored.
    private var isStored: [UserKey: Bool] = [:]
    /// Users who have had a token in an earlier run. Without a stored one, their events wait.
    private var signed: Set<UserKey>
    /// The version of `user.json` when a user's log-out was looked for, for each user with a token in memory.
    private var seenVersions: [UserKey: [Int]] = [:]
    /// True if the tokens of all could not be removed from the store, which must not bring them back.
    private var distrustsStore = false
    /// How often the token of one user was forgotten, and those of all.
    private var forgettings: (of: [UserKey: Int], ofAll: Int) = ([:], 0)
    private var searches: [UserKey: Search] = [:]
    private var standings: [UserKey: Standing] = [:]
    /// Who is asked for when calls for others have returned.
    private var waiting: Set<UserKey> = []
    /// Generations that the provider has just returned and the device clock calls expired: the server is the judge.
    private var doubtful: [UserKey: Int] = [:]

    private var cache = TokenCache()
    /// What the last refusal of a user's token said.
    private var verdicts: [UserKey: ServerAnswer.TokenVerdict] = [:]
    private var serverClock = ServerClock()

    // `signed`: the users who have had a token in an earlier run.
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

    /// The newest token.
    func token(of user: UserKey) -> SignedToken? { cache[user]?.token }

    /// The generation of the newest token; 0 if there is none.
    func generation(of user: UserKey) -> Int { cache[user]?.generation ?? 0 }

    func baseline(of user: UserKey) -> Baseline {
        Baseline(
            generation: generation(of: user),
            forgettings: forgettings.ofAll + forgettings.of[user, default: 0])
    }

    private func credential(of user: UserKey) -> Credential {
        Credential(settings.scheme, token: token(of: user), generation: generation(of: user))
    }

    func accepted(_ credential: Credential, of user: UserKey) {
        verdicts[user] = nil
    }

    func refused(_ credential: Credential, of user: UserKey, _ verdict: ServerAnswer.TokenVerdict) -> Bool {
        verdicts[user] = verdict
        // Sent for want of a better token: that was told already.
        return standings[user]?.code != verdict.code
    }

    func noteServerTime(_ date: Date) {
        serverClock.learn(date, now: clock.now, uptime: clock.uptime)
    }

    /// Seconds by which the server's clock is ahead of the device's; 0 if nothing is known.
    var clockOffset: TimeInterval { serverClock.offset(now: clock.now, uptime: clock.uptime) }

    // MARK: What the app says

    /// Takes a token that the app hands over: the user is back, if there was a log-out. `count` says when, as `Recorder` counts.
    func take(_ token: SignedToken, for user: UserKey, at count: Int) async -> [CredentialNews] {
        guard isLastWord(count, of: user) else { return [] }
        let isLeaving = leaving.remove(user) != nil
        return await take(token, for: user, from: isLeaving ? .appWhileLeaving : .app)
    }

    private func isLastWord(_ count: Int, of user: UserKey) -> Bool {
        guard count >= lastWords[user, default: 0] else { return false }
        lastWords[user] = count
        return true
    }

    private func take(
        _ token: SignedToken, for user: UserKey, from origin: SignedUserTokens.Origin
    ) async -> [CredentialNews] {
        guard let generation = await set(token, for: user, from: origin) else {
            guard let code = verdicts[user]?.code else { return [] }
            return [.failed(failure(code, "token_unchanged", of: user, token: token, origin: .app))]
        }
        var news = [CredentialNews.changed(user, generation: generation)]
        // In answer to a refusal this is a mistake of the app; otherwise the server is the judge.
        if verdicts[user] != nil, isExpired(token) {
            news.insert(
                .failed(failure(.expired, "token_expired", of: user, token: token, origin: .app)), at: 0)
        }
        return news
    }

    /// The app has handed over a text that cannot be a token.
    func refuseMalformed(for user: UserKey) -> [CredentialNews] {
        [.failed(failure(.decodingError, "token_malformed", of: user, token: nil, origin: .app))]
    }

    /// Takes a token of a provider that took longer than it may.
    func takeLate(_ token: SignedToken, for user: UserKey, since baseline: Baseline) async -> [CredentialNews]
    {
        self.baseline(of: user) == baseline ? await take(token, for: user, from: .provider) : []
    }

    /// The user logs out: `leave` is to follow when what is left was sent. `count` says when, as `Recorder` counts.
    func beginLeaving(_ user: UserKey, at count: Int) -> [CredentialNews] {
        guard user.userID != nil, isLastWord(count, of: user) else { return [] }
        leaving.insert(user)
        return []
    }

    /// Forgets the token of a user who has logged out, unless the app has handed over one since. What is left waits for
    /// another one, unless there was never any: users of an app without tokens come back without one, too.
    func leave(_ user: UserKey) async -> [CredentialNews] {
        guard let userID = user.userID, leaving.remove(user) != nil else { return [] }
        let isSigned: Bool
        if settings.provider != nil || cache[user] != nil || signed.contains(user) {
            isSigned = true
        } else {
            isSigned = await stored.find(userID) != .none
        }
        switch await stored.leave(userID, isSigned: isSigned) {
        case .isBack: return []
        case .failed: unforgotten.insert(user)
        case .forgotten: signed.remove(user)
        }
        forget(user)
        await stored.removeSettled()
        return [.forgotten(user)]
    }

    private func forget(_ user: UserKey) {
        cache.remove(user)
        isStored[user] = nil
        verdicts[user] = nil
        standings[user] = nil
        forgettings.of[user, default: 0] += 1
    }

    /// Writes again what the disk has not taken: tokens and log-outs.
    private func retrySaving() async {
        for user in unforgotten {
            guard let userID = user.userID, cache[user] == nil else { continue }
            if await stored.leave(userID, isSigned: true) != .failed { unforgotten.remove(user) }
        }
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

    // MARK: Keeping

    /// Takes a token and stores it. Returns its generation; nil if it is the one that is there already.
    private func set(
        _ token: SignedToken, for user: UserKey, from origin: SignedUserTokens.Origin
    ) async -> Int? {
        guard let userID = user.userID else { return nil }
        guard let generation = cache.set(token, for: user) else {
            // This process or another may be about to forget it.
            if origin != .provider { isStored[user] = await stored.save(token, of: userID, from: origin) }
            return nil
        }
        unforgotten.remove(user)
        standings[user] = nil
        isStored[user] = await stored.save(token, of: userID, from: origin)
        return generation
    }

    /// The next `forgetAll` keeps what the app has handed over after this count.
    func willForget(upTo count: Int) -> [CredentialNews] {
        forgottenCount = count
        return []
    }

    func forgetAll() async {
        let kept = lastWords.filter { $0.value > forgottenCount }.keys.compactMap { user in
            leaving.contains(user) ? nil : token(of: user).map { (user, $0) }
        }
        forgottenCount = .max
        cache.removeAll()
        isStored = [:]
        signed = []
        unforgotten = []
        leaving = []
        verdicts = [:]
        standings = [:]
        forgettings.ofAll += 1
        distrustsStore = await !stored.tokens.removeAll()
        for (user, token) in kept { _ = await set(token, for: user, from: .app) }
    }

    /// Reads a user's token from the store where none is known, and where it was refused: another process may have a newer.
    private func load(_ user: UserKey, _ userID: String, replacing rejected: Int?) async
        -> SignedUserTokens.Found
    {
        if cache[user] != nil { await forgetIfLoggedOutElsewhere(user, userID) }
        guard cache[user] == nil || cache[user]?.generation == rejected else { return .none }
        if unforgotten.contains(user) { return .loggedOut }
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

    /// Deletes a token from memory if it is no longer in the store, because another process has logged the user out.
    private func forgetIfLoggedOutElsewhere(_ user: UserKey, _ userID: String) async {
        let version = stored.users.version
        guard isStored[user] == true, !leaving.contains(user), seenVersions[user] != version else { return }
        switch await stored.find(userID) {
        case .none, .lost, .loggedOut:
            // Events recorded since then wait for a token.
            signed.insert(user)
            forget(user)
        case .token: seenVersions[user] = version
        case .unreadable: break
        }
    }

    /// Why nothing may go as long as there is no token; nil if the server is the judge of that.
    private static func obstacle(_ found: SignedUserTokens.Found) -> ServerAnswer.Explanation? {
        switch found {
        case .loggedOut:
            .init("logged_out", "the user has logged out; what was left waits until there is a token again")
        case .lost: .init("no_token", "the user's token is not stored; what waits needs another one")
        case .unreadable: .init("store_unreadable", "the stored token cannot be read now")
        case .token, .none: nil
        }
    }

    // MARK: Finding

    func credential(
        for user: UserKey, replacing rejected: Int?,
        post: @escaping @Sendable (@escaping CredentialWork) -> Void
    ) async -> CredentialDecision {
        guard let userID = user.userID else { return .ready(Credential(settings.scheme, token: nil)) }
        let found = await load(user, userID, replacing: rejected)
        let entry = cache[user]
        let obstacle = entry == nil ? Self.obstacle(found) : nil
        let current = obstacle == nil ? credential(of: user) : nil
        guard let provider = settings.provider else {
            guard let obstacle else { return .ready(credential(of: user)) }
            // Only the app can have another token; a store may be open again soon.
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
        searches = searches.filter { $0.value.call.isRunning || !$0.value.hasTimedOut }
        if let search = searches[user] {
            return search.hasTimedOut ? .doubtful(current, Self.timedOut) : .pending
        }
        if let standing = standings[user], clock.uptime < standing.retryAt {
            return .doubtful(current, standing.problem)
        }
        guard searches.count < settings.maximumCalls else {
            if searches.values.contains(where: { !$0.hasTimedOut }) {
                waiting.insert(user)
                return .pending
            }
            // Those that are over time may never return.
            return .doubtful(
                current, .init("provider_busy", "the provider is asked for other users already"))
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
        searches[user] = Search(
            call: call, reason: reason, baseline: baseline, requestTime: clock.now, task: task)
        return .pending
    }

    private static let timedOut = ServerAnswer.Explanation("provider_timed_out", "the provider took too long")

    /// Takes what the provider has returned. Now those may be asked for who had to wait.
    private func returned(
        _ call: TokenProviderCall, _ outcome: TokenProviderCall.Outcome, for user: UserKey
    ) async -> [CredentialNews] {
        var news: [CredentialNews] = []
        if let failure = await settle(call, outcome, for: user) { news.append(.failed(failure)) }
        news.append(.sought(user))
        news += waiting.map { .sought($0) }
        waiting = []
        return news
    }

    /// Returns what to tell the app; nil if there is a token.
    private func settle(
        _ call: TokenProviderCall, _ outcome: TokenProviderCall.Outcome, for user: UserKey
    ) async -> AuthenticationFailure? {
        guard let search = searches[user], search.call === call else { return nil }
        if case .timedOut = outcome { searches[user]?.hasTimedOut = true } else { searches[user] = nil }
        if baseline(of: user) != search.baseline { return nil }
        let problem: ServerAnswer.Explanation
        switch outcome {
        case .token(let text):
            guard let token = SignedToken(text) else {
                problem = .init("token_malformed", "the provider returned something that is no token")
                break
            }
            if token == cache[user]?.token, search.reason == .rejected {
                problem = .init("token_unchanged", "the provider returned the same token again")
                break
            }
            let generation = await set(token, for: user, from: .provider) ?? self.generation(of: user)
            // Never withheld: the device clock may be what is wrong, and only an answer can tell.
            doubtful[user] = isExpired(token, margin: Self.expiryMargin) ? generation : nil
            standings[user] = nil
            return nil
        case .none: problem = .init("no_token", "the provider has no token")
        case .failed: problem = .init("provider_failed", "the provider threw an error")
        case .timedOut: problem = Self.timedOut
        }
        let code: AuthErrorCode =
            switch search.reason {
            case .missing: .missingToken
            case .rejected: verdicts[user]?.code ?? .expired
            default: .expired
            }
        let failures = (standings[user]?.failures ?? 0) + 1
        // Not at once even if chance says so.
        let delay = max(1, settings.retry.delay(afterFailure: failures, fraction: random()))
        standings[user] = Standing(
            failures: failures, retryAt: clock.uptime + delay, problem: problem, code: code)
        return failure(
            code, problem.code, of: user, token: token(of: user), origin: .provider,
            requestTime: search.requestTime)
    }

    /// Asks the provider again even if it has just failed.
    func resume() async {
        for user in standings.keys { standings[user]?.retryAt = clock.uptime }
        await retrySaving()
    }

    /// Waits for the provider no longer, and writes again what could not be written.
    func stop() async {
        for search in searches.values { search.task.cancel() }
        await retrySaving()
    }

    // MARK: Time

    /// Judged in the server's time: the device clock may be wrong.
    func isExpired(_ token: SignedToken, margin: TimeInterval = 0) -> Bool {
        guard let expiresAt = token.expiresAt else { return false }
        return expiresAt <= clock.now.timeIntervalSince1970 + clockOffset + margin
    }
}
