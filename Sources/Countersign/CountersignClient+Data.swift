internal import CountersignCore
internal import Foundation

extension CountersignClient {
    /// Where every event is, and what the SDK is waiting for.
    ///
    /// - Returns: The state at this moment; it does not wait for a request that is under way.
    public func snapshot() async -> CountersignSnapshot {
        var snapshot = CountersignSnapshot()
        snapshot.sessionID = session.withLock { $0.id }
        // Those that the look at the queue file brings there are counted once.
        var losses = recorder.losses
        snapshot.unsaved = losses.unsaved
        snapshot.dropped = losses.dropped
        snapshot.lastError = losses.lastError
        snapshot.queued = losses.logged
        snapshot.recorded = losses.logged
        do {
            let counts: [EventQueue.Counter: Int]
            (counts, losses) = try await storage.perform { [recorder] queue in
                (
                    try Dictionary(
                        uniqueKeysWithValues: EventQueue.Counter.allCases.map {
                            ($0, try queue.value(of: $0))
                        }), recorder.losses
                )
            }
            func count(_ counter: EventQueue.Counter) -> Int { counts[counter] ?? 0 }
            // What only the log has is on the disk and waits like the rest.
            snapshot.queued = count(.rows) + losses.logged
            snapshot.queuedBytes = count(.bytes)
            snapshot.recorded = count(.recorded) + losses.logged
            snapshot.sent = count(.sent)
            snapshot.duplicates = count(.duplicates)
            snapshot.quarantined = count(.quarantined)
            snapshot.requeued = count(.requeued)
            snapshot.evictedFromQuarantine = count(.evictedFromQuarantine)
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

    /// Deletes all events of the quarantine for good.
    ///
    /// - Returns: How many.
    /// - Throws: When the queue file cannot be written now.
    @discardableResult
    public func deleteQuarantinedEvents() async throws -> Int {
        try await storage.perform(usesReserve: true) { queue in try queue.deleteQuarantine() }
    }

    // MARK: Wiping

    /// Removes all events, also those in quarantine, all tokens, the user and the id of this device.
    ///
    /// A request that is under way cannot be taken back. What a server has already is the app's to delete there.
    ///
    /// - Throws: When the queue file cannot be written now; call it again then.
    public func wipeData() async throws {
        // Nobody is told of its end: that would be data again.
        _ = session.withLock { $0.end(uptime: clock.uptime) }
        try await recorder.wipe()
        try await storage.run { [storedUser] _ in try storedUser.removeAll() }
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
        saveUser()
    }

    /// Whether anything is recorded.
    package var isEnabled: Bool { !recorder.hasOptedOut }

    /// Records nothing and sends nothing by itself until it is enabled again, in later runs too. What waits stays.
    ///
    /// It waits for the thread that writes, so that the next event is recorded or not as this says.
    package func setEnabled(_ isEnabled: Bool) {
        engine.inbox.post(
            .configure(isEnabled ? flushPolicy : .manual, batchEvents: batchEvents, newestFirst: false))
        recorder.writer.sync {
            do {
                try storage.setOptedOut(!isEnabled)
            } catch {
                log?(.warning, "opting out could not be stored", ["error": "\(error)"])
            }
            recorder.setOptedOut(!isEnabled)
        }
    }
}
