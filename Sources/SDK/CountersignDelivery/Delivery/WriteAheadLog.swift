internal import CountersignCore
internal import CountersignSQLite
internal import Foundation

/// A write-ahead log of events for the queue file. A plain write makes events survive the process, and one
/// `fdatasync`, which blocks no write, makes them durable (see docs/adr/0014).
///
/// Each client writes its own log, so processes need no lock. The queue file stores a checkpoint for each log, so each
/// event enters the queue exactly once, whichever process moves it. A log uses three files in turn. A file is emptied
/// only when a later transaction has made the move of its events durable.
///
/// Not thread-safe: `Recorder` holds a lock for all calls but `events(in:)`, `synchronize()` and `reclaim(through:)`.
package final class WriteAheadLog: @unchecked Sendable {
    private struct Slot {
        let path: String
        let file: OpenFile
        var size: Int64 = 0
        var last: Int64 = 0
        var mustSync = false
    }

    private struct State {
        var slots: [Slot] = []
        var active = 0
        /// The number in the first file's name. Each restart uses new names.
        var firstNumber = 0
        /// True until the directory entries of new files are flushed.
        var mustSyncDirectory = false
        /// The number of restarts and calls of `remove()`. A flush that began earlier does not cover new files.
        var generation = 0
        /// True after a failed flush. The system drops pages that it could not write, so another flush would wrongly
        /// succeed.
        var hasFailed = false
    }

    private static let fileCount = 3
    let id: String
    private let directory: URL
    private let makeDurable: @Sendable (_ descriptor: Int32) -> Bool
    private let empty: @Sendable (_ descriptor: Int32) -> Bool
    /// A lock, because `synchronize()` and `reclaim(through:)` run on other threads.
    private let state = Lock(State())
    /// Held while files are emptied, which may take long. Acquired before `state`.
    private let emptying = NSLock()
    /// Held during `restart(keeping:)` and `remove()`. Acquired before `emptying`.
    private let restarting = NSLock()
    private var lastSequence: Int64 = 0

    init(
        directory: URL, holder: LeaseOwner,
        makeDurable: @escaping @Sendable (_ descriptor: Int32) -> Bool = WriteAheadLog.makeDurable,
        empty: @escaping @Sendable (_ descriptor: Int32) -> Bool = WriteAheadLog.empty
    ) {
        self.directory = directory
        self.makeDurable = makeDurable
        self.empty = empty
        id = holder.id
    }

    /// Returns the events with sequence numbers in `range`, in ascending order.
    func events(in range: ClosedRange<Int64>) throws -> [RenderedEvent] {
        let paths = state.withLock { $0.slots.map(\.path) }
        return try Found(id: id, processID: getpid(), paths: paths).events(after: range.lowerBound - 1).events
            .filter { $0.sequence <= range.upperBound }
    }

    var last: Int64 { lastSequence }

    /// Numbers the events and appends all, or throws and appends none. They survive the process, not a power failure.
    @discardableResult
    func append(_ events: [RenderedEvent]) throws -> [RenderedEvent] {
        let numbered = zip((lastSequence + 1)..., events).map { $1.numbered($0) }
        try append(numbered: numbered)
        lastSequence += Int64(events.count)
        return numbered
    }

    /// Appends all events with their present sequence numbers, or throws and appends none.
    func append(numbered events: [RenderedEvent]) throws {
        guard let last = events.last?.sequence else { return }
        try openFiles()
        var bytes: [UInt8] = []
        bytes.reserveCapacity(events.reduce(0) { $0 + $1.body.count + 160 })
        for event in events { Frame.write(event, to: &bytes) }
        let slot = state.withLock { $0.slots[$0.active] }
        guard bytes.withUnsafeBytes({ DurableFile.writeAll($0, to: slot.file.descriptor) }) else {
            let error = CountersignError.failed("write", slot.path)
            // Remove a partial event. Before later events, it would count as damage.
            if ftruncate(slot.file.descriptor, off_t(slot.size)) != 0 { state.withLock { $0.slots = [] } }
            throw error
        }
        state.withLock { state in
            state.slots[state.active].size += Int64(bytes.count)
            state.slots[state.active].last = max(last, state.slots[state.active].last)
            state.slots[state.active].mustSync = true
        }
    }

    /// Makes appended events durable. After a failed flush every call throws until a successful `restart(keeping:)`, or
    /// `remove()`.
    func synchronize() throws {
        // Repeat if the log was restarted meanwhile, because the events may be in the new files only.
        while try synchronizeFiles() == false {}
    }

    /// Returns false if the log was restarted meanwhile.
    private func synchronizeFiles() throws -> Bool {
        let flush = restarting.withLock { beginFlush() }
        let result = Result { try run(flush) }
        return try restarting.withLock {
            try state.withLock { state in
                guard state.generation == flush.generation else { return false }
                guard case .failure(let error) = result else { return true }
                state.hasFailed = true
                throw error
            }
        }
    }

    private struct Flush {
        let slots: [Slot]
        let mustSyncDirectory: Bool
        let generation: Int
        let hasFailed: Bool
    }

    private func beginFlush() -> Flush {
        state.withLock { state in
            defer {
                for index in state.slots.indices { state.slots[index].mustSync = false }
                state.mustSyncDirectory = false
            }
            return Flush(
                slots: state.slots.filter(\.mustSync), mustSyncDirectory: state.mustSyncDirectory,
                generation: state.generation, hasFailed: state.hasFailed)
        }
    }

    private func run(_ flush: Flush) throws {
        guard !flush.hasFailed else { throw CountersignError(.notStored, "an earlier flush to disk failed") }
        for slot in flush.slots where !makeDurable(slot.file.descriptor) {
            throw CountersignError.failed("fdatasync", slot.path)
        }
        guard flush.mustSyncDirectory else { return }
        let code = synchronizeFile(directory.path)
        if code != 0 { throw CountersignError.failed("fsync", directory.path, code) }
    }

    package static func makeDurable(_ descriptor: Int32) -> Bool {
        #if canImport(Darwin)
            fcntl(descriptor, F_BARRIERFSYNC) == 0 || fsync(descriptor) == 0
        #else
            fdatasync(descriptor) == 0
        #endif
    }

    static func empty(_ descriptor: Int32) -> Bool { ftruncate(descriptor, 0) == 0 }

    /// Switches writes to an empty file, if there is one, so that the other files can be emptied.
    func rotate() {
        state.withLock { state in
            guard !state.slots.isEmpty, state.slots[state.active].size > 0,
                let empty = state.slots.indices.first(where: { state.slots[$0].size == 0 })
            else { return }
            state.active = empty
        }
    }

    /// Empties files without events after `sequence`, except for the file in use. Does not block writes.
    func reclaim(through sequence: Int64) {
        emptying.withLock {
            let spent = state.withLock { state in
                state.slots.indices.filter {
                    $0 != state.active && state.slots[$0].size > 0 && state.slots[$0].last <= sequence
                }.map { (index: $0, file: state.slots[$0].file) }
            }
            for (index, file) in spent where empty(file.descriptor) {
                state.withLock { state in
                    // A failed write may have removed all slots.
                    guard !state.slots.isEmpty else { return }
                    state.slots[index].size = 0
                    state.slots[index].mustSync = true
                }
            }
        }
    }

    /// Moves to new files that have only `events`, with their present sequence numbers, because the queue file may have
    /// these events. Deletes the former files once `events` are durable. Otherwise keeps the former files in use and
    /// returns false.
    @discardableResult
    func restart(keeping events: [RenderedEvent] = []) -> Bool {
        restarting.withLock {
            let former = emptying.withLock {
                state.withLock { state in
                    defer {
                        state = State(
                            firstNumber: state.firstNumber + Self.fileCount, generation: state.generation + 1)
                    }
                    return state
                }
            }
            do {
                try append(numbered: events)
                try run(beginFlush())
            } catch {
                state.withLock { state in
                    for slot in state.slots { unlink(slot.path) }
                    state = former
                    state.hasFailed = true
                }
                return false
            }
            for slot in former.slots { unlink(slot.path) }
            return true
        }
    }

    /// Removes the files. The queue file must have all their events.
    func remove() {
        restarting.withLock {
            emptying.withLock {
                state.withLock { state in
                    for slot in state.slots { unlink(slot.path) }
                    state = State(firstNumber: state.firstNumber, generation: state.generation + 1)
                }
            }
        }
    }

    /// Opens the three files if they are not open, or if the active one was moved or deleted.
    private func openFiles() throws {
        let areThere = state.withLock { state in
            state.slots.indices.contains(state.active)
                && FileLock.isInPlace(
                    state.slots[state.active].file.descriptor, state.slots[state.active].path)
        }
        if areThere { return }
        // Wait for `reclaim(through:)`. It could empty a file after this call has reopened it for new events.
        emptying.lock()
        defer { emptying.unlock() }
        try FileProtection.makeDirectory(directory)
        let firstNumber = state.withLock(\.firstNumber)
        let made = try (firstNumber..<firstNumber + Self.fileCount).map { number in
            let path = directory.appendingPathComponent(
                "\(Self.prefix)\(id)-\(getpid())-\(number)\(Self.suffix)"
            ).path
            let descriptor = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw CountersignError.failed("open", path) }
            return Slot(
                path: path, file: OpenFile(descriptor), size: Int64(lseek(descriptor, 0, SEEK_END)),
                last: lastSequence)
        }
        // Use an empty file, because a partial event before new events would count as damage.
        let active = made.firstIndex { $0.size == 0 } ?? 0
        state.withLock {
            $0 = State(
                slots: made, active: active, firstNumber: firstNumber, mustSyncDirectory: true,
                generation: $0.generation, hasFailed: $0.hasFailed)
        }
    }
}
