internal import CountersignCore

/// The stored tokens of signed users. `LogOut` has the rules for logged-out users.
struct SignedUserTokens: Sendable {
    enum Found: Sendable, Equatable {
        case token(SignedToken)
        case none
        /// The user has logged out, and events from the signed-in period remain.
        case loggedOut
        /// The user had a token, but the store does not have it.
        case lost
        case unreadable
    }

    let tokens: StoredTokens
    let users: StoredUser

    func find(_ userID: String) async -> Found {
        let found = await tokens.perform("token could not be read") { [users] store, _ -> Found in
            let text = try store.token(for: userID)
            guard try users.load().isLoggedOut(userID) else {
                return text.flatMap(SignedToken.init).map { .token($0) } ?? .none
            }
            if text != nil { try? Self.removePendingToken(of: userID, in: store, users) }
            return .loggedOut
        }
        return found ?? .unreadable
    }

    /// Stores a token in the background. `Storage.waitForTokens()` makes `record` wait for the token, for 5 s at most.
    /// Call in the order of the app's calls, because a token cancels an earlier log-out.
    func keep(_ token: SignedToken, of userID: String) {
        tokens.submit("token could not be stored", isToken: true) { [users] store, storage in
            try Self.store(token, of: userID, from: .appDuringLogOut, in: store, storage, users)
        }
    }

    /// Stores a token, which may end a log-out (`LogOut.tokenStored`). Returns false if a write has failed.
    func save(_ token: SignedToken, of userID: String, from origin: LogOut.TokenOrigin) async -> Bool {
        await tokens.perform("token could not be stored") { [users] store, storage in
            try Self.store(token, of: userID, from: origin, in: store, storage, users)
        } != nil
    }

    private static func store(
        _ token: SignedToken, of userID: String, from origin: LogOut.TokenOrigin, in store: any TokenStore,
        _ storage: Storage, _ users: StoredUser
    ) throws {
        try users.change { draft in
            if try store.token(for: userID) != token.rawValue {
                try draft.checkLock()
                try store.store(token.rawValue, for: userID)
            }
            let logOut = draft.logOut(of: userID)
            draft.set(logOut?.tokenStored(from: origin, in: storage.holder.id), of: userID)
        }
    }
}
