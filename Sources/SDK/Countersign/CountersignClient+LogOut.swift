internal import CountersignCore
public import CountersignDelivery

// The steps of a log-out. `LogOut` has the states and the transitions.

enum LogOutEnding: Sendable {
    case removed
    /// The app stored a new token of the user, here or in another process, while the remaining events were sent.
    case signedInAgain
    /// The token could not be removed, or `user.json` could not be written. `retryRemovals()` tries again.
    case failed
}

// MARK: - Storage

extension SignedUserTokens {
    /// Writes the log-out, in the order of the calls. Calls `done` when it is durable or the app has opted out.
    /// `storeIdentity` makes the change of the user durable first. Otherwise, a client that starts after a kill would
    /// remove the token, but restore the user.
    func saveLogOut(
        of userID: String, after storeIdentity: @escaping @Sendable () -> Void,
        done: @escaping @Sendable () -> Void
    ) {
        tokens.submit("log-out could not be stored") { [users] _, storage in
            if !storage.hasOptedOut {
                storeIdentity()
                try users.change { $0.beginLogOut(of: userID, in: storage.holder.id) }
            }
            done()
        }
    }

    /// Removes the token. With `isSigned` (the user had a token or there is a provider), remaining events wait for one.
    func endLogOut(of userID: String, isSigned: Bool) async -> LogOutEnding {
        // Other write-ahead logs may have events of this user too. `removeEndedLogOuts` then removes the log-out later.
        let hasEvents = try? await tokens.storage.run { $0.hasEvents(of: userID) || !$0.ownsAllLogs }
        let ending = await tokens.perform("token could not be removed") {
            [users] store, _ -> LogOutEnding in
            try users.change { draft in
                let state = draft.logOut(of: userID)?.state
                if state == .signedInAgain {
                    draft.set(nil, of: userID)
                    return .signedInAgain
                }
                let leavesEvents = LogOut.leavesEvents(
                    isSigned: isSigned, state: state, hasEvents: hasEvents)
                // Write the entry first. Without the entry and the token, the events would be sent without a token.
                if leavesEvents { try draft.writeLoggedOut(userID) }
                try draft.checkLock()
                do {
                    try store.removeToken(for: userID)
                } catch {
                    try draft.writeLoggedOut(userID)
                    throw error
                }
                if !leavesEvents { draft.set(nil, of: userID) }
                return .removed
            }
        }
        return ending ?? .failed
    }

    static func removePendingToken(
        of userID: String, in store: any TokenStore, _ users: StoredUser
    ) throws {
        try users.change { draft in
            guard draft.isLoggedOut(userID) else { return }
            try draft.checkLock()
            try store.removeToken(for: userID)
        }
    }

    /// Replaces a damaged `user.json`. Users with events and without a token then count as logged out, except
    /// `unsigned`: the current user if the app has neither set a token for this user nor a token provider.
    func replaceDamagedFile(exceptLogOutOf unsigned: String?) {
        tokens.submit("log-outs cannot be read") { [users, log = tokens.log] store, storage in
            let owners = try storage.runNow { try $0.owners() }
            try users.change(replacesDamaged: true) { draft in
                if draft.isReplacement { log?(.warning, "file of log-outs is damaged, replaced", [:]) }
                for owner in owners where draft.isReplacement && owner != unsigned {
                    if try store.token(for: owner) == nil {
                        draft.set(LogOut(user: owner, state: .loggedOut), of: owner)
                    }
                }
            }
        }
    }

    func removeEndedLogOuts() async {
        let ended = try? await tokens.storage.run { [users] storage -> [String] in
            let loggedOut = try users.load().loggedOut
            // Other processes may have events of these users in their write-ahead logs.
            guard !loggedOut.isEmpty, storage.ownsAllLogs else { return [] }
            return loggedOut.filter { !storage.hasEvents(of: $0) }
        }
        guard let ended, !ended.isEmpty else { return }
        await tokens.perform("log-outs could not be removed") { [users] store, _ in
            try users.change { draft in
                for user in ended where draft.isLoggedOut(user) {
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
    /// Marks a user as logging out. Call `endLogOut` after the flush, even if events remain.
    func beginLogOut(of user: UserKey, at revision: Int) -> [CredentialUpdate] {
        guard user.userID != nil, isNewest(revision, of: user) else { return [] }
        loggingOut.insert(user)
        return []
    }

    /// Removes the token of a user, unless the app has set a token since `beginLogOut`.
    func endLogOut(of user: UserKey) async -> [CredentialUpdate] {
        guard let userID = user.userID, loggingOut.remove(user) != nil else { return [] }
        let isSigned: Bool
        if settings.provider != nil || cache[user] != nil || signed.contains(user) {
            isSigned = true
        } else {
            isSigned = await stored.find(userID) != .none
        }
        switch await stored.endLogOut(of: userID, isSigned: isSigned) {
        case .signedInAgain: return []
        case .failed: pendingRemoval.insert(user)
        case .removed: signed.remove(user)
        }
        removeToken(of: user)
        await stored.removeEndedLogOuts()
        return [.removed(user)]
    }

    func retryRemovals() async {
        for user in pendingRemoval {
            guard let userID = user.userID, cache[user] == nil else { continue }
            if await stored.endLogOut(of: userID, isSigned: true) != .failed { pendingRemoval.remove(user) }
        }
    }
}

// MARK: - The client

extension CountersignClient {
    /// Logs out the current user: sends the remaining events with the user's token, then removes the token.
    ///
    /// Events recorded after the call have no user. Events that cannot be sent now wait, in later runs too, until the
    /// user signs in again with a token or the token provider returns one. Without a provider, `CountersignSnapshot`
    /// has them in `parked` as `logged_out`, and events of a user who never had a token are sent without one. A token
    /// that the app sets for this user before the method returns is kept.
    ///
    /// - Returns: The result of sending.
    @discardableResult
    public func logOut() async -> FlushResult {
        let user = beginLogOut()
        return await Self.endLogOut(of: user, tokens, pipeline.engine) { await flush() }
    }

    /// Logs out in the order of calls: events recorded after this call have no user. Calls `ended` once, on any
    /// thread, when the log-out has ended or failed, or the client is closed.
    package func logOut(_ ended: @escaping @Sendable (FlushResult) -> Void) {
        let user = beginLogOut()
        Task { ended(await Self.endLogOut(of: user, tokens, pipeline.engine) { await flush() }) }
    }

    private func beginLogOut() -> UserKey {
        endSession()
        let (userID, _, revision) = recorder.setUser(nil) { _ in
            identity.withLock { identity in
                if let userID = identity.user { saveLogOut(of: userID) }
                identity.logOut()
                return identity.bytes
            }
        }
        let user = UserKey(userID)
        pipeline.engine.post { [tokens] in await tokens.beginLogOut(of: user, at: revision) }
        startSession()
        return user
    }

    /// Writes the log-out into `user.json`. Until then `identity` has the log-out.
    private func saveLogOut(of userID: String) {
        stored.saveLogOut(
            of: userID, after: { [recorder] in recorder.storeIdentity() },
            done: { [recorder, identity] in
                recorder.saveIdentity { _ in
                    identity.withLock { identity in
                        identity.remove(logOutOf: userID)
                        return identity.bytes
                    }
                }
            })
    }

    /// Sends the remaining events with the user's token, then removes the token.
    @discardableResult
    private static func endLogOut(
        of user: UserKey, _ tokens: UserTokenSource, _ engine: DeliveryEngine,
        afterFlush flush: () async -> FlushResult
    ) async -> FlushResult {
        let result = await flush()
        // If the client was closed, the next client ends the log-out.
        if result.ending != .closed { await engine.perform { await tokens.endLogOut(of: user) } }
        return result
    }

    /// Ends the log-outs that the last run of the app did not end.
    func resume(_ stored: StoredUser.Draft?, and unwritten: [StoredUser.Identity.UnwrittenLogOut]) {
        if let stored, !stored.loggedOut.isEmpty {
            Task { [stored = self.stored] in await stored.removeEndedLogOuts() }
        }
        let revision = recorder.userRevision
        for user in Set(((stored?.loggingOut ?? []) + unwritten.map(\.user)).map { UserKey($0) }) {
            if let userID = user.userID { saveLogOut(of: userID) }
            // The task does not retain the client. If the client closes first, the next client ends the log-out.
            Task { [engine = pipeline.engine, tokens] in
                await engine.perform { await tokens.beginLogOut(of: user, at: revision) }
                await Self.endLogOut(of: user, tokens, engine) { await engine.flush() }
            }
        }
    }
}
