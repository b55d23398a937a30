internal import CountersignSQLite
internal import CountersignTransport
internal import Foundation

/// Two serial threads: one for the queue file, and one for tokens and logged-out users, so that a busy file does not
/// delay tokens.
///
/// `@unchecked Sendable`: all `var`s are only used on `queue`, which is serial.
package final class Storage: @unchecked Sendable {
    /// The size of the reserve, a file that is emptied on a full disk. The journal of transactions that delete
    /// delivered events then has space.
    static let reserveBytes = 256 << 10
    /// Bytes of events in one checkpoint while only the reserve has space for them.
    private static let partBytes = 48 << 10
    /// Seconds between two searches for logs of processes that have ended.
    private static let adoptionInterval: TimeInterval = 60
    /// Seconds without a write after which the log of a living process is adopted too, because process ids are reused.
    private static let idleLog: TimeInterval = 600

    let directory: URL
    private let optOutPath: String
    /// Identifies this client in leases and logs.
    package let holder = LeaseOwner()
    private let queue: DispatchQueue
    private let credentials = DispatchQueue(label: "countersign.credentials", qos: .utility)
    private let savingTokens = DispatchGroup()
    private let isOnThread = DispatchSpecificKey<Bool>()
    private let limits: QueueLimits
    private let clock: any ClientClock
    private let log: CountersignLog?
    private let canOpen: @Sendable (_ path: String) -> Bool
    private var opened: EventQueue?
    private var isClosed = false
    private var checkpointLog: ((EventQueue, _ maximumBytes: Int) throws -> Void)?
    /// Held while the reserve is used or restored.
    private let reserveLock = NSLock()
    private var isUsingReserve = false
    /// Outcomes, without bodies, that the queue file does not have while the disk is full. Only on the storage thread.
    private(set) var undeleted: [DeliveryOutcome] = []
    /// The sequence numbers of `undeleted`, not to be sent again. Only on the storage thread.
    private(set) var undeletedSequences: Set<Int64> = []
    /// The error that kept some recorded events out of the queue file. Only on the storage thread.
    private(set) var checkpointFailure: (any Error)?
    private var adoptedAt: TimeInterval?

    // No file can be read before the device's first unlock, so the storage thread starts after the unlock.
    init(
        directory: URL, limits: QueueLimits, clock: any ClientClock, log: CountersignLog?,
        canOpen: @escaping @Sendable (_ path: String) -> Bool = FirstUnlock.canOpen
    ) {
        self.directory = directory
        optOutPath = directory.appendingPathComponent(DataFolder.optOutName).path
        self.limits = limits
        self.clock = clock
        self.log = log
        self.canOpen = canOpen
        queue = DispatchQueue(label: "countersign.storage", qos: .utility)
        queue.setSpecific(key: isOnThread, value: true)
        // Do not open the queue file here: closing it would release all locks of this process on it.
        FirstUnlock.hold(queue, clock: clock) { [reservePath] in canOpen(reservePath) }
        credentials.suspend()
        queue.async { [credentials] in credentials.resume() }
    }

    // MARK: Credentials

    func runCredentials<Result: Sendable>(
        _ body: @escaping @Sendable (Storage) throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            credentials.async { continuation.resume(with: Swift.Result { try body(self) }) }
        }
    }

    /// Runs `body` on the thread for credentials. If `isToken` is true, `waitForTokens()` waits for `body`.
    func submitCredentials(isToken: Bool = false, _ body: @escaping @Sendable (Storage) -> Void) {
        let group = isToken ? savingTokens : nil
        group?.enter()
        credentials.async {
            body(self)
            group?.leave()
        }
    }

    /// Returns when the tokens submitted before the call are stored or have failed, after 5 s at most.
    func waitForTokens() {
        _ = savingTokens.wait(timeout: .now() + .seconds(5))
    }

    // MARK: The queue file

    /// Sets the function that moves events into the queue file before each use of that file. `maximumBytes` limits the
    /// bytes to move while space is short.
    func setCheckpoint(_ body: @escaping @Sendable (EventQueue, _ maximumBytes: Int) throws -> Void) {
        submit { $0.checkpointLog = body }
    }

    /// Runs `body` on the storage thread, after all earlier work.
    package func submit(_ body: @escaping @Sendable (Storage) -> Void) {
        queue.async { body(self) }
    }

    /// Calls `withQueue` on the storage thread, after all earlier work.
    func perform<Result: Sendable>(
        usesReserve: Bool = false, _ body: @escaping @Sendable (EventQueue) throws -> Result
    ) async throws -> Result {
        try await run { storage in try storage.withQueue(usesReserve: usesReserve, body) }
    }

    /// Runs `body` on the storage thread, after all earlier work.
    package func run<Result: Sendable>(
        _ body: @escaping @Sendable (Storage) throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            submit { storage in continuation.resume(with: Swift.Result { try body(storage) }) }
        }
    }

    /// Blocks until `body` has run on the storage thread.
    package func runNow<Result>(_ body: (Storage) throws -> Result) throws -> Result {
        // The app's log handler may call this method on the storage thread.
        let isHere = DispatchQueue.getSpecific(key: isOnThread) == true
        return isHere ? try body(self) : try queue.sync { try body(self) }
    }

    /// True before the device's first unlock. Nothing runs on the storage thread until then.
    var isLocked: Bool { !canOpen(reservePath) }

    /// Opens the file if necessary, moves recorded events into it, and runs `body`. Only on the storage thread.
    ///
    /// Runs `body` again if the file was moved or deleted, or was damaged and replaced by a new one with all readable
    /// events. After an I/O error the next call reopens the file, so that SQLite reads the state on disk. With
    /// `usesReserve`, for work that shrinks the file, a full disk causes another run with the space of the reserve.
    func withQueue<Result>(
        usesReserve: Bool = false, checkpoints: Bool = true, _ body: (EventQueue) throws -> Result
    ) throws -> Result {
        func run(_ queue: EventQueue) throws -> Result {
            if checkpoints { try checkpoint(into: queue) }
            return try body(queue)
        }
        do {
            return try run(try open())
        } catch  where QueueRecovery.isDamage(error) {
            log?(.warning, "queue file is damaged, set aside", ["error": "\(error)"])
            opened = nil
            let recovery = QueueRecovery(path: path, limits: limits, clock: clock)
            let recovered = try withReserveOnFullDisk(recovery.recover)
            opened = recovered
            return try run(recovered)
        } catch let error as SQLiteError where error.isFull && usesReserve {
            let queue = try open()
            return try usingReserve(after: error) {
                // Run no checkpoint, because moving new events would use up the space.
                let result = try body(queue)
                try? queue.shrink(from: 0)
                return result
            }
        } catch let error as SQLiteError where error.isUnwritable {
            opened = nil
            return try run(try open())
        } catch let error as SQLiteError where error.isInputOutput {
            log?(.warning, "queue file failed, opening it again", ["error": "\(error)"])
            opened = nil
            throw error
        }
    }

    /// Moves recorded events into the queue file. Throws if some could not be moved. Only on the storage thread.
    func checkpoint() throws {
        try withQueue { _ in }
        if let checkpointFailure { throw checkpointFailure }
    }

    /// Moves recorded events into the queue now, also from logs of ended processes. Only on the storage thread.
    func adoptLogs() {
        adoptedAt = nil
        try? checkpoint()
    }

    /// Only on the storage thread. Returns false if the disk failed.
    func makeDurable() -> Bool {
        (try? withQueue { queue in try queue.makeDurable() }) != nil
    }

    private func checkpoint(into queue: EventQueue, maximumBytes: Int = .max) throws {
        checkpointFailure = nil
        for bring in [adopt(into:maximumBytes:), checkpointLog ?? { _, _ in }] {
            do {
                try bring(queue, maximumBytes)
            } catch {
                checkpointFailure = error
                if let error = error as? SQLiteError,
                    error.isInputOutput || error.isUnwritable || QueueRecovery.isDamage(error)
                {
                    throw error
                }
                // The disk is full or the file is locked. Events already in the file can still be sent.
            }
        }
    }

    /// Moves some recorded events with the space of the reserve, while the disk is full. Their pages can be used
    /// again after delivery. Only on the storage thread. Throws after a failure of another kind, or without a reserve.
    func checkpointPart(into queue: EventQueue) throws {
        guard let failure = checkpointFailure else { return }
        guard let full = failure as? SQLiteError, full.isFull else { throw failure }
        try usingReserve(after: full) { try checkpoint(into: queue, maximumBytes: Self.partBytes) }
        checkpointFailure = checkpointFailure ?? failure
    }

    /// Moves events from the logs of ended and idle processes into the queue.
    private func adopt(into queue: EventQueue, maximumBytes: Int) throws {
        if let adoptedAt, clock.uptime - adoptedAt < Self.adoptionInterval { return }
        var emptied: [WriteAheadLog.Found] = []
        var damaged: Set<String> = []
        var isComplete = true
        for log in try WriteAheadLog.all(in: directory) where log.id != holder.id {
            let isAlive = LeaseOwner.isAlive(log.id, processID: log.processID)
            // Compared with file times, so it uses the system clock and not `clock`.
            let age = Date().timeIntervalSince1970 - log.modified
            guard !isAlive || age > Self.idleLog else { continue }
            let adopted = try queue.adopt(log, isOver: !isAlive, maximumBytes: maximumBytes)
            damaged.formUnion(adopted.damagedPaths)
            isComplete = isComplete && adopted.isComplete
            if !isAlive, adopted.isComplete { emptied.append(log) }
        }
        if !emptied.isEmpty {
            // If the process ends here, the log still has its checkpoint, so no event is moved twice.
            try queue.makeDurable()
            for path in emptied.flatMap(\.paths) {
                guard damaged.contains(path) else {
                    unlink(path)
                    continue
                }
                self.log?(.warning, "log of events is damaged, set aside", [:])
                rename(path, QueueRecovery.nextAsidePath(besides: self.path))
            }
        }
        do {
            try queue.deleteStaleCheckpoints(of: directory, except: holder.id)
        } catch let error as SQLiteError where error.isFull {
            // Stale checkpoints need little space and are deleted later.
        }
        if isComplete { adoptedAt = clock.uptime }
    }

    // MARK: Deleting what was delivered

    /// Deletes delivered events and quarantines rejected events, also of earlier calls that failed. On the storage
    /// thread. Returns how many events were removed from quarantine because it was full.
    ///
    /// On a full disk, marks the events as delivered in memory, so that sending can continue. After a restart the
    /// events are sent again, and the server drops them as duplicates.
    func apply(_ outcome: DeliveryOutcome) throws -> Int {
        let added = outcome.withoutBodies
        undeleted.append(added)
        undeletedSequences.formUnion(added.sequences)
        do {
            return try deleteDelivered()
        } catch let error as SQLiteError where error.isFull {
            log?(.warning, "the disk is full, delivered events cannot be deleted", ["error": "\(error)"])
            return 0
        } catch {
            // The caller retries.
            if undeleted.last == added { undeleted.removeLast() }
            undeletedSequences.subtract(added.sequences)
            throw error
        }
    }

    /// Applies the outcomes in `undeleted`. Only on the storage thread. Returns the same as `apply(_:)`.
    @discardableResult
    func deleteDelivered() throws -> Int {
        guard !undeleted.isEmpty else { return 0 }
        let evicted = try withQueue(usesReserve: true) { queue in
            let before = try queue.value(of: .evictedFromQuarantine)
            while let next = undeleted.first {
                try queue.apply(next)
                undeleted.removeFirst()
                undeletedSequences.subtract(next.sequences)
            }
            return try queue.value(of: .evictedFromQuarantine) - before
        }
        shrinkEmptyQueue()
        return evicted
    }

    /// Returns free pages to the file system if the queue has no events. An error has no effect on the transaction
    /// that deleted the events. Only on the storage thread.
    func shrinkEmptyQueue() {
        try? withQueue(usesReserve: true, checkpoints: false) { queue in
            if try queue.value(of: .rows) == 0 { try queue.shrink(from: 1_000) }
        }
    }

    /// Call it after all events were deleted. Only on the storage thread.
    func clearDelivered() {
        undeleted = []
        undeletedSequences = []
    }

    /// Only on the storage thread.
    func waitingCount() throws -> Int {
        max(0, try withQueue { queue in try queue.value(of: .rows) } - undeletedSequences.count)
    }

    func close() async {
        _ = try? await runCredentials { _ in }
        await withCheckedContinuation { continuation in
            submit { storage in
                _ = try? storage.deleteDelivered()
                storage.opened = nil
                storage.isClosed = true
                continuation.resume()
            }
        }
    }

    /// Only on the storage thread.
    var damagedFiles: Int { QueueRecovery.asideCount(besides: path) }

    // MARK: Opting out

    /// The opt-out is a separate file, so that damage to the queue file cannot undo it.
    package var hasOptedOut: Bool { FileManager.default.fileExists(atPath: optOutPath) }

    /// Only on the storage thread or the writer's thread.
    func setOptedOut(_ isOut: Bool) throws {
        guard isOut != hasOptedOut else { return }
        if isOut {
            try FileProtection.makeDirectory(directory)
            try DurableFile.write(Data(), to: optOutPath)
        } else {
            try FileManager.default.removeItem(atPath: optOutPath)
        }
    }

    private var path: String { directory.appendingPathComponent("queue.sqlite").path }

    private func open() throws -> EventQueue {
        if let opened { return opened }
        guard !isClosed else { throw CountersignError(.closed, "the client is closed") }
        try FileProtection.makeDirectory(directory)
        let queue = try withReserveOnFullDisk {
            try EventQueue(path: path, limits: limits, clock: clock)
        }
        opened = queue
        adoptedAt = nil
        if !isUsingReserve { reserveLock.withLock { fillReserve() } }
        FileProtection.apply(to: directory)
        return queue
    }

    // MARK: The reserve

    private var reservePath: String { directory.appendingPathComponent("reserve").path }

    private func withReserveOnFullDisk<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as SQLiteError where error.isFull {
            return try usingReserve(after: error, body)
        }
    }

    /// Runs `body` with the space of the reserve, then restores it as far as the disk has space. Only on the storage
    /// thread. The reserve is emptied and not deleted, so that the recorders of all processes see that it must be
    /// restored first.
    private func usingReserve<Result>(
        after error: SQLiteError, _ body: () throws -> Result
    ) throws -> Result {
        if isUsingReserve { return try body() }
        return try reserveLock.withLock {
            guard (reserveSize ?? 0) > 0, emptyReserve() else { throw error }
            isUsingReserve = true
            defer {
                isUsingReserve = false
                fillReserve()
            }
            return try body()
        }
    }

    /// On any thread. False while the disk has no space for the whole reserve, because deleting events could then
    /// fail.
    func hasRoomForEvents() -> Bool {
        guard let size = reserveSize, size < Self.reserveBytes else { return true }
        guard reserveLock.try() else { return false }
        defer { reserveLock.unlock() }
        fillReserve()
        return reserveSize == Self.reserveBytes
    }

    /// Returns free pages to the file system. Only on the storage thread.
    func makeRoom() {
        try? withQueue(usesReserve: true, checkpoints: false) { queue in try queue.shrink(from: 0) }
    }

    private func emptyReserve() -> Bool {
        let file = Foundation.open(reservePath, O_WRONLY | O_TRUNC | O_CLOEXEC)
        return file >= 0 && Foundation.close(file) == 0
    }

    private var reserveSize: Int? { Self.size(of: reservePath) }

    private static func size(of path: String) -> Int? {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : nil
    }

    /// A new reserve is created atomically, so that no recorder takes the disk for full meanwhile.
    private func fillReserve() {
        guard reserveSize != Self.reserveBytes else { return }
        let isNew = reserveSize == nil
        let path = isNew ? reservePath + ".new" : reservePath
        let file = Foundation.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard file >= 0 else { return }
        let page = [UInt8](repeating: 0, count: 4_096)
        while let size = Self.size(of: path), size < Self.reserveBytes {
            let count = page.withUnsafeBytes { bytes in
                DurableFile.write(
                    file, UnsafeRawBufferPointer(rebasing: bytes.prefix(Self.reserveBytes - size)))
            }
            if count <= 0 { break }
        }
        Foundation.close(file)
        if isNew { rename(path, reservePath) }
    }
}

extension DeliveryOutcome {
    fileprivate var withoutBodies: DeliveryOutcome {
        func stripped(_ event: QueuedEvent) -> QueuedEvent {
            QueuedEvent(sequence: event.sequence, messageID: "", userID: nil, body: [])
        }
        var copy = self
        copy.delivered = delivered.map(stripped)
        copy.quarantined = quarantined.map { Rejected(event: stripped($0.event), reason: $0.reason) }
        return copy
    }

    fileprivate var sequences: [Int64] { delivered.map(\.sequence) + quarantined.map(\.event.sequence) }
}
