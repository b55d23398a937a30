internal import CountersignTransport
internal import Foundation

extension DeliveryPipeline {
    /// Where every record is, and what the pipeline is waiting for.
    package func snapshot() async -> CountersignSnapshot {
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
            let undeleted: Int
            (counts, undeleted, losses) = try await storage.run { [recorder] storage in
                try storage.withQueue { queue in
                    (
                        try Dictionary(
                            uniqueKeysWithValues: EventQueue.Counter.allCases.map {
                                ($0, try queue.value(of: $0))
                            }), storage.undeletedSequences.count, recorder.losses
                    )
                }
            }
            func count(_ counter: EventQueue.Counter) -> Int { counts[counter] ?? 0 }
            // What only the log has is on the disk and waits like the rest.
            snapshot.queued = max(0, count(.rows) - undeleted) + losses.logged
            snapshot.queuedBytes = count(.bytes)
            snapshot.recorded = count(.recorded) + losses.logged
            snapshot.sent = count(.sent) + undeleted
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

    // MARK: Records that wait

    /// The records that wait, oldest first, as they will be sent.
    package func waitingBodies() async throws(CountersignError) -> [[UInt8]] {
        await recorder.drain()
        return try await queue { queue in try queue.bodies() }
    }

    /// How many records wait.
    package func waitingCount() async throws(CountersignError) -> Int {
        await recorder.drain()
        return try await queue { queue in try queue.value(of: .rows) }
    }

    /// Removes a record that waits. Returns false if there is none.
    package func removeWaiting(messageID: String) async throws(CountersignError) -> Bool {
        await recorder.drain()
        return try await queue { queue in try queue.remove(messageID: messageID) }
    }

    /// Removes all records; tokens stay.
    package func removeAllWaiting() async throws(CountersignError) {
        try await stored { [recorder] in try await recorder.removeAll() }
    }

    // MARK: Quarantine

    /// The records that a server will never take as they are, oldest first.
    package func quarantined() async throws(CountersignError) -> [QuarantinedEvent] {
        try await queue { queue in try queue.quarantined() }
    }

    /// Puts all records of the quarantine back into the queue.
    package func requeueQuarantined() async throws(CountersignError) -> Int {
        let count = try await queue { [clock] queue in try queue.requeue(clock: clock) }
        engine.inbox.post(.stored(count))
        return count
    }

    /// Deletes all records of the quarantine for good.
    package func deleteQuarantined() async throws(CountersignError) -> Int {
        try await queue(usesReserve: true) { queue in try queue.deleteQuarantine() }
    }

    // MARK: Wiping

    /// Removes all records, those in quarantine too, all credentials, the owner and the id of this device. Throws
    /// `CountersignError` with `storageFailed` when the queue file cannot be written now.
    package func wipe(_ alsoForget: @escaping @Sendable () throws -> Void) async throws(CountersignError) {
        // Nobody is told of its end: that would be data again.
        _ = session.withLock { $0.end(uptime: clock.uptime) }
        try await stored { [recorder, storage] in
            try await recorder.wipe()
            try await storage.run { _ in try alsoForget() }
        }
        await engine.wiped()
        startSession()
    }

    /// As `wipe`, and records nothing from now on; in later runs neither if `isLasting`. It waits for the storage thread, so
    /// that whatever is called next comes after it, unless that thread itself waits for the device's first unlock. Tokens that
    /// are stored go right afterwards. Throws as `wipe` does; nothing is recorded all the same.
    package func wipeAndStop(
        isLasting: Bool, _ alsoForget: @escaping @Sendable () throws -> Void
    ) throws(CountersignError) {
        _ = session.withLock { $0.end(uptime: clock.uptime) }
        recorder.setOptedOut(true)
        recorder.forgetUser()
        let wipe: @Sendable (Storage) throws -> Void = { [recorder] storage in
            if isLasting { try storage.setOptedOut(true) }
            try recorder.removeAll(on: storage, forgettingDevice: true)
            try alsoForget()
        }
        defer {
            engine.inbox.post(.wiped(done: nil))
            // With another id than what was sent before.
            startSession()
        }
        guard !storage.isLocked else {
            return storage.submit { [log] storage in
                do {
                    try wipe(storage)
                } catch {
                    log?(.warning, "data could not be wiped", ["error": "\(error)"])
                }
            }
        }
        do {
            try storage.runNow(wipe)
        } catch {
            throw CountersignError(.storageFailed, "\(error)")
        }
    }

    /// Records nothing from now on, in later runs too, or records again.
    package func setOptedOut(_ isOut: Bool) async throws(CountersignError) {
        if isOut { recorder.setOptedOut(true) }
        try await stored { [storage] in try await storage.run { storage in try storage.setOptedOut(isOut) } }
        if !isOut { recorder.setOptedOut(false) }
    }

    /// Whether anything is recorded.
    package var isEnabled: Bool { !recorder.hasOptedOut }

    /// Records nothing and sends nothing on its own until it is enabled again, in later runs too. What waits stays.
    ///
    /// It waits for the thread that writes, so that the next record is kept or not as this says.
    package func setEnabled(_ isEnabled: Bool) {
        configure(isEnabled ? settings.flushPolicy : .manual, batchEvents: settings.batchEvents)
        recorder.writer.sync {
            do {
                // What only the log has would be thrown away.
                if !isEnabled { try storage.sync { _ in } }
                try storage.setOptedOut(!isEnabled)
            } catch {
                log?(.warning, "opting out could not be stored", ["error": "\(error)"])
            }
            recorder.setOptedOut(!isEnabled)
        }
    }

    // MARK: Errors

    private func queue<Result: Sendable>(
        usesReserve: Bool = false, _ body: @escaping @Sendable (EventQueue) throws -> Result
    ) async throws(CountersignError) -> Result {
        try await stored { [storage] in try await storage.perform(usesReserve: usesReserve, body) }
    }

    private func stored<Result: Sendable>(
        _ body: () async throws -> Result
    ) async throws(CountersignError) -> Result {
        do {
            return try await body()
        } catch let error as CountersignError {
            throw error
        } catch {
            throw CountersignError(.storageFailed, "\(error)")
        }
    }
}
