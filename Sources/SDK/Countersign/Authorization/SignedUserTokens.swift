internal import CountersignCore

/// The stored tokens of signed users, and the signed-out users. Their events are never sent without a token.
struct SignedUserTokens: Sendable {
    enum Found: Sendable, Equatable {
        case token(SignedToken)
        case none
        /// The user has logged out, and events from the signed-in period remain.
        case loggedOut
        /// The user had a token, but the store does not have it.
        case lost
        /// The store cannot be read now.
        case unreadable
    }

    enum Ending: Sendable {
        case forgotten
        /// Another process received a token while this process sent the remaining events.
        case isBack
        case failed
    }

    let tokens: StoredTokens
    let users: StoredUser

    func find(_ userID: String) async -> Found {
        let found = await tokens.perform("token could not be read") { [users] store, _ -> Found in
            let text = try store.token(for: userID)
            if users.load().departure(of: userID) != .left {
                return text.flatMap(SignedToken.init).map { .token($0) } ?? .none
            }
            if text != nil {
                // An earlier removal of the token failed. Retry it.
                try? users.change { draft in
                    guard draft.departure(of: userID) == .left else { return }
                    try draft.checkLock()
                    try store.removeToken(for: userID)
                }
            }
            return .loggedOut
        }
        return found ?? .unreadable
    }

    enum Origin: Sendable {
        case provider
        case app
        /// The app, after this client began to log out the user.
        case appWhileLeaving
    }

    /// Stores a token that the app passes with events, before the events are acknowledged. Call in the order
    /// of the app's calls: a token cancels a log-out that began earlier.
    func keep(_ token: SignedToken, of userID: String) {
        tokens.submit("token could not be stored", isToken: true) { [users] store, storage in
            try Self.store(token, of: userID, from: .appWhileLeaving, in: store, storage, users)
        }
    }

    /// Stores a token. A token from the app cancels a log-out. Returns false if the store has failed.
    func save(_ token: SignedToken, of userID: String, from origin: Origin) async -> Bool {
        await tokens.perform("token could not be stored") { [users] store, storage in
            try Self.store(token, of: userID, from: origin, in: store, storage, users)
        } != nil
    }

    private static func store(
        _ token: SignedToken, of userID: String, from origin: Origin, in store: any TokenStore,
        _ storage: Storage, _ users: StoredUser
    ) throws {
        try users.change { draft in
            if try store.token(for: userID) != token.rawValue {
                try draft.checkLock()
                try store.store(token.rawValue, for: userID)
            }
            switch draft.departure(of: userID) {
            case .leaving:
                // The log-out is written before the engine receives it, and possibly before this token.
                let isBack =
                    switch origin {
                    case .provider: false
                    case .app: draft.isLeavingElsewhere(userID, than: storage.holder.id)
                    case .appWhileLeaving: true
                    }
                if isBack { draft.setDeparture(.back, of: userID) }
            case .left: draft.setDeparture(nil, of: userID)
            case .back, nil: break
            }
        }
    }

    /// Stores a log-out, in the order of the app's calls. Calls `done` when the log-out is durable.
    func keepLogOut(of userID: String, done: @escaping @Sendable () -> Void) {
        tokens.submit("log-out could not be stored") { [users] _, storage in
            if !storage.hasOptedOut {
                try users.change { $0.beginLeaving(userID, holder: storage.holder.id) }
            }
            done()
        }
    }

    func beginLeaving(_ userID: String) async {
        await tokens.perform("log-out could not be stored") { [users] _, storage in
            guard !storage.hasOptedOut else { return }
            try users.change { $0.beginLeaving(userID, holder: storage.holder.id) }
        }
    }

    /// Completes a log-out by removing the token. If the user ever had a token (`isSigned`), remaining events
    /// wait.
    func leave(_ userID: String, isSigned: Bool) async -> Ending {
        let hasEvents = try? await tokens.storage.run { $0.hasEvents(of: userID) }
        let ending = await tokens.perform("token could not be forgotten") { [users] store, _ -> Ending in
            try users.change { draft in
                let departure = draft.departure(of: userID)
                if departure == .back {
                    draft.setDeparture(nil, of: userID)
                    return .isBack
                }
                let leavesEvents = (isSigned || departure == .left) && hasEvents ?? true
                // Before the token is removed: without this entry the events would be sent without a token.
                if leavesEvents {
                    draft.setDeparture(.left, of: userID)
                    try draft.write()
                }
                try draft.checkLock()
                do {
                    try store.removeToken(for: userID)
                } catch {
                    // With this entry, a token still in the store is not used.
                    draft.setDeparture(.left, of: userID)
                    try draft.write()
                    throw error
                }
                if !leavesEvents { draft.setDeparture(nil, of: userID) }
                return .forgotten
            }
        }
        return ending ?? .failed
    }

    /// Removes the entries of signed-out users without waiting events.
    func removeSettled() async {
        let settled = try? await tokens.storage.run { [users] storage -> [String] in
            let left = users.load().left
            // Other processes may have events of these users in their logs.
            guard !left.isEmpty, storage.ownsAllLogs else { return [] }
            return left.filter { !storage.hasEvents(of: $0) }
        }
        guard let settled, !settled.isEmpty else { return }
        await tokens.perform("log-outs could not be removed") { [users] store, _ in
            try users.change { draft in
                for user in settled where draft.departure(of: user) == .left {
                    try draft.checkLock()
                    try store.removeToken(for: user)
                    draft.setDeparture(nil, of: user)
                }
            }
        }
    }
}
