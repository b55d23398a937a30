internal import CountersignCore
public import Foundation

/// Gives the customer token that another provider gave last, until it is near its end, a server refuses it or the customer
/// changes.
///
/// ```swift
/// configuration.authorizationProvider = .suspending(
///     CachingAuthorizationProvider(provider, store: KeychainTokenStore(service: "com.example.customer-token")))
/// ```
///
/// The vendor's SDKs keep no customer token and advise apps to keep it in a safe place; this is that place. A token whose end
/// cannot be read is not kept. What the store cannot keep is kept in memory.
public final class CachingAuthorizationProvider: AsyncAuthorizationProvider, CustomerObserving {
    /// The key of the token in the store.
    private static let key = "customer-token"

    private enum Cached: Sendable {
        /// Nobody has looked into the store.
        case unknown
        case none
        case token(SignedToken, expiresAt: TimeInterval)
    }

    private struct State {
        var cached = Cached.unknown
        /// Counts what empties the cache, so that an answer to an earlier question is not kept after it.
        var generation = 0
    }

    private let state = Lock(State())
    private let ask: @Sendable () async throws -> String?
    private let observer: @Sendable (@Sendable (any CustomerObserving) -> Void) -> Void
    private let store: any TokenStore
    private let margin: TimeInterval
    private let now: @Sendable () -> Date

    /// Makes a provider.
    ///
    /// - Parameters:
    ///   - provider: Asked when there is no token that is valid for long enough.
    ///   - store: Where the token is kept: `KeychainTokenStore` on Apple platforms, `FileTokenStore` elsewhere. A store of its
    ///     own for each customer project.
    ///   - margin: Seconds before its end at which a token is no longer used. Default: 60.
    ///   - now: The time, for tests.
    public init(
        _ provider: any AsyncAuthorizationProvider, store: any TokenStore, margin: TimeInterval = 60,
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        ask = { try await provider.authorizationToken() }
        observer = { news in (provider as? any CustomerObserving).map(news) }
        self.store = store
        self.margin = margin
        self.now = now
    }

    /// Makes a provider of one that may block.
    ///
    /// - Parameters:
    ///   - provider: Asked on its own thread, never by two at a time.
    ///   - store: As above.
    ///   - margin: As above.
    ///   - now: As above.
    public convenience init(
        blocking provider: any AuthorizationProviderType, store: any TokenStore, margin: TimeInterval = 60,
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.init(BlockingProvider(provider: provider), store: store, margin: margin, now: now)
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func authorizationToken() async throws -> String? {
        let (cached, generation) = state.withLock { ($0.cached, $0.generation) }
        var kept = cached
        if case .unknown = cached { kept = read() }
        if case .token(let token, let expiresAt) = kept,
            now().timeIntervalSince1970 < expiresAt - margin
        {
            let isCurrent = state.withLock { state in
                guard state.generation == generation else { return false }
                state.cached = kept
                return true
            }
            if isCurrent { return token.rawValue }
        }
        guard let text = try await ask() else { return nil }
        if let token = SignedToken(text), let expiresAt = token.expiresAt {
            let isCurrent = state.withLock { state in
                guard state.generation == generation else { return false }
                state.cached = .token(token, expiresAt: expiresAt)
                return true
            }
            if isCurrent {
                try? store.store(text, for: Self.key)
                // It was forgotten while it was being stored: the next run must not find an earlier customer's.
                if state.withLock({ $0.generation != generation }) { try? store.removeToken(for: Self.key) }
            }
        }
        return text
    }

    private func read() -> Cached {
        guard let text = try? store.token(for: Self.key), let token = SignedToken(text),
            let expiresAt = token.expiresAt
        else { return .none }
        return .token(token, expiresAt: expiresAt)
    }

    /// Forgets the token.
    ///
    /// - Parameter customerIDs: For the provider that is asked, if that wants to know.
    public func customerChanged(to customerIDs: [String: String]) {
        forget()
        observer { $0.customerChanged(to: customerIDs) }
    }

    /// Forgets the token.
    public func customerTokenRefused() {
        forget()
        observer { $0.customerTokenRefused() }
    }

    private func forget() {
        state.withLock { state in
            state.cached = .none
            state.generation += 1
        }
        try? store.removeToken(for: Self.key)
    }
}

/// `@unchecked Sendable`: whoever asks makes one call at a time.
private final class BlockingProvider: AsyncAuthorizationProvider, CustomerObserving, @unchecked Sendable {
    private let provider: any AuthorizationProviderType
    private let queue = DispatchQueue(label: "countersign.customer-token")

    init(provider: any AuthorizationProviderType) {
        self.provider = provider
    }

    func authorizationToken() async throws -> String? {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: self.provider.getAuthorizationToken()) }
        }
    }

    func customerChanged(to customerIDs: [String: String]) {
        (provider as? any CustomerObserving)?.customerChanged(to: customerIDs)
    }

    func customerTokenRefused() {
        (provider as? any CustomerObserving)?.customerTokenRefused()
    }
}
