internal import CountersignCore
public import CountersignDelivery

/// A user's sign-out: which events may be sent with which token after `logOut()`.
///
/// The states of a user, and what is stored:
///
/// | State | `user.json` | Token | Events |
/// | --- | --- | --- | --- |
/// | signed in | no entry | stored | sent with the token |
/// | signing out | `signingOut` | stored | sent with the token; newer events have no user |
/// | signed out | `signedOut`, while events remain | removed | wait for another token |
/// | signed in again | `signedInAgain`, until the sign-out ends | stored | sent with the token |
///
/// Transitions:
///
/// - `logOut()` begins a sign-out. The user file of `Recorder` stores it at once, until `user.json` has it.
/// - After the remaining events were sent, the sign-out ends: the token is removed. If the user had a token and
///   events remain, the user is signed out. Otherwise the entry is removed: users of an app without tokens send
///   without one.
/// - A token from the app signs the user in again. If it comes during the sign-out, it is not removed at its end.
///   A token from the provider changes nothing.
/// - If the token cannot be removed, its removal is pending: the entry `signedOut` makes a token in the store
///   invalid, and the removal is retried.
/// - If the process ends first, the next client with this queue ends the sign-out.
struct SignOut: Codable, Equatable, Sendable {
    /// The raw values are those of earlier versions.
    enum State: String, Codable {
        case signingOut = "leaving"
        case signedOut = "left"
        case signedInAgain = "back"
    }

    let user: String
    let state: State
    /// The `LeaseHolder` of the client in which the user is signing out; otherwise empty.
    var client = ""

    enum CodingKeys: String, CodingKey {
        case user
        case state = "departure"
        case client = "holder"
    }

    /// The result of `SignedUserTokens.endSignOut`.
    enum Ending: Sendable {
        case removed
        /// Another process received a token while this process sent the remaining events.
        case signedInAgain
        /// The removal is pending.
        case failed
    }
}

// MARK: - Transitions

extension StoredUser.Draft {
    /// The users whose sign-out has not ended.
    var signingOut: [String] { signOuts.filter { $0.state == .signingOut }.map(\.user) }

    /// The signed-out users with waiting events.
    var signedOut: [String] { signOuts.filter { $0.state == .signedOut }.map(\.user) }

    func isSignedOut(_ userID: String) -> Bool { signOut(of: userID)?.state == .signedOut }

    /// Begins a sign-out. A user whose events already wait stays signed out.
    mutating func beginSignOut(of userID: String, in client: String) {
        if isSignedOut(userID) { return }
        set(SignOut(user: userID, state: .signingOut, client: client), of: userID)
    }

    /// Records that a token was stored.
    mutating func signIn(_ userID: String, from origin: SignedUserTokens.Origin, in client: String) {
        guard let signOut = signOut(of: userID) else { return }
        switch (signOut.state, origin) {
        case (.signedOut, _): set(nil, of: userID)
        // `user.json` has the sign-out before the engine, and possibly before this token.
        case (.signingOut, .app) where signOut.client == client: break
        case (.signingOut, .app), (.signingOut, .appDuringSignOut):
            set(SignOut(user: userID, state: .signedInAgain), of: userID)
        case (.signingOut, .provider), (.signedInAgain, _): break
        }
    }

    /// Marks the user as signed out, and makes that durable.
    mutating func writeSignedOut(_ userID: String) throws {
        set(SignOut(user: userID, state: .signedOut), of: userID)
        try write()
    }
}

// MARK: - Storage

extension SignedUserTokens {
    /// Stores a sign-out, in the order of the app's calls. Calls `done` when the sign-out is durable.
    func saveSignOut(of userID: String, done: @escaping @Sendable () -> Void) {
        tokens.submit("log-out could not be stored") { [users] _, storage in
            if !storage.hasOptedOut {
                try users.change { $0.beginSignOut(of: userID, in: storage.holder.id) }
            }
            done()
        }
    }

    /// Ends a sign-out by removing the token. If the user ever had a token (`isSigned`), remaining events wait.
    func endSignOut(of userID: String, isSigned: Bool) async -> SignOut.Ending {
        let hasEvents = try? await tokens.storage.run { $0.hasEvents(of: userID) }
        let ending = await tokens.perform("token could not be forgotten") {
            [users] store, _ -> SignOut.Ending in
            try users.change { draft in
                let state = draft.signOut(of: userID)?.state
                if state == .signedInAgain {
                    draft.set(nil, of: userID)
                    return .signedInAgain
                }
                let leavesEvents = (isSigned || state == .signedOut) && hasEvents ?? true
                // Before the token is removed: without this entry the events would be sent without a token.
                if leavesEvents { try draft.writeSignedOut(userID) }
                try draft.checkLock()
                do {
                    try store.removeToken(for: userID)
                } catch {
                    try draft.writeSignedOut(userID)
                    throw error
                }
                if !leavesEvents { draft.set(nil, of: userID) }
                return .removed
            }
        }
        return ending ?? .failed
    }

    /// Retries an earlier removal of a signed-out user's token.
    static func removePendingToken(
        of userID: String, in store: any TokenStore, _ users: StoredUser
    ) throws {
        try users.change { draft in
            guard draft.isSignedOut(userID) else { return }
            try draft.checkLock()
            try store.removeToken(for: userID)
        }
    }

    /// Removes the entries of signed-out users without waiting events.
    func removeEndedSignOuts() async {
        let ended = try? await tokens.storage.run { [users] storage -> [String] in
            let signedOut = users.load().signedOut
            // Other processes may have events of these users in their logs.
            guard !signedOut.isEmpty, storage.ownsAllLogs else { return [] }
            return signedOut.filter { !storage.hasEvents(of: $0) }
        }
        guard let ended, !ended.isEmpty else { return }
        await tokens.perform("log-outs could not be removed") { [users] store, _ in
            try users.change { draft in
                for user in ended where draft.isSignedOut(user) {
                    try draft.checkLock()
                    try store.removeToken(for: user)
                    draft.set(nil, of: user)
                }
            }
        }
    }
}

// MARK: - Tokens in memory

extension UserTokenSource {
    /// Begins a sign-out. `endSignOut` must follow when the remaining events were sent.
    func beginSignOut(of user: UserKey, at revision: Int) -> [CredentialUpdate] {
        guard user.userID != nil, isNewest(revision, of: user) else { return [] }
        signingOut.insert(user)
        return []
    }

    /// Removes the token of a user, unless the app has set a token since.
    func endSignOut(of user: UserKey) async -> [CredentialUpdate] {
        guard let userID = user.userID, signingOut.remove(user) != nil else { return [] }
        let isSigned: Bool
        if settings.provider != nil || cache[user] != nil || signed.contains(user) {
            isSigned = true
        } else {
            isSigned = await stored.find(userID) != .none
        }
        switch await stored.endSignOut(of: userID, isSigned: isSigned) {
        case .signedInAgain: return []
        case .failed: pendingRemoval.insert(user)
        case .removed: signed.remove(user)
        }
        removeToken(of: user)
        await stored.removeEndedSignOuts()
        return [.removed(user)]
    }

    func retryRemovals() async {
        for user in pendingRemoval {
            guard let userID = user.userID, cache[user] == nil else { continue }
            if await stored.endSignOut(of: userID, isSigned: true) != .failed { pendingRemoval.remove(user) }
        }
    }
}

// MARK: - The client

extension CountersignClient {
    /// Logs out the current user: sends the remaining events with the user's token, then removes the token.
    ///
    /// Events recorded after the call have no user. Events that cannot be sent now wait until the same user
    /// signs in with a token, in later runs of the app too; `CountersignSnapshot.parked` reports
    /// `logged_out`. If the user never had a token and the app has no token provider, the events are sent
    /// without one. A token that the app sets for this user before the method returns is kept.
    ///
    /// - Returns: The result of sending.
    @discardableResult
    public func logOut() async -> FlushResult {
        let user = beginSignOut()
        return await Self.endSignOut(of: user, tokens, pipeline.engine) { await flush() }
    }

    /// As `logOut`, in the order of the calls: events recorded after it returns have no user. Calls `ended`
    /// once, on any thread.
    package func logOut(_ ended: @escaping @Sendable (FlushResult) -> Void) {
        let user = beginSignOut()
        Task { ended(await Self.endSignOut(of: user, tokens, pipeline.engine) { await flush() }) }
    }

    private func beginSignOut() -> UserKey {
        endSession()
        let (userID, _, revision) = recorder.setUser(nil) { _ in
            identity.withLock { identity in
                if let userID = identity.user { saveSignOut(of: userID) }
                identity.signOut()
                return identity.bytes
            }
        }
        let user = UserKey(userID)
        pipeline.engine.post { [tokens] in await tokens.beginSignOut(of: user, at: revision) }
        startSession()
        return user
    }

    /// Writes a sign-out into `user.json`. Until then the identity holds it.
    private func saveSignOut(of userID: String) {
        stored.saveSignOut(of: userID) { [recorder, identity] in
            recorder.saveIdentity { _ in
                identity.withLock { identity in
                    identity.remove(signOutOf: userID)
                    return identity.bytes
                }
            }
        }
    }

    /// Sends the remaining events with the user's token, then removes the token.
    @discardableResult
    private static func endSignOut(
        of user: UserKey, _ tokens: UserTokenSource, _ engine: DeliveryEngine,
        afterFlush flush: () async -> FlushResult
    ) async -> FlushResult {
        let result = await flush()
        // If the client was closed, the next client ends the sign-out.
        if result.ending != .closed { await engine.perform { await tokens.endSignOut(of: user) } }
        return result
    }

    /// Ends the sign-outs that the last run of the app did not end.
    func resume(
        _ stored: StoredUser.Draft, and unwritten: [StoredUser.Identity.UnwrittenSignOut]
    ) {
        if !stored.signedOut.isEmpty { Task { [stored = self.stored] in await stored.removeEndedSignOuts() } }
        let revision = recorder.userRevision
        for user in Set((stored.signingOut + unwritten.map(\.user)).map { UserKey($0) }) {
            if let userID = user.userID { saveSignOut(of: userID) }
            // The task does not retain the client. If the client closes first, the next client ends the sign-out.
            Task { [engine = pipeline.engine, tokens] in
                await engine.perform { await tokens.beginSignOut(of: user, at: revision) }
                await Self.endSignOut(of: user, tokens, engine) { await engine.flush() }
            }
        }
    }
}
