internal import CountersignCore

extension CountersignClient {
    /// Where every event is, and what the SDK is waiting for.
    ///
    /// - Returns: The state at this moment; it does not wait for a request that is under way.
    public func snapshot() async -> CountersignSnapshot {
        var snapshot = CountersignSnapshot()
        let losses = recorder.losses
        snapshot.unsaved = losses.unsaved
        snapshot.dropped = losses.dropped
        snapshot.lastError = losses.lastError
        snapshot.sessionID = session.withLock { $0.id }
        do {
            let counts = try await storage.perform { queue in
                try Dictionary(
                    uniqueKeysWithValues: EventQueue.Counter.allCases.map { ($0, try queue.value(of: $0)) })
            }
            func count(_ counter: EventQueue.Counter) -> Int { counts[counter] ?? 0 }
            snapshot.queued = count(.rows)
            snapshot.queuedBytes = count(.bytes)
            snapshot.recorded = count(.recorded)
            snapshot.sent = count(.sent)
            snapshot.duplicates = count(.duplicates)
            snapshot.quarantined = count(.quarantined)
            snapshot.requeued = count(.requeued)
            snapshot.evictedByCount = count(.evictedByCount)
            snapshot.evictedByBytes = count(.evictedByBytes)
            snapshot.evictedByAge = count(.evictedByAge)
            snapshot.wiped = count(.wiped)
            snapshot.salvaged = count(.salvaged)
            snapshot.unreadable = count(.unreadable)
        } catch {
            snapshot.lastError = "\(error)"
        }
        snapshot.damagedFiles = (try? await storage.run { $0.damagedFiles }) ?? 0
        return await engine.describe(snapshot)
    }

    // MARK: Quarantine

    /// The events that a server will never take as they are, the oldest first.
    ///
    /// - Returns: At most `QueueLimits.maximumQuarantinedEvents`.
    /// - Throws: When the queue file cannot be read now.
    public func quarantinedEvents() async throws -> [QuarantinedEvent] {
        try await storage.perform { queue in try queue.quarantined() }
    }

    /// Puts all events of the quarantine back into the queue, such as after a server was put right.
    ///
    /// - Returns: How many.
    /// - Throws: When the queue file cannot be written now.
    @discardableResult
    public func requeueQuarantinedEvents() async throws -> Int {
        let count = try await storage.perform { [clock] queue in try queue.requeue(clock: clock) }
        engine.inbox.post(.stored(count))
        return count
    }

    // MARK: Wiping

    /// Removes all events, also those in quarantine, all tokens, the user and the id of this device.
    ///
    /// A request that is under way cannot be taken back. What a server has already is the app's to delete there.
    ///
    /// - Throws: When the queue file cannot be written now; call it again then.
    public func wipeData() async throws {
        recorder.wipe()
        try await storage.perform { queue in try queue.wipe() }
        await engine.wiped()
        startSession()
    }

    /// Removes all data and records nothing from now on, in later runs too, until `optIn()`.
    ///
    /// - Throws: When that could not be made durable; nothing is recorded in this run all the same.
    public func optOut() async throws {
        recorder.setOptedOut(true)
        try await storage.run { storage in try storage.setOptedOut(true) }
        try await wipeData()
    }

    /// Records again after `optOut()`.
    ///
    /// - Throws: When that could not be made durable.
    public func optIn() async throws {
        try await storage.run { storage in try storage.setOptedOut(false) }
        recorder.setOptedOut(false)
    }
}
