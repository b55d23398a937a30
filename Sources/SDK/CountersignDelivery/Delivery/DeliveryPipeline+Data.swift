internal import CountersignTransport
internal import Foundation

extension DeliveryPipeline {
    package func snapshot() async -> CountersignSnapshot {
        var snapshot = CountersignSnapshot()
        snapshot.sessionID = session.withLock { $0.id }
        var losses = recorder.losses
        snapshot.queued = losses.logged
        snapshot.recorded = losses.logged
        do {
            let counts: [EventQueue.Counter: Int]
            let undeleted: [DeliveryOutcome]
            (counts, undeleted, losses) = try await storage.run { [recorder] storage in
                try storage.withQueue { queue in
                    (
                        try Dictionary(
                            uniqueKeysWithValues: EventQueue.Counter.allCases.map {
                                ($0, try queue.value(of: $0))
                            }), storage.undeleted, recorder.losses
                    )
                }
            }
            func count(_ counter: EventQueue.Counter) -> Int { counts[counter] ?? 0 }
            let delivered = undeleted.reduce(0) { $0 + $1.delivered.count }
            let rejected = undeleted.reduce(0) { $0 + $1.quarantined.count }
            // Events in the log are on disk and count as queued.
            snapshot.queued = max(0, count(.rows) - delivered - rejected) + losses.logged
            snapshot.queuedBytes = count(.bytes)
            snapshot.recorded = count(.recorded) + losses.logged
            snapshot.sent = count(.sent) + delivered
            snapshot.duplicates = count(.duplicates) + undeleted.reduce(0) { $0 + $1.duplicates }
            snapshot.quarantined = count(.quarantined) + rejected
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
        // Reading the queue file has moved events from memory to that file.
        snapshot.unsaved = losses.unsaved
        snapshot.dropped = losses.dropped
        snapshot.lastError = snapshot.lastError ?? losses.lastError
        snapshot.damagedFiles = (try? await storage.run { $0.damagedFiles }) ?? 0
        return await engine.describe(snapshot)
    }

    // MARK: Records that wait

    package func waitingBodies() async throws(CountersignError) -> [[UInt8]] {
        await recorder.drain()
        return try await queue { queue in try queue.bodies() }
    }

    package func waitingCount() async throws(CountersignError) -> Int {
        await recorder.drain()
        return try await queue { queue in try queue.value(of: .rows) }
    }

    /// Returns false if the queue has no record with this message id.
    package func removeWaiting(messageID: String) async throws(CountersignError) -> Bool {
        await recorder.drain()
        return try await queue { queue in try queue.remove(messageID: messageID) }
    }

    package func removeAllWaiting() async throws(CountersignError) {
        try await stored { [recorder, storage] in
            try await storage.run { try recorder.removeAll(on: $0, withDeviceID: false) }
        }
    }

    // MARK: Quarantine

    package func quarantined() async throws(CountersignError) -> [QuarantinedEvent] {
        try await queue { queue in try queue.quarantined() }
    }

    package func requeueQuarantined() async throws(CountersignError) -> Int {
        let count = try await queue { queue in try queue.requeue() }
        engine.inbox.post(.stored(count))
        return count
    }

    package func deleteQuarantined() async throws(CountersignError) -> Int {
        try await queue(usesReserve: true) { queue in try queue.deleteQuarantine() }
    }

    // MARK: Wiping

    /// Removes all records, also those in quarantine, all credentials, the owner and the device id. Throws
    /// `storageFailed` when the queue file cannot be written now.
    package func wipe(_ alsoRemove: @escaping @Sendable () throws -> Void) async throws(CountersignError) {
        // Do not report the end of the session, because a client would record it.
        _ = session.withLock { $0.end(uptime: clock.uptime) }
        recorder.removeUser()
        try await stored { [recorder, storage] in
            try await storage.run { storage in
                try recorder.removeAll(on: storage, withDeviceID: true)
                try alsoRemove()
            }
        }
        await engine.wiped()
        startSession()
    }

    /// Like `wipe`, but also stops recording, in later runs too if `isLasting`. Blocks until the data is removed,
    /// except before the device's first unlock. If this method throws, recording has stopped too.
    package func wipeAndStop(
        isLasting: Bool, _ alsoRemove: @escaping @Sendable () throws -> Void
    ) throws(CountersignError) {
        _ = session.withLock { $0.end(uptime: clock.uptime) }
        recorder.setOptedOut(true)
        recorder.removeUser()
        let wipe: @Sendable (Storage) throws -> Void = { [recorder] storage in
            if isLasting { try storage.setOptedOut(true) }
            try recorder.removeAll(on: storage, withDeviceID: true)
            try alsoRemove()
        }
        defer {
            engine.inbox.post(.wiped(done: nil))
            startSession()
        }
        guard !recorder.state.withLock(\.isLocked) else {
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

    /// Stops or resumes recording, also for later runs. An opt-out discards records that are not in the queue file.
    package func setOptedOut(_ isOut: Bool) async throws(CountersignError) {
        if isOut { recorder.setOptedOut(true) }
        try await stored { [storage] in try await storage.run { storage in try storage.setOptedOut(isOut) } }
        if !isOut { recorder.setOptedOut(false) }
    }

    package var isEnabled: Bool { !recorder.hasOptedOut }

    /// Stops or resumes recording and sending, also for later runs. Keeps queued records. Blocks until in effect.
    /// Before the device's first unlock, stopping returns at once and rejects new records. Resuming waits for it.
    package func setEnabled(_ isEnabled: Bool) {
        configure(isEnabled ? settings.flushPolicy : .manual, batchEvents: settings.batchEvents)
        let change: @Sendable () -> Void = { [recorder, storage, log] in
            do {
                // Move the events of the log to the queue file, because opting out discards the log.
                if !isEnabled { try storage.runNow { try $0.withQueue { _ in } } }
                try storage.setOptedOut(!isEnabled)
            } catch {
                log?(.warning, "opting out could not be stored", ["error": "\(error)"])
            }
            recorder.setOptedOut(!isEnabled)
        }
        // Before the first unlock the writer is suspended. Without a wait, events after resuming would be discarded.
        let isStopping = recorder.state.withLock { state in
            state.isStopping = state.isLocked && !isEnabled
            return state.isStopping
        }
        if isStopping {
            recorder.writer.async(execute: change)
        } else {
            recorder.writer.sync(execute: change)
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
