extension CountersignClient {
    /// Returns the counters of the queue, and the reasons for which events wait.
    ///
    /// - Returns: The current state. Does not wait for a request in progress.
    public func snapshot() async -> CountersignSnapshot { await pipeline.snapshot() }

    // MARK: Quarantine

    /// Returns the events in quarantine, oldest first.
    ///
    /// - Returns: At most `QueueLimits.maximumQuarantinedEvents`.
    /// - Throws: `CountersignError`: `storageFailed` if the queue file cannot be read now, `closed` after `close()`.
    public func quarantinedEvents() async throws(CountersignError) -> [QuarantinedEvent] {
        try await pipeline.quarantined()
    }

    /// Moves all events of the quarantine back into the queue, such as after a server was repaired.
    ///
    /// - Returns: The number of events.
    /// - Throws: `CountersignError`: `storageFailed` if the queue file cannot be written now, `closed` after `close()`.
    @discardableResult
    public func requeueQuarantinedEvents() async throws(CountersignError) -> Int {
        try await pipeline.requeueQuarantined()
    }

    /// Deletes all events of the quarantine permanently.
    ///
    /// - Returns: The number of events.
    /// - Throws: `CountersignError`: `storageFailed` if the queue file cannot be written now, `closed` after `close()`.
    @discardableResult
    public func deleteQuarantinedEvents() async throws(CountersignError) -> Int {
        try await pipeline.deleteQuarantined()
    }

    // MARK: Wiping

    /// Removes all events, also those in quarantine, all tokens, the user and the device's ID.
    ///
    /// A request in progress is not cancelled. Data that a server already has must be deleted on the server.
    ///
    /// - Throws: `CountersignError` with `storageFailed` when the queue file cannot be written now. Retry then.
    public func wipeData() async throws(CountersignError) {
        let removeUsers = removeUsers
        try await pipeline.wipe { [recorder, tokens, engine = pipeline.engine] in
            try removeUsers()
            guard !recorder.hasOptedOut else { return }
            // The token source keeps tokens that the app sets after this revision.
            let revision = recorder.wipeRevision
            engine.post { await tokens.willRemoveAll(upTo: revision) }
        }
    }

    private var removeUsers: @Sendable () throws -> Void {
        { [users = stored.users, identity, recorder] in
            try users.removeAll()
            recorder.saveIdentity { userID in
                identity.withLock { identity in
                    identity.change(to: userID)
                    identity.logOuts = []
                    return identity.bytes
                }
            }
        }
    }

    /// Opts out and removes all data. Blocks, so that later calls take effect after the opt-out. Errors are logged.
    package func optOutNow() {
        do {
            try pipeline.wipeAndStop(isLasting: true, removeUsers)
        } catch {
            log?(.warning, "data could not be wiped", ["error": "\(error)"])
        }
    }

    /// Starts or stops recording and sending. Enabling also stores a user that was set while recording was stopped.
    package func setEnabled(_ isEnabled: Bool) {
        pipeline.setEnabled(isEnabled)
        if isEnabled { saveIdentity() }
    }

    /// Removes all data and stops recording, in later runs too, until `optIn()`.
    ///
    /// - Throws: `CountersignError` if the opt-out is not durable or data remains. Recording stops even then.
    public func optOut() async throws(CountersignError) {
        try await pipeline.setOptedOut(true)
        try await wipeData()
    }

    /// Records again after `optOut()`.
    ///
    /// - Throws: `CountersignError` with `storageFailed` when the change could not be made durable.
    public func optIn() async throws(CountersignError) {
        try await pipeline.setOptedOut(false)
        saveIdentity()
    }
}
