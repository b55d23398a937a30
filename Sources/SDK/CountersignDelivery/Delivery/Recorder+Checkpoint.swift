internal import CountersignCore
internal import Foundation

/// Checkpoints: from the write-ahead log to the queue file. On the storage thread.
extension Recorder {
    /// Moves all events into the queue file, or schedules a retry.
    func checkpoint(by storage: Storage) {
        do {
            try storage.checkpoint()
            state.withLock { _ = $0.jobs.remove(.checkpoint) }
        } catch {
            checkpointFailed(error)
        }
    }

    /// Writes the events in memory to the log first.
    func checkpoint(into queue: EventQueue, maximumBytes: Int) throws {
        let entries = writing.withLock {
            let batches = state.withLock { $0.unwritten.waitingCount / Self.batchEvents + 1 }
            for _ in 0..<batches where !writeBatch() { break }
            log.rotate()
            return state.withLock { $0.logged.beginCheckpoint() }
        }
        let part = maximumBytes == .max ? entries : entries.prefix(bytes: maximumBytes, of: \.bytes)
        do {
            if let last = part.last?.sequence {
                try queue.append(try events(of: part), from: log.id)
                log.reclaim(through: state.withLock { $0.logged.endCheckpoint(part.count, through: last) })
                try? readDeviceID(from: queue)
            }
        } catch {
            state.withLock { $0.logged.failCheckpoint() }
            checkpointFailed(error)
            throw error
        }
        if part.count < entries.count { return stored(part.count) }
        // Wake the sender, which found no events while checkpoints failed.
        if state.withLock({ $0.disk.succeeded(.checkpoint) }) { stored(max(1, entries.count)) }
    }

    private func checkpointFailed(_ error: any Error) {
        let (isFirst, mustRetry) = state.withLock { state in
            state.jobs.remove(.checkpoint)
            let isFirst = state.disk.failed(.checkpoint, "\(error)")
            return state.isClosed ? (false, false) : (isFirst, state.schedule(.retry))
        }
        if isFirst { logger?(.warning, "events could not be moved to the queue file", ["error": "\(error)"]) }
        if mustRetry { scheduleRetry() }
    }

    private func events(of entries: [LogIndex.Entry]) throws -> [RenderedEvent] {
        let missing = entries.filter { $0.event == nil }.map(\.sequence)
        guard let first = missing.first, let last = missing.last else { return entries.compactMap(\.event) }
        let read = Dictionary(try log.events(in: first...last).map { ($0.sequence, $0) }) { $1 }
        return entries.compactMap { $0.event ?? read[$0.sequence] }
    }

    /// Moves all events into the queue file and makes them durable, because the log has failed. If that fails too,
    /// writes a new log without the events of `completions`.
    func replaceLog(_ completions: [PendingCompletion], _ storage: Storage) {
        var failure: CountersignError?
        if (try? storage.checkpoint()) != nil, storage.makeDurable(), isIdentityDurable() {
            writing.withLock {
                if state.withLock(\.logged.count) == 0 { log.restart() }
            }
        } else {
            failure = CountersignError(.notStored, "the disk failed")
            // Keeps sequence numbers, because the queue file may have the events of a transaction that failed.
            writing.withLock {
                let sequences = Set(completions.map(\.sequence))
                let kept = state.withLock { $0.logged.remove(sequences) }
                log.restart(keeping: (try? events(of: kept)) ?? kept.compactMap(\.event))
            }
        }
        for pending in completions { pending.completion(failure.map { .failure($0) } ?? pending.result) }
    }

    private func isIdentityDurable() -> Bool {
        guard let identityFile else { return true }
        return (try? identityFile.synchronize(by: makeDurable)) != nil
    }
}
