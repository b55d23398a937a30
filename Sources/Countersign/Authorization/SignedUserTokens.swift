internal import CountersignCore

/// What is stored of signed users' tokens, and of who has logged out: that user's events never go without one.
struct SignedUserTokens: Sendable {
    enum Found: Sendable, Equatable {
        case token(SignedToken)
        case none
        /// There is none any more, and there are events of the time when there was one.
        case loggedOut
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
                    if draft.departure(of: userID) == .left { try store.removeToken(for: userID) }
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

    /// Stores a token, also one that is not new where the user is logging out. One that the app hands over ends that.
    func save(_ token: SignedToken, of userID: String, isNew: Bool, from origin: Origin) async {
        await tokens.perform("token could not be stored") { [users] store, storage in
            try users.change { draft in
                let departure = draft.departure(of: userID)
                if isNew || departure != nil { try store.store(token.rawValue, for: userID) }
                switch departure {
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
    }

    func beginLeaving(_ userID: String) async {
        await tokens.perform("log-out could not be stored") { [users] _, storage in
            guard !storage.hasOptedOut else { return }
            try users.change { $0.beginLeaving(userID, holder: storage.holder.id) }
        }
    }

    /// Ends a log-out: the token is forgotten, and what is left waits for another one if the user was ever `isSigned`.
    func leave(_ userID: String, isSigned: Bool) async -> Ending {
        let ending = await tokens.perform("token could not be forgotten") {
            [users] store, storage -> Ending in
            // Asked first: it may log, and what the app does then must find the file of users unlocked.
            let hasEvents = storage.hasEvents(of: userID)
            return try users.change { draft in
                let departure = draft.departure(of: userID)
                if departure == .back {
                    draft.setDeparture(nil, of: userID)
                    return .isBack
                }
                let leavesEvents = (isSigned || departure == .left) && hasEvents
                // First, since without it they would go without a token.
                if leavesEvents {
                    draft.setDeparture(.left, of: userID)
                    try draft.write()
                }
                do {
                    try store.removeToken(for: userID)
                } catch {
                    // Whoever finds it knows that it is none.
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
}

extension Storage {
    /// Whether anything of this user's waits or is set aside; true also if nobody knows. Only on the storage thread.
    fileprivate func hasEvents(of userID: String) -> Bool {
        let hasEvents = try? withQueue { queue in try queue.hasEvents(of: userID) }
        return hasEvents ?? true || takeOverFailure != nil
    }
}
