internal import CountersignSQLite
internal import CountersignTransport
internal import Foundation

/// Two serial threads: one for the queue file, and one for the token store and for users who have logged out. So a busy queue
/// file does not delay tokens.
///
/// `@unchecked Sendable`: all `var`s are only used on `queue`, which is serial.
package final class Storage: @unchecked Sendable {
    /// The size of a file that is emptied on a full disk, so that delivered events can be deleted: a transaction that deletes
    /// needs space for its journal.
    static let reserveBytes = 256 << 10
    /// Bytes of events that are taken over at a time while only the reserve has space for them.
    private static let partBytes = 48 << 10
    /// Seconds between two searches for logs of processes that have ended.
    private static let adoptionInterval: TimeInterval = 60
    /// Seconds after which the log of a process that seems to be alive is taken over too, because process ids are reused.
    private static let idleLog: TimeInterval = 600

    let directory: URL
    /// Kept, because it is looked for again and again.
    private let optOutPath: String
    /// Who this client is, for leases and logs.
    package let holder = LeaseHolder()
    private let queue: DispatchQueue
    private let credentials = DispatchQueue(label: "countersign.credentials", qos: .utility)
    /// The tokens on their way into the store.
    private let savingTokens = DispatchGroup()
    private let isOnThread = DispatchSpecificKey<Bool>()
    private let limits: QueueLimits
    private let clock: any ClientClock
    private let log: CountersignLog?
    private let canOpen: @Sendable (_ path: String) -> Bool
    private var opened: EventQueue?
    private var isClosed = false
    private var takeOverEvents: ((EventQueue, _ maximumBytes: Int) throws -> Void)?
    /// Held while the reserve is used or restored.
    private let reserveLock = NSLock()
    private var isUsingReserve = false
    /// Delivered events that a full disk has no room to delete, without bodies. Only on the storage thread.
    private var undeleted: [Settlement] = []
    /// The sequence numbers of those events. They must not be sent again. Only on the storage thread.
    private(set) var undeletedSequences: Set<Int64> = []
    /// Why not everything that was recorded is in the queue file; nil if it is. Only on the storage thread.
    private(set) var takeOverFailure: (any Error)?
    private var adoptedAt: TimeInterval?

    // Before the device's first unlock nothing can be read: what there is to do waits until then.
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
        // Not the queue file: to close it would end every lock that this process has on it.
        FirstUnlock.hold(queue, clock: clock) { [reservePath] in canOpen(reservePath) }
        credentials.suspend()
        queue.async { [credentials] in credentials.resume() }
    }

    // MARK: Credentials

    /// Runs `body` on the thread for credentials.
    func runCredentials<Result: Sendable>(
        _ body: @escaping @Sendable (Storage) throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            credentials.async { continuation.resume(with: Swift.Result { try body(self) }) }
        }
    }

    /// Runs `body` on the thread for credentials, after everything that was handed over before. If it stores a token that comes
    /// with events, `isToken`, `waitForTokens()` waits for it.
    func submitCredentials(isToken: Bool = false, _ body: @escaping @Sendable (Storage) -> Void) {
        let group = isToken ? savingTokens : nil
        group?.enter()
        credentials.async {
            body(self)
            group?.leave()
        }
    }

    /// Returns when the tokens that were handed over before the call are stored or cannot be stored, after 5 s at most.
    func waitForTokens() {
        _ = savingTokens.wait(timeout: .now() + .seconds(5))
    }

    // MARK: The queue file

    /// Sets what brings new events into the queue file, before anybody looks into it.
    ///
    /// It brings so many bytes at most if there is no room for more.
    func setTakeOver(_ body: @escaping @Sendable (EventQueue, _ maximumBytes: Int) throws -> Void) {
        submit { $0.takeOverEvents = body }
    }

    /// Runs `body` on the storage thread, after everything that was handed over before.
    package func submit(_ body: @escaping @Sendable (Storage) -> Void) {
        queue.async { body(self) }
    }

    /// Runs `body` on the storage thread with the open queue. Throws what `body` throws, or why the file cannot be
    /// opened.
    func perform<Result: Sendable>(
        usesReserve: Bool = false, _ body: @escaping @Sendable (EventQueue) throws -> Result
    ) async throws -> Result {
        try await run { storage in try storage.withQueue(usesReserve: usesReserve, body) }
    }

    /// Runs `body` on the storage thread.
    package func run<Result: Sendable>(
        _ body: @escaping @Sendable (Storage) throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            submit { storage in continuation.resume(with: Swift.Result { try body(storage) }) }
        }
    }

    /// As `run`, for a thread that may wait.
    func runNow<Result>(_ body: (Storage) throws -> Result) throws -> Result {
        // The app may call from its log, which hears of what this thread does.
        let isHere = DispatchQueue.getSpecific(key: isOnThread) == true
        return isHere ? try body(self) : try queue.sync { try body(self) }
    }

    /// True before the device's first unlock, until which nothing runs on the storage thread.
    var isLocked: Bool { !canOpen(reservePath) }

    /// Opens the file if need be, brings new events into it, and runs `body`. Only on the storage thread.
    ///
    /// A damaged file is replaced by a fresh one with all that could be read, and `body` runs once more; so it does when the
    /// file was moved or deleted under us. After an I/O error the file is reopened the next time, so that SQLite looks at
    /// what the disk really has.
    ///
    /// Work that makes the file smaller `usesReserve`: on a full disk it runs once more with the space that is kept for that.
    func withQueue<Result>(
        usesReserve: Bool = false, bringsEvents: Bool = true, _ body: (EventQueue) throws -> Result
    ) throws -> Result {
        func run(_ queue: EventQueue) throws -> Result {
            if bringsEvents { try bringEvents(into: queue) }
            return try body(queue)
        }
        do {
            return try run(try open())
        } catch  where QueueRecovery.isDamage(error) {
            log?(.warning, "queue file is damaged, set aside", ["error": "\(error)"])
            opened = nil
            let recovery = QueueRecovery(path: path, limits: limits, clock: clock)
            let recovered = try onFullDisk({ try recovery.recover() }, withReserve: recovery.recover)
            opened = recovered
            return try run(recovered)
        } catch let error as SQLiteError where error.isFull && usesReserve {
            let queue = try open()
            return try usingReserve(after: error) {
                // New events would take the space.
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

    /// Brings new events into the queue file. Only on the storage thread. Throws when that is not possible now.
    func takeOver() throws {
        try withQueue { _ in }
        if let takeOverFailure { throw takeOverFailure }
    }

    /// The logs of processes that are gone are looked for the next time. Only on the storage thread.
    func lookForLogs() {
        adoptedAt = nil
        try? takeOver()
    }

    /// After this the last transaction outlives a power failure. Only on the storage thread. Returns false if the disk
    /// failed.
    func makeCertain() -> Bool {
        (try? withQueue { queue in try queue.makeCertain() }) != nil
    }

    /// As `perform`, for a thread that may wait: any but the storage thread.
    func sync<Result>(_ body: (EventQueue) throws -> Result) throws -> Result {
        try queue.sync { try withQueue(body) }
    }

    private func bringEvents(into queue: EventQueue, maximumBytes: Int = .max) throws {
        takeOverFailure = nil
        for bring in [adopt(into:maximumBytes:), takeOverEvents ?? { _, _ in }] {
            do {
                try bring(queue, maximumBytes)
            } catch {
                takeOverFailure = error
                if let error = error as? SQLiteError,
                    error.isInputOutput || error.isUnwritable || QueueRecovery.isDamage(error)
                {
                    throw error
                }
                // The disk is full, or somebody holds the lock. What is in the file already can be sent all the same.
            }
        }
    }

    /// Brings some of the new events into the queue file, for which a full disk has no room, by means of the reserve. Once they
    /// are delivered and deleted, others find room in the pages that they leave. Only on the storage thread, with the open
    /// queue. Throws if that is not why they are missing, or there is no reserve.
    func bringPart(into queue: EventQueue) throws {
        guard let failure = takeOverFailure else { return }
        guard let full = failure as? SQLiteError, full.isFull else { throw failure }
        try usingReserve(after: full) { try bringEvents(into: queue, maximumBytes: Self.partBytes) }
        takeOverFailure = takeOverFailure ?? failure
    }

    /// Takes over the logs of processes that are gone.
    private func adopt(into queue: EventQueue, maximumBytes: Int) throws {
        if let adoptedAt, clock.uptime - adoptedAt < Self.adoptionInterval { return }
        var emptied: [IncomingLog.Found] = []
        var damaged: Set<String> = []
        var isComplete = true
        for log in IncomingLog.all(in: directory) where log.id != holder.id {
            let isAlive = LeaseHolder.isAlive(log.id, processID: log.processID)
            // By the clock that the file system has, whatever that of the client says.
            let age = Date().timeIntervalSince1970 - log.modified
            guard !isAlive || age > Self.idleLog else { continue }
            let adopted = try queue.adopt(
                log, isOver: !isAlive, maximumBytes: maximumBytes, clock: self.clock)
            damaged.formUnion(adopted.damagedPaths)
            isComplete = isComplete && adopted.isComplete
            if !isAlive, adopted.isComplete { emptied.append(log) }
        }
        if !emptied.isEmpty {
            // Whoever dies here leaves a log that has a mark: nothing of it is taken twice.
            try queue.makeCertain()
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
            try queue.forgetMarks(of: directory)
        } catch let error as SQLiteError where error.isFull {
            // They take little, and are deleted another time.
        }
        if isComplete { adoptedAt = clock.uptime }
    }

    // MARK: Deleting what was delivered

    /// Deletes delivered events from the queue file, with the events that earlier calls could not delete. On the storage thread.
    ///
    /// Where the disk is too full even for that, the events are remembered as delivered, and the sender goes on. After a
    /// restart they are sent again, and the server drops them as duplicates. Returns how many events were pushed out of the
    /// quarantine.
    func settle(_ settlement: Settlement) throws -> Int {
        let added = settlement.withoutBodies
        undeleted.append(added)
        undeletedSequences.formUnion(added.sequences)
        do {
            return try deleteDelivered()
        } catch let error as SQLiteError where error.isFull {
            log?(.warning, "the disk is full, delivered events cannot be deleted", ["error": "\(error)"])
            return 0
        } catch {
            // The caller tries again.
            if undeleted.last == added { undeleted.removeLast() }
            undeletedSequences.subtract(added.sequences)
            throw error
        }
    }

    /// Deletes what could not be deleted before. Only on the storage thread. Returns as `settle(_:)`.
    @discardableResult
    func deleteDelivered() throws -> Int {
        guard !undeleted.isEmpty else { return 0 }
        return try withQueue(usesReserve: true) { queue in
            let before = try queue.value(of: .evictedFromQuarantine)
            while let next = undeleted.first {
                try queue.settle(next, at: clock.now)
                undeleted.removeFirst()
                undeletedSequences.subtract(next.sequences)
            }
            return try queue.value(of: .evictedFromQuarantine) - before
        }
    }

    /// All events were deleted. Only on the storage thread.
    func forgetDelivered() {
        undeleted = []
        undeletedSequences = []
    }

    /// How many events wait in the queue file. Only on the storage thread.
    func waitingCount() throws -> Int {
        max(0, try withQueue { queue in try queue.value(of: .rows) } - undeletedSequences.count)
    }

    /// Closes the file; it is not opened again.
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

    /// Files that were set aside. Only on the storage thread.
    var damagedFiles: Int { QueueRecovery.asideCount(besides: path) }

    // MARK: Opting out

    /// True if the person wants nothing recorded.
    ///
    /// This is a separate file, so that no damage to the queue can undo it.
    package var hasOptedOut: Bool { FileManager.default.fileExists(atPath: optOutPath) }

    /// Only on the storage thread, or on the one that writes what was recorded.
    func setOptedOut(_ isOut: Bool) throws {
        guard isOut != hasOptedOut else { return }
        if isOut {
            try QueueDirectory.make(directory)
            try Data().write(to: URL(fileURLWithPath: optOutPath), options: .atomic)
        } else {
            try FileManager.default.removeItem(atPath: optOutPath)
        }
    }

    private var path: String { directory.appendingPathComponent("queue.sqlite").path }

    private func open() throws -> EventQueue {
        if let opened { return opened }
        guard !isClosed else { throw CountersignError(.closed, "the client is closed") }
        try QueueDirectory.make(directory)
        let make = { [path, limits, clock] in try EventQueue(path: path, limits: limits, clock: clock) }
        let queue = try onFullDisk(make, withReserve: make)
        opened = queue
        adoptedAt = nil
        keepReserve()
        FileProtection.apply(to: directory)
        return queue
    }

    // MARK: The reserve

    private var reservePath: String { directory.appendingPathComponent("reserve").path }

    private func onFullDisk<Result>(
        _ body: () throws -> Result, withReserve again: () throws -> Result
    ) throws -> Result {
        do {
            return try body()
        } catch let error as SQLiteError where error.isFull {
            return try usingReserve(after: error, again)
        }
    }

    /// Runs `body` while the space of the reserve is free, and restores the reserve as far as there is room for it. Throws
    /// `error` if there is no reserve. Only on the storage thread.
    ///
    /// The reserve is emptied and not deleted, so that the recorders of all processes see that it is to be restored first.
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

    /// Whether events may be written to the log: not while the disk lacks room for the reserve, because nothing could be deleted
    /// then. On any thread.
    func hasRoomForEvents() -> Bool {
        guard let size = reserveSize, size < Self.reserveBytes else { return true }
        guard reserveLock.try() else { return false }
        defer { reserveLock.unlock() }
        fillReserve()
        return reserveSize == Self.reserveBytes
    }

    /// Gives pages that no event needs any more back to the disk, so that new events find room. Only on the storage thread.
    func makeRoom() {
        try? withQueue(usesReserve: true, bringsEvents: false) { queue in try queue.shrink(from: 0) }
    }

    private func keepReserve() {
        if !isUsingReserve { reserveLock.withLock { fillReserve() } }
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

    /// Makes the reserve as large as it should be, or as the disk allows. A new one appears at once as a whole, so that no
    /// recorder takes the disk for full meanwhile.
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

extension Settlement {
    /// As much as is needed to delete the events.
    fileprivate var withoutBodies: Settlement {
        func stripped(_ event: QueuedEvent) -> QueuedEvent {
            QueuedEvent(sequence: event.sequence, messageID: "", userID: nil, body: [])
        }
        var copy = self
        copy.delivered = delivered.map(stripped)
        copy.quarantined = quarantined.map { (stripped($0.event), $0.verdict) }
        return copy
    }

    fileprivate var sequences: [Int64] { delivered.map(\.sequence) + quarantined.map(\.event.sequence) }
}
