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

    /// Makes all events durable in the queue file or in a new log, because a flush has failed. If that fails too, this
    /// client sends events of `completions` only if the queue file has them. The next client may send the others.
    func replaceLog(_ completions: [PendingCompletion], _ storage: Storage) {
        let isDurable = isIdentityDurable() && (areAllInQueue(storage) || restartLog())
        if !isDurable { state.withLock { $0.logged.remove(Set(completions.map(\.sequence))) } }
        let failure = CountersignError(.notStored, "the disk failed")
        for pending in completions { pending.completion(isDurable ? pending.result : .failure(failure)) }
    }

    private func areAllInQueue(_ storage: Storage) -> Bool {
        guard (try? storage.checkpoint()) != nil, storage.makeDurable() else { return false }
        writing.withLock {
            if state.withLock(\.logged.count) == 0 { log.restart() }
        }
        return true
    }

    /// Writes a new log of all events that are not known to be durable in the queue file.
    private func restartLog() -> Bool {
        writing.withLock {
            let logged = state.withLock(\.logged)
            do {
                let moved =
                    logged.moved > logged.durable ? try log.events(in: logged.durable + 1...logged.moved) : []
                let waiting = try events(of: logged.appended)
                return waiting.count == logged.appended.count && log.restart(keeping: moved + waiting)
            } catch {
                return false
            }
        }
    }

    private func isIdentityDurable() -> Bool {
        guard let identityFile else { return true }
        return (try? identityFile.synchronize(by: makeDurable)) != nil
    }
}
