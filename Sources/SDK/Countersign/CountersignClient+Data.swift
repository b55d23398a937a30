extension CountersignClient {
    /// Where every event is, and what the SDK is waiting for.
    ///
    /// - Returns: The state at this moment; it does not wait for a request that is under way.
    public func snapshot() async -> CountersignSnapshot { await pipeline.snapshot() }

    // MARK: Quarantine

    /// The events that a server will never take as they are, oldest first.
    ///
    /// - Returns: At most `QueueLimits.maximumQuarantinedEvents`.
    /// - Throws: `CountersignError` with `storageFailed` when the queue file cannot be read now.
    public func quarantinedEvents() async throws(CountersignError) -> [QuarantinedEvent] {
        try await pipeline.quarantined()
    }

    /// Puts all events of the quarantine back into the queue, such as after a server was put right.
    ///
    /// - Returns: How many.
    /// - Throws: `CountersignError` with `storageFailed` when the queue file cannot be written now.
    @discardableResult
    public func requeueQuarantinedEvents() async throws(CountersignError) -> Int {
        try await pipeline.requeueQuarantined()
    }

    /// Deletes all events of the quarantine for good.
    ///
    /// - Returns: How many.
    /// - Throws: `CountersignError` with `storageFailed` when the queue file cannot be written now.
    @discardableResult
    public func deleteQuarantinedEvents() async throws(CountersignError) -> Int {
        try await pipeline.deleteQuarantined()
    }

    // MARK: Wiping

    /// Removes all events, also those in quarantine, all tokens, the user and the id of this device.
    ///
    /// A request that is under way cannot be taken back. What a server has already is the app's to delete there.
    ///
    /// - Throws: `CountersignError` with `storageFailed` when the queue file cannot be written now; call it again then.
    public func wipeData() async throws(CountersignError) {
        let removeUsers = removeUsers
        try await pipeline.wipe { [recorder, tokens, engine = pipeline.engine] in
            try removeUsers()
            guard !recorder.hasOptedOut else { return }
            // Whoever has come since the call stays, with the token that came along.
            let count = recorder.forgottenCount
            engine.post { await tokens.willForget(upTo: count) }
        }
    }

    private var removeUsers: @Sendable () throws -> Void {
        { [users = stored.users, identity, recorder] in
            try users.removeAll()
            recorder.saveIdentity { userID in
                identity.withLock { identity in
                    if UserKey(identity.user) != UserKey(userID) {
                        identity = StoredUser.Identity(user: userID)
                    }
                    identity.logOuts = []
                    return identity.bytes
                }
            }
        }
    }

    /// As `optOut()`, for a thread that may wait: whatever is called next comes after it. What fails is logged.
    package func optOutNow() {
        do {
            try pipeline.wipeAndStop(isLasting: true, removeUsers)
        } catch {
            log?(.warning, "data could not be wiped", ["error": "\(error)"])
        }
    }

    /// As the pipeline's `setEnabled`. The user of the meantime is kept for the next start.
    package func setEnabled(_ isEnabled: Bool) {
        pipeline.setEnabled(isEnabled)
        if isEnabled { saveIdentity() }
    }

    /// Removes all data and records nothing from now on, in later runs too, until `optIn()`.
    ///
    /// - Throws: `CountersignError` with `storageFailed` when that could not be made durable; nothing is recorded in this run
    ///   all the same.
    public func optOut() async throws(CountersignError) {
        try await pipeline.setOptedOut(true)
        try await wipeData()
    }

    /// Records again after `optOut()`.
    ///
    /// - Throws: `CountersignError` with `storageFailed` when that could not be made durable.
    public func optIn() async throws(CountersignError) {
        try await pipeline.setOptedOut(false)
        saveIdentity()
    }
}
