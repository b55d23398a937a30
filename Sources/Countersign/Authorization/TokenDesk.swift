internal import CountersignCore
internal import Foundation

/// Finds the token for a request: the last known one, the stored one, or a new one of the provider.
///
/// The provider is called beside everything else: never twice at the same time for one user, and for a few users at most.
/// After a failure it is left alone for a while that grows with each further one.
actor TokenDesk {
    enum Decision {
        /// Send with the book's token; 0: there is none, and the server decides about that.
        case ready(generation: Int)
        /// The provider is asked; `returned` is to follow. If it is asked for others first, `takeWaiting` has the user.
        case pending
        /// The provider has no better token than the book's, and is left alone for now; 0: there is none at all.
        case unavailable(generation: Int, ServerAnswer.Explanation)
    }

    /// What to tell the app of a call of the provider.
    struct Failure {
        let problem: ServerAnswer.Explanation
        let code: AuthErrorCode
        /// When the call began.
        let requestTime: Date
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

    private let provider: TokenProvider?
    /// Calls of the provider at the same time, all for different users.
    private let maximumCalls: Int
    private let timeout: TimeInterval
    private let store: any TokenStore
    private let storage: Storage
    private let clock: any ClientClock
    private let log: CountersignLog?
    private var loaded: Set<UserKey> = []
    /// How often the token of one user was forgotten, and those of all.
    private var forgettings: (of: [UserKey: Int], ofAll: Int) = ([:], 0)
    private let retry: RetryPolicy
    private var searches: [UserKey: Search] = [:]
    private var standings: [UserKey: Standing] = [:]
    /// Who is asked for when calls for others have returned.
    private var waiting: Set<UserKey> = []
    /// Generations that the provider has just returned and the device clock calls expired: the server is the judge.
    private var doubtful: [UserKey: Int] = [:]

    private var book = TokenBook()
    /// What the last refusal of a user's token said.
    private var verdicts: [UserKey: ServerAnswer.TokenVerdict] = [:]
    private var serverClock = ServerClock()

    init(
        configuration: CountersignConfiguration, storage: Storage, clock: any ClientClock,
        maximumCalls: Int = ProviderThread.isApart ? 4 : 1
    ) {
        self.maximumCalls = maximumCalls
        provider = configuration.tokenProvider
        timeout = configuration.tokenProviderTimeout
        retry = configuration.networkRetry
        store = configuration.makeTokenStore()
        log = configuration.log
        self.storage = storage
        self.clock = clock
    }

    /// The newest token.
    func token(of user: UserKey) -> SignedToken? { book[user]?.token }

    /// The generation of the newest token; 0 if there is none.
    func generation(of user: UserKey) -> Int { book[user]?.generation ?? 0 }

    func baseline(of user: UserKey) -> Baseline {
        Baseline(
            generation: generation(of: user),
            forgettings: forgettings.ofAll + forgettings.of[user, default: 0])
    }

    /// The code of the last refusal, if nothing was accepted since.
    func lastCode(of user: UserKey) -> AuthErrorCode? { verdicts[user]?.code }

    /// A server has looked at the user's token; nil: and had nothing to say.
    func noteVerdict(_ verdict: ServerAnswer.TokenVerdict?, for user: UserKey) {
        verdicts[user] = verdict
    }

    func noteServerTime(_ date: Date) {
        serverClock.learn(date, now: clock.now, uptime: clock.uptime)
    }

    /// Seconds by which the server's clock is ahead of the device's; 0 if nothing is known.
    var clockOffset: TimeInterval { serverClock.offset(now: clock.now, uptime: clock.uptime) }

    // MARK: Keeping

    /// Takes a token and stores it.
    ///
    /// - Returns: Its generation; nil if it is the one that is there already.
    func set(_ token: SignedToken, for user: UserKey) async -> Int? {
        guard let userID = user.userID, let generation = book.set(token, for: user) else { return nil }
        loaded.insert(user)
        standings[user] = nil
        await withStore("token could not be stored") { store in try store.store(token.rawValue, for: userID) }
        return generation
    }

    func forget(_ user: UserKey) async {
        guard let userID = user.userID else { return }
        book.remove(user)
        loaded.insert(user)
        verdicts[user] = nil
        standings[user] = nil
        forgettings.of[user, default: 0] += 1
        await withStore("token could not be forgotten") { store in try store.removeToken(for: userID) }
    }

    func forgetAll() async {
        book.removeAll()
        verdicts = [:]
        standings = [:]
        forgettings.ofAll += 1
        await withStore("tokens could not be forgotten") { store in try store.removeAll() }
    }

    /// Reads a user's token from the store: once, and again when it was refused, since another process may have a newer.
    private func load(_ user: UserKey, again: Bool) async {
        guard let userID = user.userID, again || !loaded.contains(user) else { return }
        let text = await withStore("token could not be read") { store in try store.token(for: userID) }
        guard let text else { return }
        loaded.insert(user)
        if let token = text.flatMap(SignedToken.init) { _ = book.set(token, for: user) }
    }

    @discardableResult
    private func withStore<Result: Sendable>(
        _ failure: StaticString, _ body: @escaping @Sendable (any TokenStore) throws -> Result
    ) async -> Result? {
        do {
            return try await storage.run { [store] _ in try body(store) }
        } catch {
            log?(.warning, failure, ["error": "\(error)"])
            return nil
        }
    }

    // MARK: Finding

    /// - Parameters:
    ///   - user: Whose events are to be sent.
    ///   - rejectedGeneration: The token that the server has refused last; another one is needed.
    ///   - returned: Called, after `pending`, when the provider has returned or its time is up.
    ///   - late: Takes a token of a provider that has returned after its time was up.
    /// - Returns: Whether to send.
    func authorize(
        _ user: UserKey, rejectedGeneration: Int?,
        returned: @escaping @Sendable (TokenProviderCall, TokenProviderCall.Outcome) -> Void,
        late: @escaping @Sendable (SignedToken, Baseline) -> Void
    ) async -> Decision {
        guard let userID = user.userID else { return .ready(generation: 0) }
        await load(user, again: rejectedGeneration != nil && rejectedGeneration == book[user]?.generation)
        let entry = book[user]
        let generation = entry?.generation ?? 0
        guard let provider else { return .ready(generation: generation) }
        let reason: TokenRequest.Reason
        if entry == nil {
            reason = .missing
        } else if entry?.generation == rejectedGeneration {
            reason = .rejected
        } else if let entry, doubtful[user] != generation, isExpired(entry.token, margin: Self.expiryMargin) {
            reason = .expired
        } else {
            return .ready(generation: generation)
        }
        searches = searches.filter { $0.value.call.isRunning || !$0.value.hasTimedOut }
        if let search = searches[user] {
            return search.hasTimedOut ? .unavailable(generation: generation, Self.timedOut) : .pending
        }
        if let standing = standings[user], clock.uptime < standing.retryAt {
            return .unavailable(generation: generation, standing.problem)
        }
        guard searches.count < maximumCalls else {
            if searches.values.contains(where: { !$0.hasTimedOut }) {
                waiting.insert(user)
                return .pending
            }
            // Those that are over time may never return.
            return .unavailable(
                generation: generation,
                .init("provider_busy", "the provider is asked for other users already"))
        }
        let baseline = baseline(of: user)
        let call = TokenProviderCall(
            TokenRequest(
                userID: userID, reason: reason, code: reason == .rejected ? verdicts[user]?.code : nil),
            provider: provider
        ) { text in
            if let token = SignedToken(text) { late(token, baseline) }
        }
        let task = Task { [timeout, clock] in
            returned(call, await call.outcome(within: timeout, on: clock))
        }
        searches[user] = Search(
            call: call, reason: reason, baseline: baseline, requestTime: clock.now, task: task)
        return .pending
    }

    private static let timedOut = ServerAnswer.Explanation("provider_timed_out", "the provider took too long")

    /// Takes what the provider has returned.
    ///
    /// - Returns: What to tell the app; nil if there is a token.
    func returned(
        _ call: TokenProviderCall, _ outcome: TokenProviderCall.Outcome, for user: UserKey, fraction: Double
    ) async -> Failure? {
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
            if token == book[user]?.token, search.reason == .rejected {
                problem = .init("token_unchanged", "the provider returned the same token again")
                break
            }
            let generation = await set(token, for: user) ?? self.generation(of: user)
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
        let delay = max(1, retry.delay(afterFailure: failures, fraction: fraction))
        standings[user] = Standing(
            failures: failures, retryAt: clock.uptime + delay, problem: problem, code: code)
        return Failure(problem: problem, code: code, requestTime: search.requestTime)
    }

    /// Those for whom to `authorize` again, now that a call has returned or its time is up.
    func takeWaiting() -> Set<UserKey> {
        defer { waiting = [] }
        return waiting
    }

    /// The code under which the app has heard that the provider fails; nil if it does not.
    func providerCode(of user: UserKey) -> AuthErrorCode? { standings[user]?.code }

    /// Asks the provider again even if it has just failed.
    func resume() {
        for user in standings.keys { standings[user]?.retryAt = clock.uptime }
    }

    /// Waits for the provider no longer.
    func stop() {
        for search in searches.values { search.task.cancel() }
    }

    // MARK: Time

    /// Judged in the server's time: the device clock may be wrong.
    func isExpired(_ token: SignedToken, margin: TimeInterval = 0) -> Bool {
        guard let expiresAt = token.expiresAt else { return false }
        return expiresAt <= clock.now.timeIntervalSince1970 + clockOffset + margin
    }

    /// Seconds by which the device clock is ahead of the server's (negative: behind), if a token that the server calls
    /// expired would still be good by the device clock.
    func clockSkew(_ token: SignedToken, verdict: ServerAnswer.TokenVerdict) -> TimeInterval? {
        guard verdict.code == .expired, let expiresAt = token.expiresAt,
            expiresAt > clock.now.timeIntervalSince1970
        else { return nil }
        return -clockOffset
    }
}
