internal import CountersignCore
internal import Foundation

/// Finds the token for a request: the last known one, the stored one, or a new one of the provider.
///
/// `DeliveryEngine` calls it, one call after the other, so there is never more than one search.
actor TokenDesk {
    enum Decision {
        /// Send with the book's token; 0: there is none, and the server decides about that.
        case ready(generation: Int)
        /// Do not send: the provider has no token that could help.
        case unavailable(ServerAnswer.Explanation, AuthErrorCode)
    }

    /// A token that expires this soon, in seconds, is replaced before it is used.
    private static let expiryMargin: TimeInterval = 5

    private let provider: TokenProvider?
    private let timeout: TimeInterval
    private let store: any TokenStore
    private let storage: Storage
    private let clock: any ClientClock
    private let log: CountersignLog?
    private var loaded: Set<UserKey> = []
    private var running: [UserKey: TokenProviderCall] = [:]

    private var book = TokenBook()
    /// What the last refusal of a user's token said.
    private var verdicts: [UserKey: ServerAnswer.TokenVerdict] = [:]
    /// Seconds by which the server's clock is ahead of the device's.
    private(set) var clockOffset: TimeInterval = 0

    init(configuration: CountersignConfiguration, storage: Storage, clock: any ClientClock) {
        provider = configuration.tokenProvider
        timeout = configuration.tokenProviderTimeout
        store = configuration.makeTokenStore()
        log = configuration.log
        self.storage = storage
        self.clock = clock
    }

    /// The newest token.
    func token(of user: UserKey) -> SignedToken? { book[user]?.token }

    /// The generation of the newest token; 0 if there is none.
    func generation(of user: UserKey) -> Int { book[user]?.generation ?? 0 }

    /// The code of the last refusal, if nothing was accepted since.
    func lastCode(of user: UserKey) -> AuthErrorCode? { verdicts[user]?.code }

    /// A server has looked at the user's token; nil: and had nothing to say.
    func noteVerdict(_ verdict: ServerAnswer.TokenVerdict?, for user: UserKey) {
        verdicts[user] = verdict
    }

    func noteServerTime(_ date: Date) {
        clockOffset = date.timeIntervalSince(clock.now)
    }

    // MARK: Keeping

    /// Takes a token and stores it.
    ///
    /// - Returns: Its generation; nil if it is the one that is there already.
    func set(_ token: SignedToken, for user: UserKey) async -> Int? {
        guard let userID = user.userID, let generation = book.set(token, for: user) else { return nil }
        loaded.insert(user)
        await withStore("token could not be stored") { store in try store.store(token.rawValue, for: userID) }
        return generation
    }

    func forget(_ user: UserKey) async {
        guard let userID = user.userID else { return }
        book.remove(user)
        loaded.insert(user)
        verdicts[user] = nil
        await withStore("token could not be forgotten") { store in try store.removeToken(for: userID) }
    }

    func forgetAll() async {
        book.removeAll()
        verdicts = [:]
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
    ///   - late: Takes a token of a provider that has returned after its time was up, with the generation of the newest
    ///     token at the time of the call.
    /// - Returns: Whether to send.
    func authorize(
        _ user: UserKey, rejectedGeneration: Int?, late: @escaping @Sendable (SignedToken, Int) -> Void
    ) async -> Decision {
        guard let userID = user.userID else { return .ready(generation: 0) }
        await load(user, again: rejectedGeneration != nil && rejectedGeneration == book[user]?.generation)
        let entry = book[user]
        guard let provider else { return .ready(generation: entry?.generation ?? 0) }
        let reason: TokenRequest.Reason
        if entry == nil {
            reason = .missing
        } else if entry?.generation == rejectedGeneration {
            reason = .rejected
        } else if let entry, isExpired(entry.token, margin: Self.expiryMargin) {
            reason = .expired
        } else {
            return .ready(generation: entry?.generation ?? 0)
        }
        let request = TokenRequest(
            userID: userID, reason: reason, code: reason == .rejected ? verdicts[user]?.code : nil)
        let outcome = await ask(provider, request, user: user, late: late)
        let problem: ServerAnswer.Explanation
        switch outcome {
        case .token(let text):
            guard let token = SignedToken(text) else {
                problem = .init("token_malformed", "the provider returned something that is no token")
                break
            }
            guard token != book[user]?.token else {
                problem = .init("token_unchanged", "the provider returned the same token again")
                break
            }
            guard !isExpired(token) else {
                problem = .init("token_expired", "the provider returned a token that has expired already")
                break
            }
            return .ready(generation: await set(token, for: user) ?? 0)
        case .none: problem = .init("no_token", "the provider has no token")
        case .failed: problem = .init("provider_failed", "the provider threw an error")
        case .timedOut: problem = .init("provider_timed_out", "the provider took too long")
        }
        let code: AuthErrorCode =
            switch reason {
            case .missing: .missingToken
            case .rejected: verdicts[user]?.code ?? .expired
            default: .expired
            }
        return .unavailable(problem, code)
    }

    /// Asks the provider, or goes on waiting for a call that is still under way: never two at a time.
    private func ask(
        _ provider: @escaping TokenProvider, _ request: TokenRequest, user: UserKey,
        late: @escaping @Sendable (SignedToken, Int) -> Void
    ) async -> TokenProviderCall.Outcome {
        if let call = running[user], call.isRunning { return .timedOut }
        let generation = book[user]?.generation ?? 0
        let call = TokenProviderCall(request, provider: provider) { text in
            if let token = SignedToken(text) { late(token, generation) }
        }
        running[user] = call
        let outcome = await call.outcome(within: timeout, on: clock)
        if !call.isRunning { running[user] = nil }
        return outcome
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
