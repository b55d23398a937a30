internal import CountersignCore
internal import CountersignTransport
internal import Foundation

/// The writer and the synchronizer: from memory to the write-ahead log, and from there to the disk.
extension Recorder {
    /// Seconds between two attempts while the disk is full, unavailable or broken.
    private static let retryInterval: TimeInterval = 0.5

    /// Writes until no events are left or the disk fails. On the writer's thread.
    func write() {
        while true {
            let isDone = state.withLock { state in
                let isDone = !state.unwritten.isWaiting && state.user.unwrittenRevision == nil
                if isDone { state.jobs.remove(.write) }
                return isDone
            }
            if isDone { return }
            guard writing.withLock({ writeBatch() }) else { return }
        }
    }

    /// Writes the newest identity before its events, with `writing` held. Returns false if writing failed.
    private func writeIdentity() -> Bool {
        guard let identityFile else { return true }
        let (identity, revision) = state.withLock { state in
            (state.hasOptedOut ? nil : state.user.identity, state.user.unwrittenRevision)
        }
        guard let revision else { return true }
        do {
            try identityFile.write(identity)
            let mustSynchronize = state.withLock { state in
                state.user.wrote(revision)
                state.disk.succeeded(.log)
                return state.schedule(.synchronize)
            }
            if mustSynchronize { synchronizer.async { self.synchronize() } }
            return true
        } catch {
            retry(after: error)
            return false
        }
    }

    /// Makes the newest identity durable. If that fails, a retry is scheduled. Blocks.
    package func storeIdentity() {
        guard writing.withLock({ writeIdentity() }) else { return }
        try? identityFile?.synchronize(by: makeDurable)
    }

    /// Writes the identity, and takes the oldest waiting events. Returns nil if writing failed.
    private func identifiedBatch() -> (events: [EventRecord], deviceID: String, isProvisional: Bool)? {
        while writeIdentity() {
            if let batch = nextBatch() { return batch }
        }
        return nil
    }

    /// Appends the oldest waiting events to the log, with `writing` held. Returns false if writing failed.
    func writeBatch() -> Bool {
        // Another process may have opted out.
        if storage.hasOptedOut { state.withLock { $0.hasOptedOut = true } }
        if state.withLock(\.hasOptedOut) {
            _ = discard()
            return writeIdentity()
        }
        guard let (batch, deviceID, isProvisional) = identifiedBatch() else { return false }
        if batch.isEmpty { return true }
        let rendered = batch.map { event in
            RenderedEvent(
                messageID: event.messageID, userID: event.userID, sessionID: event.sessionID,
                body: event.content.rendered(for: event, anonymousID: deviceID), uptime: clock.uptime,
                provisionalID: event.userID == nil && isProvisional ? deviceID : nil)
        }
        do {
            guard storage.hasRoomForEvents() else { throw CountersignError(.notStored, "the disk is full") }
            wrote(batch, as: try log.append(rendered))
            let tooLarge = rendered.count { $0.body.count > limits.maximumEventBytes }
            stored(batch.count - tooLarge)
            return true
        } catch {
            retry(batch, after: error)
            return false
        }
    }

    private func wrote(_ batch: [EventRecord], as events: [RenderedEvent]) {
        let (mustSynchronize, mustCheckpoint, waitingCallers) = state.withLock { state in
            for (record, event) in zip(batch, events) {
                state.logged.append(
                    event, bytes: record.bytes, maximumInMemory: limits.maximumUnsavedBytes)
                guard let completion = record.completion else { continue }
                let result: Result<String, CountersignError> =
                    event.body.count <= limits.maximumEventBytes
                    ? .success(event.messageID)
                    : .failure(CountersignError(.eventTooLarge, "it is in quarantine"))
                state.completions.append(
                    PendingCompletion(sequence: event.sequence, result: result, completion: completion))
            }
            state.unwritten.end(batch)
            state.disk.succeeded(.log)
            let isLong =
                state.logged.count >= min(1_000, limits.maximumUnsavedEvents / 2)
                || state.logged.bytes >= min(512 << 10, limits.maximumUnsavedBytes / 2)
            let mustCheckpoint = isLong && !state.jobs.contains(.retry) && state.schedule(.checkpoint)
            defer { state.waitingCallers = 0 }
            return (state.schedule(.synchronize), mustCheckpoint, state.waitingCallers)
        }
        for _ in 0..<waitingCallers { hasWritten.signal() }
        if mustSynchronize { synchronizer.async { self.synchronize() } }
        if mustCheckpoint { storage.submit { self.checkpoint(by: $0) } }
    }

    /// Drops all unwritten events that have a completion, and calls it with the error. Retries the others, `batch`
    /// first. Once closed, drops all.
    private func retry(_ batch: [EventRecord] = [], after error: any Error) {
        let failure = CountersignError(.notStored, "\(error)")
        let (rejected, mustSchedule) = state.withLock { state in
            // The next attempts may fail with the same batch, so later events must not wait for their own attempt.
            let events = batch + state.unwritten.begin()
            let rejected = state.isClosed ? events : events.filter { $0.completion != nil }
            state.unwritten.end(rejected)
            state.disk.failed(.log, failure.detail)
            if state.isClosed {
                state.dropped += events.count
                state.jobs.remove(.write)
                return (rejected, false)
            }
            state.unwritten.retry(events.filter { $0.completion == nil })
            // While `.write` is scheduled, `record` does not start the writer. The retry writes new events too.
            state.jobs.insert(.write)
            return (rejected, state.schedule(.retry))
        }
        logger?(.warning, "events could not be stored", ["error": failure.detail])
        for event in rejected { event.completion?(.failure(failure)) }
        if mustSchedule { scheduleRetry() }
    }

    func scheduleRetry() {
        Task { [weak self, clock] in
            try await clock.sleep(until: clock.uptime + Self.retryInterval)
            guard let self else { return }
            let isLogFailing = state.withLock { state in
                state.jobs.remove(.retry)
                return state.disk.isFailing(.log)
            }
            if isLogFailing { storage.submit { $0.makeRoom() } }
            writer.async {
                self.write()
                self.storage.submit { self.checkpoint(by: $0) }
            }
        }
    }

    /// Makes the log durable, then calls the completions. On the synchronizer's thread.
    func synchronize() {
        let completions = state.withLock { state in
            state.jobs.remove(.synchronize)
            defer { state.completions = [] }
            return state.completions
        }
        do {
            try identityFile?.synchronize(by: makeDurable)
            try log.synchronize()
            // A token that was set before the events must be stored before the events are acknowledged.
            if !completions.isEmpty { storage.waitForTokens() }
            for pending in completions { pending.completion(pending.result) }
        } catch {
            logger?(.warning, "the log of events failed", ["error": "\(error)"])
            // After a failed flush, the content of the log on disk is unknown. Move its events to the queue file.
            storage.submit { storage in self.replaceLog(completions, storage) }
        }
    }
}
