import CountersignCore
package import CountersignDelivery

/// A token store with hooks that may block or throw.
package final class HookedTokenStore: TokenStore {
    package struct Hooks: Sendable {
        package var didRead: @Sendable () throws -> Void = {}
        package var willStore: @Sendable (_ token: String) throws -> Void = { _ in }
        package var willRemove: @Sendable () throws -> Void = {}

        package init() {}
    }

    private let store: FileTokenStore
    private let hooks: Lock<Hooks>

    package init(_ store: FileTokenStore, _ change: (inout Hooks) -> Void = { _ in }) {
        self.store = store
        hooks = Lock(Hooks())
        setHooks(change)
    }

    /// Replaces all hooks.
    package func setHooks(_ change: (inout Hooks) -> Void = { _ in }) {
        var new = Hooks()
        change(&new)
        hooks.withLock { [new] hooks in hooks = new }
    }

    package func token(for userID: String) throws -> String? {
        let token = try store.token(for: userID)
        try hooks.withLock { $0.didRead }()
        return token
    }

    package func store(_ token: String, for userID: String) throws {
        try hooks.withLock { $0.willStore }(token)
        try store.store(token, for: userID)
    }

    package func removeToken(for userID: String) throws {
        try hooks.withLock { $0.willRemove }()
        try store.removeToken(for: userID)
    }

    package func removeAll() throws {
        try hooks.withLock { $0.willRemove }()
        try store.removeAll()
    }
}
