internal import CountersignCore
public import Foundation

/// Caches another provider's customer token until it is about to expire, a server rejects it or the customer changes.
///
/// ```swift
/// configuration.authorizationProvider = .suspending(
///     CachingAuthorizationProvider(provider, store: KeychainTokenStore(service: "com.example.customer-token")))
/// ```
///
/// A token without a readable expiry is not cached. If the store fails, the token is cached in memory. A stored token
/// is used only for the customer of its fetch, even if the app ended before the token could be removed.
public final class CachingAuthorizationProvider: AsyncAuthorizationProvider, CustomerObserving {
    private static let key = "customer-token"

    private enum Cached: Sendable {
        /// The store has not been read.
        case unknown
        case none
        case token(Entry, expiresAt: TimeInterval)
    }

    private struct Entry: Codable {
        let token: String
        /// Nil if the token was not fetched for a `BloomreachClient`. The store then has an empty dictionary, so that a
        /// later client does not use the token.
        var customerIDs: [String: String]?

        func isFor(_ customer: [String: String]?) -> Bool {
            guard let customer, let customerIDs else { return true }
            return customerIDs.isSame(as: customer)
        }

        var cached: Cached {
            guard let expiresAt = SignedToken(token)?.expiresAt else { return .none }
            return .token(self, expiresAt: expiresAt)
        }
    }

    private struct State {
        var cached = Cached.unknown
        /// Incremented when the cache is cleared, so that the result of an earlier fetch is not cached.
        var generation = 0
    }

    private let state = Lock(State())
    private let fetch: @Sendable () async throws -> String?
    private let observer: @Sendable (@Sendable (any CustomerObserving) -> Void) -> Void
    private let store: any TokenStore
    private let margin: TimeInterval
    private let now: @Sendable () -> Date

    /// Creates a provider.
    ///
    /// - Parameters:
    ///   - provider: Called when no cached token is valid for long enough.
    ///   - store: Stores the token: `KeychainTokenStore` on Apple platforms, `FileTokenStore` elsewhere. Use a
    ///     separate store for each project.
    ///   - margin: Seconds before its expiry at which a token is no longer used. Default: 60.
    ///   - now: The time, replaceable in tests.
    public init(
        _ provider: any AsyncAuthorizationProvider, store: any TokenStore, margin: TimeInterval = 60,
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        fetch = { try await provider.authorizationToken() }
        observer = { notify in (provider as? any CustomerObserving).map(notify) }
        self.store = store
        self.margin = margin
        self.now = now
    }

    /// Creates a provider from a blocking provider.
    ///
    /// - Parameters:
    ///   - provider: Called on its own thread, one call at a time.
    ///   - store: Stores the token, as in `init(_:store:margin:now:)`.
    ///   - margin: Seconds before its expiry at which a token is no longer used. Default: 60.
    ///   - now: The time, replaceable in tests.
    public convenience init(
        blocking provider: any AuthorizationProviderType, store: any TokenStore, margin: TimeInterval = 60,
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.init(BlockingProvider(provider: provider), store: store, margin: margin, now: now)
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func authorizationToken() async throws -> String? {
        let (cached, generation) = state.withLock { ($0.cached, $0.generation) }
        var found = cached
        if case .unknown = cached { found = read() }
        let customer = CustomerTokenCoordinator.customerIDs
        if case .token(let entry, let expiresAt) = found, now().timeIntervalSince1970 < expiresAt - margin,
            entry.isFor(customer), cache(found, generation)
        {
            return entry.token
        }
        guard let text = try await fetch() else { return nil }
        var entry = Entry(token: text, customerIDs: customer)
        if case .token = entry.cached, cache(entry.cached, generation) {
            entry.customerIDs = customer ?? [:]
            if let data = try? JSONEncoder().encode(entry) {
                try? store.store(String(decoding: data, as: UTF8.self), for: Self.key)
            }
            // If the cache was cleared while the token was stored, do not leave the token to the next run. The token
            // may belong to an earlier customer.
            if state.withLock({ $0.generation != generation }) { try? store.removeToken(for: Self.key) }
        }
        return text
    }

    /// Returns false if the cache was cleared since `generation`.
    private func cache(_ token: Cached, _ generation: Int) -> Bool {
        state.withLock { state in
            guard state.generation == generation else { return false }
            state.cached = token
            return true
        }
    }

    private func read() -> Cached {
        let text = try? store.token(for: Self.key)
        return text.flatMap { try? JSONDecoder().decode(Entry.self, from: Data($0.utf8)) }?.cached ?? .none
    }

    /// Removes the cached token.
    ///
    /// - Parameter customerIDs: Passed to the underlying provider if it is a `CustomerObserving`.
    public func customerChanged(to customerIDs: [String: String]) {
        clear()
        observer { $0.customerChanged(to: customerIDs) }
    }

    /// Removes the cached token.
    public func customerTokenRefused() {
        clear()
        observer { $0.customerTokenRefused() }
    }

    private func clear() {
        state.withLock { state in
            state.cached = .none
            state.generation += 1
        }
        try? store.removeToken(for: Self.key)
    }
}

/// `@unchecked Sendable`: fetches run on the serial `queue`, and calls overlap only with a fetch that has timed out.
private final class BlockingProvider: AsyncAuthorizationProvider, CustomerObserving, @unchecked Sendable {
    private let provider: any AuthorizationProviderType
    private let queue = DispatchQueue(label: "countersign.customer-token")

    init(provider: any AuthorizationProviderType) {
        self.provider = provider
    }

    func authorizationToken() async throws -> String? {
        await withCheckedContinuation { continuation in
            queue.async {
                // Set the task-local value again, because `queue` does not inherit it from the task.
                let token = TokenProviderCall.$isInside.withValue(true) {
                    self.provider.getAuthorizationToken()
                }
                continuation.resume(returning: token)
            }
        }
    }

    func customerChanged(to customerIDs: [String: String]) {
        (provider as? any CustomerObserving)?.customerChanged(to: customerIDs)
    }

    func customerTokenRefused() {
        (provider as? any CustomerObserving)?.customerTokenRefused()
    }
}
