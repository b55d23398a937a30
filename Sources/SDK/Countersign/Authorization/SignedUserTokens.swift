internal import CountersignCore

/// The stored tokens of signed users, and the users who have logged out. Their events never go without a token.
struct SignedUserTokens: Sendable {
    enum Found: Sendable, Equatable {
        case token(SignedToken)
        case none
        /// There is none any more, and there are events of the time when there was one.
        case loggedOut
        /// There was one, and the store does not have it.
        case lost
        /// Nobody knows now whether there is one.
        case unreadable
    }

    enum Ending: Sendable {
        case forgotten
        /// Another process was handed a token while this one sent what was left.
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
                // It was to be forgotten, and could not be; perhaps now.
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
        /// The app, after the user had begun to log out in this client.
        case appWhileLeaving
    }

    /// Stores a token that the app hands over with events, before these are acknowledged. To be called in the order in which
    /// the app says it: a token ends a log-out that began before.
    func keep(_ token: SignedToken, of userID: String) {
        tokens.submit("token could not be stored", isToken: true) { [users] store, storage in
            try Self.store(token, of: userID, from: .appWhileLeaving, in: store, storage, users)
        }
    }

    /// Stores a token. One that the app hands over ends a log-out. Returns false if the store has failed.
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
                // This client writes that down before the engine hears of it, and perhaps before this token.
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

    /// Writes a log-out down, in the order in which the app says it. `done` follows when it is durable.
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

    /// Ends a log-out: removes the token. Events that are left wait for another one if the user was ever `isSigned`.
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
                // First, since without it they would go without a token.
                if leavesEvents {
                    draft.setDeparture(.left, of: userID)
                    try draft.write()
                }
                try draft.checkLock()
                do {
                    try store.removeToken(for: userID)
                } catch {
                    // A token that is still found is not used then.
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

    /// Removes the entries of users who have logged out and have nothing left that waits.
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
