internal import CountersignCore
internal import CountersignTransport
internal import Foundation

/// Takes events from any thread, writes them into a log at once, and brings them from there into the queue file.
///
/// The caller pays for a lock and an append. The writer's thread renders the events and appends them to `IncomingLog` with
/// a plain write; from then on they outlive the process. The synchronizer makes the log durable and then calls the
/// completions. The storage thread moves the events of the log to the queue file when the queue file is used, and when the
/// log has become long. None of the three waits for another.
///
/// A caller that records faster than the writer can write waits for it, for `waitTime` at most in each call.
package final class Recorder: Sendable {
    private struct Unsaved {
        let record: EventRecord
        let bytes: Int
        let completion: Completion?
    }

    package typealias Completion = @Sendable (Result<String, CountersignError>) -> Void

    /// An event that is in the log, and not yet in the queue file.
    private struct Logged {
        let sequence: Int64
        /// Nil if there was no room for it in memory: it is read from the log then.
        let row: RenderedEvent?
        let bytes: Int
    }

    /// A completion to call when the log is durable.
    private struct Waiting {
        let sequence: Int64
        let result: Result<String, CountersignError>
        let completion: Completion
    }

    private struct DeviceID {
        var text: String
        /// True until the id is read from the queue file. Events are written earlier, because another process may hold the file.
        var isProvisional: Bool
    }

    private struct State {
        var userID: String?
        /// The identity that is to be written before the events in `unsaved`; nil for none.
        var identity: [UInt8]?
        /// The number of changes of `identity`, in all and on disk.
        var identityChanges = 0
        var writtenIdentityChanges = 0
        /// The number of times the app has set the user.
        var userCount = 0
        /// The value of `userCount` when the user was last cleared.
        var forgottenCount = 0
        var sessionID: String
        var unsaved: [Unsaved] = []
        var logged: [Logged] = []
        /// The oldest events of the log, while the queue file takes them over. Separate from `logged`, to which other threads append.
        var taking: [Logged] = []
        var waiting: [Waiting] = []
        /// Number and bytes of the events in memory only: the events in `unsaved` and the batch that is being written.
        var unsavedEvents = 0
        var unsavedBytes = 0
        /// Bytes of the events in `logged` and `taking`, and of those among them that are in memory too.
        var loggedBytes = 0
        var keptBytes = 0
        /// Callers of `record` that wait for the writer.
        var waitingCallers = 0
        var isWriting = false
        var isSynchronizing = false
        var isTakingOver = false
        /// True before the device's first unlock: nothing can be written.
        var isHeld: Bool
        /// True while the next try waits for its time.
        var isWaitingForDisk = false
        /// True while the last write to the log has failed.
        var isLogFailing = false
        /// True while the queue file cannot take over the events of the log.
        var hasFallenBehind = false
        var isClosed = false
        var hasOptedOut = false
        var dropped = 0
        var lastError: String?
        /// The device's id for events without a user; nil until the first of them.
        var deviceID: DeviceID?
        /// Highest sequence number that is known to be durable in the queue file.
        var certain: Int64 = 0

        func isUser(_ other: String?) -> Bool {
            other.map { Array($0.utf8) } == userID.map { Array($0.utf8) }
        }

        var mustWriteIdentity: Bool { identityChanges > writtenIdentityChanges }

        /// The number of events that the queue file does not have yet.
        var loggedCount: Int { taking.count + logged.count }
    }

    /// Seconds between two tries to write while the disk is full, away or broken.
    private static let retryInterval: TimeInterval = 0.5
    /// Above these limits of events in memory only, callers wait for the writer, so that a kill loses few events.
    private static let waitEvents = 64
    private static let waitBytes = 256 << 10
    /// The longest that a caller waits for the writer.
    private static let waitTime = DispatchTimeInterval.milliseconds(5)
    /// Events that the writer appends at a time. Small batches let waiting callers continue soon.
    private static let batchEvents = 512
    private let hasWritten = DispatchSemaphore(value: 0)
    private let state: Lock<State>
    /// Held while the log is written to, emptied or changed.
    private let writing = NSLock()
    private let log: IncomingLog
    private let identityFile: SlotFile?
    private let makeDurable: @Sendable (_ descriptor: Int32) -> Bool
    let writer = DispatchQueue(label: "countersign.recording", qos: .userInitiated)
    private let synchronizer = DispatchQueue(label: "countersign.durability", qos: .utility)
    private let storage: Storage
    private let limits: QueueLimits
    private let clock: any ClientClock
    private let logger: CountersignLog?
    private let stored: @Sendable (Int) -> Void

    // `saveIdentity` writes to `identity`. `stored` is called on a thread of the recorder with the number
    // of events that the log has received.
    init(
        storage: Storage, limits: QueueLimits, clock: any ClientClock,
        userID: String? = nil, identity: SlotFile? = nil, sessionID: String, log: CountersignLog?,
        makeDurable: @escaping @Sendable (_ descriptor: Int32) -> Bool = IncomingLog.makeDurable,
        empty: @escaping @Sendable (_ descriptor: Int32) -> Bool = IncomingLog.empty,
        stored: @escaping @Sendable (Int) -> Void
    ) {
        self.storage = storage
        self.limits = limits
        self.clock = clock
        self.log = IncomingLog(
            directory: storage.directory, holder: storage.holder, makeDurable: makeDurable, empty: empty)
        identityFile = identity
        self.makeDurable = makeDurable
        logger = log
        self.stored = stored
        let isHeld = storage.isLocked
        state = Lock(State(userID: userID, sessionID: sessionID, isHeld: isHeld))
        storage.setTakeOver { [weak self] queue, maximumBytes in
            try self?.takeOver(into: queue, maximumBytes: maximumBytes)
        }
        guard isHeld else { return }
        // The storage thread runs from the first unlock on. Otherwise the writer does not wait for that thread, which starts late
        // on a busy machine.
        writer.suspend()
        storage.submit { [state, writer] _ in
            state.withLock { $0.isHeld = false }
            writer.resume()
        }
    }

    /// The number of events dropped from memory, not yet on disk, and only in the log. Also the last write
    /// error.
    var losses: (dropped: Int, unsaved: Int, logged: Int, lastError: String?) {
        state.withLock { ($0.dropped, $0.unsavedEvents, $0.loggedCount, $0.lastError) }
    }

    package var userID: String? { state.withLock { $0.userID } }

    /// Whether `userID` is the present user, compared by bytes. `String ==` treats some different ids as
    /// equal (RFC 7519, section 2).
    package func isUser(_ userID: String?) -> Bool {
        state.withLock { $0.isUser(userID) }
    }

    /// The present user and `userCount`, which tells apart changes made on two threads.
    package var user: (id: String?, count: Int) { state.withLock { ($0.userID, $0.userCount) } }

    /// Sets the user of later events. Returns the former user and the count of this call. `identity` is called once, in the order
    /// of the changes. It returns the bytes to write before later events, or nil for no user.
    package func setUser(
        _ userID: String?, identity: (_ isAnother: Bool) -> [UInt8]? = { _ in nil }
    ) -> (previous: String?, isAnother: Bool, count: Int) {
        let (result, isIdle) = state.withLock { state in
            let result = (
                previous: state.userID, isAnother: !state.isUser(userID), count: state.userCount + 1
            )
            state.userCount += 1
            state.userID = userID
            let identity = identity(result.isAnother)
            guard identity != state.identity || result.isAnother else { return (result, false) }
            return (result, setIdentity(identity, in: &state))
        }
        if isIdle { writer.async { self.write() } }
        return result
    }

    /// Like `setUser`, for the present user.
    @discardableResult
    package func saveIdentity(_ identity: (_ userID: String?) -> [UInt8]?) -> (id: String?, count: Int) {
        let (result, isIdle) = state.withLock { state in
            ((state.userID, state.userCount), setIdentity(identity(state.userID), in: &state))
        }
        if isIdle { writer.async { self.write() } }
        return result
    }

    /// Returns true if the writer must be woken.
    private func setIdentity(_ identity: [UInt8]?, in state: inout State) -> Bool {
        guard identityFile != nil else { return false }
        state.identity = identity
        state.identityChanges += 1
        defer { state.isWriting = true }
        return !state.isWriting
    }

    func setSession(_ sessionID: String) {
        state.withLock { $0.sessionID = sessionID }
    }

    /// Accepts an event and returns at once. Creates a message id unless one is given.
    ///
    /// The event belongs to the present user unless `owner` is given.
    package func record(
        _ content: any RecordContent, messageID: String? = nil, owner: String? = nil,
        completion: (@Sendable (Result<String, CountersignError>) -> Void)? = nil
    ) {
        let now = clock.now
        let bytes = content.estimatedBytes
        let (rejection, isIdle, mustWait) = state.withLock { state -> (CountersignError?, Bool, Bool) in
            if state.isClosed { return (CountersignError(.closed, "the client is closed"), false, false) }
            if state.hasOptedOut { return (CountersignError(.optedOut, "nothing is recorded"), false, false) }
            guard
                state.unsavedEvents < limits.maximumUnsavedEvents,
                state.unsavedBytes + bytes <= limits.maximumUnsavedBytes,
                // The log holds no more events than the queue may.
                state.loggedCount + state.unsavedEvents
                    < max(limits.maximumEvents, limits.maximumUnsavedEvents),
                state.loggedBytes + state.unsavedBytes + bytes
                    <= max(limits.maximumBytes, limits.maximumUnsavedBytes)
            else {
                state.dropped += 1
                let waiting = state.unsavedEvents + state.loggedCount
                return (
                    CountersignError(.tooManyUnsaved, "\(waiting) events wait for the disk"), false, false
                )
            }
            // Created under the lock, so that ids have the order of the events.
            let record = EventRecord(
                content: content, messageID: messageID ?? UUIDv7.make(at: now), userID: owner ?? state.userID,
                sessionID: state.sessionID, timestamp: now)
            state.unsaved.append(Unsaved(record: record, bytes: bytes, completion: completion))
            state.unsavedEvents += 1
            state.unsavedBytes += bytes
            let isIdle = !state.isWriting
            state.isWriting = true
            let isBehind =
                state.unsavedEvents > min(Self.waitEvents, limits.maximumUnsavedEvents / 2)
                || state.unsavedBytes > min(Self.waitBytes, limits.maximumUnsavedBytes / 2)
            let mustWait = isBehind && !state.isLogFailing && !state.isHeld
            if mustWait { state.waitingCallers += 1 }
            return (nil, isIdle, mustWait)
        }
        if let rejection { completion?(.failure(rejection)) }
        if isIdle { writer.async { self.write() } }
        if mustWait { _ = hasWritten.wait(timeout: .now() + Self.waitTime) }
    }

    /// Moves all events recorded before this call into the queue file. Returns when that is done or has
    /// failed.
    func drain() async {
        await withCheckedContinuation { continuation in
            writer.async {
                self.write()
                self.storage.submit { storage in
                    self.takeOver(by: storage)
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
                    if self.state.withLock(\.loggedCount) == 0, storage.makeCertain() {
                        self.writing.withLock { self.log.remove() }
                    }
                    continuation.resume()
                }
            }
        }
    }

    package var hasOptedOut: Bool { state.withLock { $0.hasOptedOut } }

    /// Stops or resumes recording.
    package func setOptedOut(_ isOut: Bool) {
        state.withLock { $0.hasOptedOut = isOut }
        if isOut { _ = writing.withLock { discard() } }
    }

    /// Removes all events, the user and the device's id. Throws if the queue file cannot be written now.
    func wipe() async throws {
        forgetUser()
        try await storage.run { [self] storage in try removeAll(on: storage, forgettingDevice: true) }
    }

    /// Clears the user at once, so that a user set later is not cleared.
    func forgetUser() {
        state.withLock { state in
            state.userID = nil
            state.userCount += 1
            state.forgottenCount = state.userCount
        }
    }

    /// The value of `userCount` when the user was last cleared.
    package var forgottenCount: Int { state.withLock { $0.forgottenCount } }

    /// Removes all events, also those in memory and in the log. Throws if the queue file cannot be written
    /// now.
    func removeAll() async throws {
        try await storage.run { [self] storage in try removeAll(on: storage, forgettingDevice: false) }
    }

    /// Like `removeAll()`, on the storage thread.
    func removeAll(on storage: Storage, forgettingDevice: Bool) throws {
        var events = 0
        try storage.withQueue(usesReserve: true, bringsEvents: false) { queue in
            // Hold `writing`, so that no event is written meanwhile with the old device id.
            try writing.withLock {
                events += discard()
                try queue.wipe((log.id, log.last, events), forgettingDevice: forgettingDevice)
                if forgettingDevice { state.withLock { $0.deviceID = nil } }
                storage.forgetDelivered()
            }
        }
        storage.lookForLogs()
    }

    /// Discards the events that the queue file does not have. Call it with `writing` held. Returns the
    /// number of events removed from the log.
    private func discard() -> Int {
        log.restart()
        let (events, batch, error) = state.withLock { state in
            let events = state.loggedCount
            state.unsavedEvents -= state.unsaved.count
            state.unsavedBytes -= state.unsaved.reduce(0) { $0 + $1.bytes }
            state.logged = []
            state.taking = []
            state.loggedBytes = 0
            state.keptBytes = 0
            defer { state.unsaved = [] }
            let error =
                state.hasOptedOut
                ? CountersignError(.optedOut, "nothing is recorded")
                : CountersignError(.notStored, "the data was wiped")
            return (events, state.unsaved, error)
        }
        // Not while the lock is held, because a completion may record again.
        if !batch.isEmpty { synchronizer.async { for entry in batch { entry.completion?(.failure(error)) } } }
        return events
    }

    // MARK: Into the log

    /// Writes until no events are left or the disk fails. On the writer's thread.
    private func write() {
        while true {
            let isDone = state.withLock { state in
                let isDone = state.unsaved.isEmpty && !state.mustWriteIdentity
                if isDone { state.isWriting = false }
                return isDone
            }
            if isDone { return }
            guard writing.withLock({ writeBatch() }) else { return }
        }
    }

    /// Replaces a provisional id by the id in the queue file. Call it on the storage thread, so that a wipe
    /// cannot run between reading the id and setting it.
    private func learnDeviceID(from queue: EventQueue) throws {
        guard state.withLock({ $0.deviceID?.isProvisional == true }), !storage.hasOptedOut else { return }
        let id = try queue.anonymousID()
        state.withLock { $0.deviceID = DeviceID(text: id, isProvisional: false) }
    }

    /// Writes the newest identity, before the events that are recorded for it. Call it with `writing` held.
    /// Returns false if the disk failed; a retry is then scheduled.
    private func writeIdentity() -> Bool {
        guard let identityFile else { return true }
        let (identity, changes) = state.withLock { state in
            (state.hasOptedOut ? nil : state.identity, state.mustWriteIdentity ? state.identityChanges : nil)
        }
        guard let changes else { return true }
        do {
            try identityFile.write(identity)
            let mustSynchronize = state.withLock { state in
                state.writtenIdentityChanges = changes
                state.isLogFailing = false
                if !state.hasFallenBehind { state.lastError = nil }
                defer { state.isSynchronizing = true }
                return !state.isSynchronizing
            }
            if mustSynchronize { synchronizer.async { self.synchronize() } }
            return true
        } catch {
            let batch = state.withLock { state in
                defer { state.unsaved = [] }
                return state.unsaved
            }
            keep(batch, after: error)
            return false
        }
    }

    /// Appends the oldest waiting events to the log. Call it with `writing` held. Returns false if the disk failed; a retry is
    /// then scheduled.
    private func writeBatch() -> Bool {
        // Another process may have opted out.
        if storage.hasOptedOut { state.withLock { $0.hasOptedOut = true } }
        if state.withLock(\.hasOptedOut) {
            _ = discard()
            return writeIdentity()
        }
        guard writeIdentity() else { return false }
        let (batch, deviceID) = state.withLock { state in
            let deviceID = state.deviceID ?? DeviceID(text: UUIDv7.make(), isProvisional: true)
            let batch = Array(state.unsaved.prefix(Self.batchEvents))
            state.unsaved.removeFirst(batch.count)
            if batch.contains(where: { $0.record.userID == nil }) { state.deviceID = deviceID }
            return (batch, deviceID)
        }
        if batch.isEmpty { return true }
        let rows = batch.map { entry in
            RenderedEvent(
                messageID: entry.record.messageID, userID: entry.record.userID,
                sessionID: entry.record.sessionID,
                body: entry.record.content.rendered(for: entry.record, anonymousID: deviceID.text),
                uptime: clock.uptime,
                provisionalID: entry.record.userID == nil && deviceID.isProvisional ? deviceID.text : nil)
        }
        do {
            guard storage.hasRoomForEvents() else {
                throw CountersignError(.notStored, "the disk is full")
            }
            let first = try log.append(rows) - Int64(rows.count) + 1
            let (mustSynchronize, mustTakeOver, waitingCallers) = state.withLock { state in
                for (offset, (entry, row)) in zip(batch, rows).enumerated() {
                    let sequence = first + Int64(offset)
                    let hasRoom = state.keptBytes + entry.bytes <= limits.maximumUnsavedBytes
                    state.logged.append(
                        Logged(sequence: sequence, row: hasRoom ? row : nil, bytes: entry.bytes))
                    if hasRoom { state.keptBytes += entry.bytes }
                    state.loggedBytes += entry.bytes
                    state.unsavedBytes -= entry.bytes
                    guard let completion = entry.completion else { continue }
                    let isKept = row.body.count <= limits.maximumEventBytes
                    state.waiting.append(
                        Waiting(
                            sequence: sequence,
                            result: isKept
                                ? .success(row.messageID)
                                : .failure(CountersignError(.eventTooLarge, "it is in quarantine")),
                            completion: completion))
                }
                state.unsavedEvents -= batch.count
                state.isLogFailing = false
                if !state.hasFallenBehind { state.lastError = nil }
                let mustSynchronize = !state.isSynchronizing
                state.isSynchronizing = true
                // With this many events, move the log to the queue file now.
                let isMuch =
                    state.loggedCount >= min(1_000, limits.maximumUnsavedEvents / 2)
                    || state.loggedBytes >= min(512 << 10, limits.maximumUnsavedBytes / 2)
                let mustTakeOver = isMuch && !state.isTakingOver && !state.isWaitingForDisk
                if mustTakeOver { state.isTakingOver = true }
                defer { state.waitingCallers = 0 }
                return (mustSynchronize, mustTakeOver, state.waitingCallers)
            }
            for _ in 0..<waitingCallers { hasWritten.signal() }
            if mustSynchronize { synchronizer.async { self.synchronize() } }
            if mustTakeOver { storage.submit { self.takeOver(by: $0) } }
            let tooLarge = rows.count { $0.body.count > limits.maximumEventBytes }
            stored(batch.count - tooLarge)
            return true
        } catch {
            keep(batch, after: error)
            return false
        }
    }

    /// Handles a failed write. Events with a completion fail with the error and are dropped. The other
    /// events are retried soon.
    private func keep(_ batch: [Unsaved], after error: any Error) {
        let failure = CountersignError(.notStored, "\(error)")
        let (refused, isFirst) = state.withLock { state in
            let refused = state.isClosed ? batch : batch.filter { $0.completion != nil }
            state.unsavedEvents -= refused.count
            state.unsavedBytes -= refused.reduce(0) { $0 + $1.bytes }
            state.lastError = failure.detail
            if state.isClosed {
                // The recorder is closed, so there is no retry.
                state.dropped += batch.count
                state.isWriting = false
                return (refused, false)
            }
            state.unsaved.insert(contentsOf: batch.filter { $0.completion == nil }, at: 0)
            // While this is set, `record` does not start the writer. The retry writes new events too.
            state.isWriting = true
            state.isLogFailing = true
            let isFirst = !state.isWaitingForDisk
            state.isWaitingForDisk = true
            return (refused, isFirst)
        }
        logger?(.warning, "events could not be stored", ["error": failure.detail])
        for entry in refused { entry.completion?(.failure(failure)) }
        if isFirst { tryAgainLater() }
    }

    private func tryAgainLater() {
        Task { [weak self, clock] in
            try await clock.sleep(until: clock.uptime + Self.retryInterval)
            guard let self else { return }
            let isLogFailing = state.withLock { state in
                state.isWaitingForDisk = false
                return state.isLogFailing
            }
            if isLogFailing { storage.submit { $0.makeRoom() } }
            writer.async {
                self.write()
                self.storage.submit { self.takeOver(by: $0) }
            }
        }
    }

    // MARK: Durable

    /// Makes the log durable and tells who waits for that. On the synchronizer's thread.
    private func synchronize() {
        let waiting = state.withLock { state in
            state.isSynchronizing = false
            defer { state.waiting = [] }
            return state.waiting
        }
        do {
            try identityFile?.synchronize(by: makeDurable)
            try log.synchronize()
            // The token that came with the user is as durable as the user's events.
            if !waiting.isEmpty { storage.waitForTokens() }
            for entry in waiting { entry.completion(entry.result) }
        } catch {
            logger?(.warning, "the log of events failed", ["error": "\(error)"])
            // After a failed flush, the content of the log on disk is unknown. Move its events to the queue file.
            storage.submit { storage in self.save(waiting, in: storage) }
        }
    }

    /// Moves all events into the queue file and makes them durable. On the storage thread.
    private func save(_ waiting: [Waiting], in storage: Storage) {
        let failure: CountersignError?
        if (try? storage.takeOver()) != nil, storage.makeCertain(), isIdentityDurable() {
            failure = nil
            writing.withLock {
                guard state.withLock(\.loggedCount) == 0 else { return }
                log.restart()
            }
        } else {
            failure = CountersignError(.notStored, "the disk failed")
            writing.withLock { writeAnew(without: Set(waiting.map(\.sequence))) }
        }
        for entry in waiting { entry.completion(failure.map { .failure($0) } ?? entry.result) }
    }

    private func isIdentityDurable() -> Bool {
        guard let identityFile else { return true }
        return (try? identityFile.synchronize(by: makeDurable)) != nil
    }

    /// Writes a new log without the events whose recording failed. Call it with `writing` held.
    ///
    /// Sequence numbers do not change, because the queue file may have the events of a transaction that failed.
    private func writeAnew(without refused: Set<Int64>) {
        let kept = state.withLock { state in
            let gone = state.logged.filter { refused.contains($0.sequence) }
            state.loggedBytes -= gone.reduce(0) { $0 + $1.bytes }
            state.keptBytes -= gone.reduce(0) { $0 + ($1.row == nil ? 0 : $1.bytes) }
            state.logged.removeAll { refused.contains($0.sequence) }
            return state.logged
        }
        log.restart(keeping: rows(of: kept))
    }

    // MARK: Into the queue file

    /// Moves all events into the queue file, or schedules a retry. On the storage thread.
    private func takeOver(by storage: Storage) {
        do {
            try storage.takeOver()
            state.withLock { $0.isTakingOver = false }
        } catch {
            fellBehind(error)
        }
    }

    /// Moves events into the queue file, up to `maximumBytes`, after writing the events in memory to the log.
    private func takeOver(into queue: EventQueue, maximumBytes: Int) throws {
        let taking = writing.withLock {
            let batches = state.withLock { $0.unsaved.count / Self.batchEvents + 1 }
            for _ in 0..<batches where !writeBatch() { break }
            log.rotate()
            return state.withLock { state in
                swap(&state.logged, &state.taking)
                return state.taking
            }
        }
        let part = maximumBytes == .max ? taking : taking.prefix(bytes: maximumBytes, of: \.bytes)
        do {
            if let last = part.last?.sequence {
                try queue.append(rows(of: part), from: log.id, clock: clock)
                taken(part, through: last)
                try? learnDeviceID(from: queue)
            }
        } catch {
            state.withLock { state in
                // `taking` is empty if the events were wiped meanwhile.
                state.logged = state.taking + state.logged
                state.taking = []
            }
            fellBehind(error)
            throw error
        }
        if part.count < taking.count { return stored(part.count) }
        let wasBehind = state.withLock { state in
            defer { state.hasFallenBehind = false }
            if state.hasFallenBehind { state.lastError = nil }
            return state.hasFallenBehind
        }
        // Wake the sender, which found no events earlier.
        if wasBehind { stored(max(1, taking.count)) }
    }

    /// The events with their numbers, those without a row read from the log.
    private func rows(of events: [Logged]) -> [(sequence: Int64, event: RenderedEvent)] {
        let missing = events.filter { $0.row == nil }.map(\.sequence)
        guard let first = missing.first, let last = missing.last else {
            return events.compactMap { event in event.row.map { (event.sequence, $0) } }
        }
        let read = Dictionary(log.events(in: first...last).map { ($0.sequence, $0.event) }) { first, _ in
            first
        }
        return events.compactMap { event in
            (event.row ?? read[event.sequence]).map { (event.sequence, $0) }
        }
    }

    private func fellBehind(_ error: any Error) {
        let (isFirst, mustRetry) = state.withLock { state in
            defer { state.hasFallenBehind = true }
            state.isTakingOver = false
            state.lastError = "\(error)"
            if state.isClosed { return (false, false) }
            defer { state.isWaitingForDisk = true }
            return (!state.hasFallenBehind, !state.isWaitingForDisk)
        }
        if isFirst { logger?(.warning, "events could not be taken over", ["error": "\(error)"]) }
        if mustRetry { tryAgainLater() }
    }

    private func taken(_ events: [Logged], through last: Int64) {
        let bytes = events.reduce(0) { $0 + $1.bytes }
        let keptBytes = events.reduce(0) { $0 + ($1.row == nil ? 0 : $1.bytes) }
        let certain = state.withLock { state in
            // `taking` is empty if the events were wiped meanwhile.
            if !state.taking.isEmpty {
                state.loggedBytes -= bytes
                state.keptBytes -= keptBytes
                if events.count < state.taking.count {
                    state.logged = Array(state.taking.dropFirst(events.count)) + state.logged
                }
                state.taking = []
            }
            defer { state.certain = last }
            return state.certain
        }
        log.reclaim(through: certain)
    }
}
