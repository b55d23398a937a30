/// Calls the app's token store on the thread for credentials and logs its failures. A token that could not be stored
/// is used until the app ends.
package struct StoredTokens: Sendable {
    package let store: any TokenStore
    package let storage: Storage
    package let log: CountersignLog?

    package init(store: any TokenStore, storage: Storage, log: CountersignLog?) {
        self.store = store
        self.storage = storage
        self.log = log
    }

    /// Nil if the store cannot be read now; `.some(nil)` if it has no token.
    package func text(of owner: String) async -> String?? {
        await perform("token could not be read") { store, _ in try store.token(for: owner) }
    }

    package func save(_ token: SignedToken, of owner: String) async {
        await perform("token could not be stored") { store, _ in try store.store(token.rawValue, for: owner) }
    }

    /// Returns false if the tokens could not be removed.
    @discardableResult
    package func removeAll() async -> Bool {
        await perform("tokens could not be removed") { store, _ in try store.removeAll() } != nil
    }

    /// If the work fails, logs the error and returns nil.
    @discardableResult
    package func perform<Result: Sendable>(
        _ failure: StaticString, _ body: @escaping @Sendable (any TokenStore, Storage) throws -> Result
    ) async -> Result? {
        do {
            return try await storage.runCredentials { [store] storage in try body(store, storage) }
        } catch {
            log?(.warning, failure, ["error": "\(error)"])
            return nil
        }
    }

    package func submit(
        _ failure: StaticString, isToken: Bool = false,
        _ body: @escaping @Sendable (any TokenStore, Storage) throws -> Void
    ) {
        storage.submitCredentials(isToken: isToken) { [store, log] storage in
            do {
                try body(store, storage)
            } catch {
                log?(.warning, failure, ["error": "\(error)"])
            }
        }
    }
}
