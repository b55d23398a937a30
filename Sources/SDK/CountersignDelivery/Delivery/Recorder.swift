internal import CountersignCore
internal import CountersignTransport
internal import Foundation

/// Accepts events on any thread, appends them to a write-ahead log, and checkpoints the log into the queue file.
///
/// The writer's thread renders events and appends them to the log. From then on the events survive the process. The
/// synchronizer makes the log durable and calls the completions. The storage thread moves events to the queue file
/// before each use of that file, and when the log is long. Only a wipe and a replacement of the log block the writer
/// for long. A caller that records faster than the writer waits for the writer, at most `waitTime` in each call.
package final class Recorder: Sendable {
    struct PendingCompletion {
        let sequence: Int64
        let result: Result<String, CountersignError>
        let completion: EventRecord.Completion
    }

    /// Each kind is scheduled once at a time.
    enum Job { case write, synchronize, checkpoint, retry }

    fileprivate struct DeviceID {
        var text: String
        /// True until the id is read from the queue file. Events are written earlier, because another process may lock
        /// that file.
        var isProvisional: Bool
    }

    struct State {
        var user: CurrentUser
        var sessionID: String
        var unwritten = UnwrittenEvents()
        var logged = LogIndex()
        var completions: [PendingCompletion] = []
        var jobs: Set<Job> = []
        var disk = DiskState()
        var waitingCallers = 0
        /// True before the device's first unlock: nothing can be written.
        var isLocked: Bool
        var isClosed = false
        var hasOptedOut = false
        /// True after `setEnabled(false)` before the first unlock, until the writer has stored the events before it.
        var isStopping = false
        var dropped = 0
        /// Nil until the first event without a user.
        fileprivate var deviceID: DeviceID?

        /// Returns false if the job is scheduled already.
        mutating func schedule(_ job: Job) -> Bool { jobs.insert(job).inserted }

        func rejection(bytes: Int, _ limits: QueueLimits) -> CountersignError? {
            if isClosed { return CountersignError(.closed, "the client is closed") }
            if hasOptedOut || isStopping { return CountersignError(.optedOut, "nothing is recorded") }
            let count = unwritten.count + logged.count
            // The log may hold as many events as the queue or the memory, whichever may hold more.
            if unwritten.count < limits.maximumUnsavedEvents,
                unwritten.bytes + bytes <= limits.maximumUnsavedBytes,
                count < max(limits.maximumEvents, limits.maximumUnsavedEvents),
                logged.bytes + unwritten.bytes + bytes <= max(limits.maximumBytes, limits.maximumUnsavedBytes)
            {
                return nil
            }
            return CountersignError(.tooManyUnsaved, "\(count) events wait for the disk")
        }
    }

    /// Above these limits of unwritten events, callers wait for the writer. A killed process then loses few events.
    private static let waitEvents = 64
    private static let waitBytes = 256 << 10
    private static let waitTime = DispatchTimeInterval.milliseconds(5)
    /// Small batches let waiting callers continue soon.
    static let batchEvents = 512
    let hasWritten = DispatchSemaphore(value: 0)
    let state: Lock<State>
    /// Held while the log is written to, rotated, restarted or removed.
    let writing = NSLock()
    let log: WriteAheadLog
    let identityFile: SlotFile?
    let makeDurable: @Sendable (_ descriptor: Int32) -> Bool
    let writer = DispatchQueue(label: "countersign.recording", qos: .userInitiated)
    let synchronizer = DispatchQueue(label: "countersign.durability", qos: .utility)
    let storage: Storage
    let limits: QueueLimits
    let clock: any ClientClock
    let logger: CountersignLog?
    let stored: @Sendable (Int) -> Void

    // `saveIdentity` writes to `identity`. `stored` is called on the writer's or the storage thread with the number of
    // events that the sender can claim.
    init(
        storage: Storage, limits: QueueLimits, clock: any ClientClock,
        userID: String? = nil, identity: SlotFile? = nil, sessionID: String, log: CountersignLog?,
        makeDurable: @escaping @Sendable (_ descriptor: Int32) -> Bool = WriteAheadLog.makeDurable,
        empty: @escaping @Sendable (_ descriptor: Int32) -> Bool = WriteAheadLog.empty,
        stored: @escaping @Sendable (Int) -> Void
    ) {
        self.storage = storage
        self.limits = limits
        self.clock = clock
        self.log = WriteAheadLog(
            directory: storage.directory, holder: storage.holder, makeDurable: makeDurable, empty: empty)
        identityFile = identity
        self.makeDurable = makeDurable
        logger = log
        self.stored = stored
        let isLocked = storage.isLocked
        state = Lock(State(user: CurrentUser(id: userID), sessionID: sessionID, isLocked: isLocked))
        storage.setCheckpoint { [weak self] queue, maximumBytes in
            try self?.checkpoint(into: queue, maximumBytes: maximumBytes)
        }
        guard isLocked else { return }
        // Before the first unlock, the writer waits until the storage thread runs. An unlocked device needs no wait for
        // that thread, which starts late on a busy machine.
        writer.suspend()
        storage.submit { [state, writer] _ in
            state.withLock { $0.isLocked = false }
            writer.resume()
        }
    }

    /// The numbers of events dropped from memory, not yet on disk, and only in the log, and the last write error.
    var losses: (dropped: Int, unsaved: Int, logged: Int, lastError: String?) {
        state.withLock { ($0.dropped, $0.unwritten.count, $0.logged.count, $0.disk.lastError) }
    }

    // MARK: The user

    package var userID: String? { state.withLock { $0.user.id } }

    package func isUser(_ userID: String?) -> Bool { state.withLock { $0.user.isUser(userID) } }

    package var userRevision: Int { state.withLock { $0.user.revision } }

    package var wipeRevision: Int { state.withLock { $0.user.wipeRevision } }

    /// Sets the user of later events. `identity` is called once, in the order of the changes, and returns the bytes
    /// to write before later events. Returns the former user and the revision of this call.
    package func setUser(
        _ userID: String?, identity: (_ isAnother: Bool) -> [UInt8]? = { _ in nil }
    ) -> (previous: String?, isAnother: Bool, revision: Int) {
        let (result, isIdle) = state.withLock { state in
            let previous = state.user.id
            let isAnother = !state.user.isUser(userID)
            state.user.set(userID)
            let bytes = identity(isAnother)
            let isChanged = bytes != state.user.identity || isAnother
            return (
                (previous, isAnother, state.user.revision), isChanged && setIdentity(bytes, in: &state)
            )
        }
        if isIdle { writer.async { self.write() } }
        return result
    }

    @discardableResult
    package func saveIdentity(
        _ identity: (_ userID: String?) -> [UInt8]?
    ) -> (id: String?, revision: Int) {
        let (result, isIdle) = state.withLock { state in
            ((state.user.id, state.user.revision), setIdentity(identity(state.user.id), in: &state))
        }
        if isIdle { writer.async { self.write() } }
        return result
    }

    /// Returns true if the caller must start the writer.
    private func setIdentity(_ identity: [UInt8]?, in state: inout State) -> Bool {
        guard identityFile != nil else { return false }
        state.user.setIdentity(identity)
        return state.schedule(.write)
    }

    func setSession(_ sessionID: String) {
        state.withLock { $0.sessionID = sessionID }
    }

    // MARK: Events

    /// Blocks for at most `waitTime`, if the writer is behind. Without `owner` the event belongs to the current user.
    package func record(
        _ content: any RecordContent, messageID: String? = nil, owner: String? = nil,
        completion: EventRecord.Completion? = nil
    ) {
        let now = clock.now
        let bytes = content.estimatedBytes
        let (rejection, isIdle, mustWait) = state.withLock { state -> (CountersignError?, Bool, Bool) in
            if let rejection = state.rejection(bytes: bytes, limits) {
                if rejection.code == .tooManyUnsaved { state.dropped += 1 }
                return (rejection, false, false)
            }
            // Created under the lock, so that ids have the order of the events.
            state.unwritten.append(
                EventRecord(
                    content: content, messageID: messageID ?? UUIDv7.make(at: now),
                    userID: owner ?? state.user.id, sessionID: state.sessionID, timestamp: now, bytes: bytes,
                    completion: completion))
            let isBehind =
                state.unwritten.count > min(Self.waitEvents, limits.maximumUnsavedEvents / 2)
                || state.unwritten.bytes > min(Self.waitBytes, limits.maximumUnsavedBytes / 2)
            let mustWait = isBehind && !state.disk.isFailing(.log) && !state.isLocked
            if mustWait { state.waitingCallers += 1 }
            return (nil, state.schedule(.write), mustWait)
        }
        if let rejection { completion?(.failure(rejection)) }
        if isIdle { writer.async { self.write() } }
        if mustWait { waitForWriter() }
    }

    private func waitForWriter() {
        guard hasWritten.wait(timeout: .now() + Self.waitTime) == .timedOut else { return }
        let isCounted = state.withLock { state in
            guard state.waitingCallers > 0 else { return false }
            state.waitingCallers -= 1
            return true
        }
        // The writer is about to signal this caller. An unused signal would let a later caller continue at once.
        if !isCounted { hasWritten.wait() }
    }

    /// Moves all events recorded before this call into the queue file. Returns when that is done or has failed.
    func drain() async {
        await withCheckedContinuation { continuation in
            writer.async {
                self.write()
                self.storage.submit { storage in
                    self.checkpoint(by: storage)
                    continuation.resume()
                }
            }
        }
    }

    /// Stops recording and stores the remaining events.
    func close() async {
        state.withLock { $0.isClosed = true }
        await drain()
        await withCheckedContinuation { continuation in
            synchronizer.async {
                self.synchronize()
                self.storage.submit { storage in
                    // Remaining events stay in the log for the next client.
                    if self.state.withLock(\.logged.count) == 0, storage.makeDurable() {
                        self.writing.withLock { self.log.remove() }
                    }
                    continuation.resume()
                }
            }
        }
    }

    // MARK: Removing

    package var hasOptedOut: Bool { state.withLock { $0.hasOptedOut || $0.isStopping } }

    package func setOptedOut(_ isOut: Bool) {
        state.withLock { state in
            state.hasOptedOut = isOut
            state.isStopping = false
        }
        if isOut { _ = writing.withLock { discard() } }
    }

    /// Removes the user at once, so that a user set later stays.
    func removeUser() { state.withLock { $0.user.wipe() } }

    /// Removes all events, also from memory and the log. On the storage thread. Throws if the queue file cannot be
    /// written now.
    func removeAll(on storage: Storage, withDeviceID: Bool) throws {
        var events = 0
        try storage.withQueue(usesReserve: true, checkpoints: false) { queue in
            // Hold `writing`, so that no event is written meanwhile with the old device id.
            try writing.withLock {
                events += discard()
                try queue.wipe((log.id, log.last, events), forgettingDevice: withDeviceID)
                if withDeviceID { state.withLock { $0.deviceID = nil } }
                storage.clearDelivered()
            }
        }
        storage.shrinkEmptyQueue()
        storage.adoptLogs()
    }

    /// Discards the events that the queue file does not have, with `writing` held. Returns how many the log had.
    func discard() -> Int {
        log.restart()
        let (events, batch, error) = state.withLock { state in
            let batch = state.unwritten.begin()
            state.unwritten.end(batch)
            let error =
                state.hasOptedOut
                ? CountersignError(.optedOut, "nothing is recorded")
                : CountersignError(.notStored, "the data was wiped")
            return (state.logged.removeAll(), batch, error)
        }
        // Calls the completions without the lock, because a completion may record again.
        if !batch.isEmpty { synchronizer.async { for event in batch { event.completion?(.failure(error)) } } }
        return events
    }
}

// MARK: The device's id

extension Recorder {
    func nextBatch() -> (events: [EventRecord], deviceID: String, isProvisional: Bool)? {
        state.withLock { state in
            guard state.user.unwrittenRevision == nil else { return nil }
            let deviceID = state.deviceID ?? DeviceID(text: UUIDv7.make(), isProvisional: true)
            let batch = state.unwritten.begin(maximum: Self.batchEvents)
            if batch.contains(where: { $0.userID == nil }) { state.deviceID = deviceID }
            return (batch, deviceID.text, deviceID.isProvisional)
        }
    }

    /// Call it on the storage thread, so that a wipe cannot run between reading the id and setting it.
    func readDeviceID(from queue: EventQueue) throws {
        guard state.withLock({ $0.deviceID?.isProvisional == true }), !storage.hasOptedOut else { return }
        let id = try queue.anonymousID()
        state.withLock { $0.deviceID = DeviceID(text: id, isProvisional: false) }
    }
}
