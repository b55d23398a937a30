package import CountersignCore
internal import CountersignSQLite
internal import Foundation
package import GatewayModel

/// Stores events in `events.sqlite` with one writer thread and one connection.
///
/// The file uses WAL with `synchronous=FULL`, so events are durable when `completion` is called. A single
/// batch is committed immediately. Batches that arrive during a commit share the next one. After a shared
/// commit, the writer waits briefly for more batches.
package final class SQLiteEventStore: EventStore, @unchecked Sendable {
    /// A class, because jobs are passed on several times.
    private final class Job: Sendable {
        let batch: EventBatch?
        /// A change to write with the next commit, instead of a batch.
        let change: (@Sendable (SQLiteConnection) throws -> Void)?
        let completion: @Sendable (Result<AppendOutcome, StoreFailure>) -> Void

        init(
            batch: EventBatch?, change: (@Sendable (SQLiteConnection) throws -> Void)? = nil,
            completion: @escaping @Sendable (Result<AppendOutcome, StoreFailure>) -> Void
        ) {
            self.batch = batch
            self.change = change
            self.completion = completion
        }
    }

    package let arrivals = EventArrivals()
    private struct Erasure {
        var work: EventErasure
        let completion: @Sendable (Result<Void, GatewayError>) -> Void
    }

    private let path: String
    private let recent: RecentEvents
    private let pendingLimit: Int
    private let diskFloorBytes: Int
    private let observer: (any GatewayObserver)?
    private let retentionSeconds: Double
    private let countSeconds: Double
    private let now: @Sendable () -> Date
    private let retention: @Sendable () -> BytewiseDictionary<AppRules>
    // `condition` guards `gathering`, `waiting`, `waitingBytes`, `keyUses`, `erasures`, `isClosing` and
    // `hasEnded`.
    private let condition = Condition()
    private var gathering = 0
    private var waiting: [Job] = []
    private var waitingBytes = 0
    private var keyUses = KeyUseTally()
    private var erasures: [Erasure] = []
    private var isClosing = false
    private var hasEnded = false
    // Used only by the writer thread after `init`.
    /// Nil until the log is opened for the first time, and after a failure.
    private var log: EventLogWriter?
    private var hasBeenOpen = false
    /// The last failure to open the log. The log is not opened again until the given time, because opening
    /// may read many events.
    private var unopened: (failure: StoreFailure, until: DispatchTime)?
    /// The files of `log`.
    private var files: DatabaseFiles
    private var hasLostFiles = false
    private var sweeper = RetentionSweeper()
    private var clock: RetentionClock
    /// When the next sweep starts or, during a sweep, its next step.
    private var nextSweep = DispatchTime(uptimeNanoseconds: 0)
    private var nextErasure = DispatchTime(uptimeNanoseconds: 0)
    private var sweepBegan = DispatchTime(uptimeNanoseconds: 0)
    /// Nil until the first commit, which writes counts.
    private var nextCount: DispatchTime?
    private var space: Int?
    private var spaceUntil = DispatchTime(uptimeNanoseconds: 0)
    /// The number of requests that shared the last commit.
    private var lastBatches = 0

    /// The time that a commit waits for more batches after a shared commit.
    private static let gatherMicroseconds: UInt32 = 300
    /// The maximum number of such waits, while fewer batches wait than shared the last commit.
    private static let mostGathers = 3
    /// The pause after a deletion step, as a multiple of the step's duration.
    private static let restShare: UInt64 = 3
    /// How long a measurement of free disk space is valid.
    private static let spaceMilliseconds = 100

    /// Opens the file, creates or migrates its schema and starts the writer. The counts of apps and keys are
    /// written every `countSeconds`. Throws `SQLiteError` if the file cannot be opened or was written by a
    /// newer version. Does not throw on a full disk; all batches then fail until there is space.
    package convenience init(
        path: String, pendingBytes: Int, diskFloorBytes: Int = 0,
        observer: (any GatewayObserver)? = nil, retentionSeconds: Double = 60,
        countSeconds: Double = 1, retention: @escaping @Sendable () -> BytewiseDictionary<AppRules> = { [:] }
    ) throws {
        try self.init(
            path: path, recent: RecentEvents(), pendingBytes: pendingBytes, diskFloorBytes: diskFloorBytes,
            observer: observer, retentionSeconds: retentionSeconds, countSeconds: countSeconds,
            now: { Date() },
            retention: retention)
    }

    /// The same, with `recent` for readers of this process.
    init(
        path: String, recent: RecentEvents, pendingBytes: Int, diskFloorBytes: Int,
        observer: (any GatewayObserver)?, retentionSeconds: Double = 60, countSeconds: Double = 1,
        now: @escaping @Sendable () -> Date, retention: @escaping @Sendable () -> BytewiseDictionary<AppRules>
    ) throws {
        self.recent = recent
        self.diskFloorBytes = diskFloorBytes
        self.retentionSeconds = retentionSeconds
        self.countSeconds = countSeconds
        self.now = now
        clock = RetentionClock(Milliseconds(now()).count)
        self.retention = retention
        self.path = path
        self.pendingLimit = pendingBytes
        self.observer = observer
        do {
            log = try EventLogWriter(path: path, recent: recent, now: now)
            hasBeenOpen = true
        } catch let error as any StorageError where error.isFull {
            // Each batch tries to open the log again, so that storing resumes when there is space.
        }
        files = DatabaseFiles(of: path)
        let thread = Thread { [self] in run() }
        thread.name = "event writer"
        thread.start()
    }

    package func append(
        _ batch: EventBatch, completion: @escaping @Sendable (Result<AppendOutcome, StoreFailure>) -> Void
    ) {
        enqueue(Job(batch: batch, completion: completion))
    }

    package func together(_ body: () -> Void) {
        condition.lock()
        gathering += 1
        condition.unlock()
        body()
        condition.lock()
        gathering -= 1
        if !waiting.isEmpty { condition.signal() }
        condition.unlock()
    }

    package func probe(completion: @escaping @Sendable (Result<Void, StoreFailure>) -> Void) {
        enqueue(Job(batch: nil) { completion($0.map { _ in }) })
    }

    package func noteKeyUse(appID: String, keyID: String, milliseconds: Int64) {
        condition.lock()
        keyUses.add(appID: appID, keyID: keyID, milliseconds: milliseconds)
        condition.unlock()
    }

    /// Runs `body` with the next commit and waits until it is durable. Throws `StoreFailure` if the commit
    /// failed, and has then written nothing.
    func change<Value: Sendable>(
        _ body: @escaping @Sendable (SQLiteConnection) throws -> Value
    ) throws(StoreFailure) -> Value {
        let value = Lock<Value?>(nil)
        let result = Lock<Result<AppendOutcome, StoreFailure>?>(nil)
        let done = DispatchSemaphore(value: 0)
        enqueue(
            Job(batch: nil) { sqlite in
                let made = try body(sqlite)
                value.withLock { $0 = made }
            } completion: { outcome in
                result.withLock { $0 = outcome }
                done.signal()
            })
        done.wait()
        if case .failure(let failure)? = result.withLock({ $0 }) { throw failure }
        guard let made = value.withLock({ $0 }) else {
            throw StoreFailure(reason: .failed, detail: "a change was not written")
        }
        return made
    }

    package func erase(appID: String) throws(GatewayError) {
        let outcome = Lock<Result<Void, GatewayError>>(.success(()))
        let done = DispatchSemaphore(value: 0)
        condition.lock()
        if isClosing {
            condition.unlock()
            throw Self.closed
        }
        erasures.append(
            Erasure(work: EventErasure(appID: appID)) { result in
                outcome.withLock { $0 = result }
                done.signal()
            })
        condition.signal()
        condition.unlock()
        done.wait()
        try outcome.withLock { $0 }.get()
    }

    private static let closed = GatewayError(.storage, "the events are closed; start the gateway again")

    package var load: StoreLoad {
        condition.lock()
        var load = StoreLoad(waitingBatches: waiting.count, waitingBytes: waitingBytes)
        condition.unlock()
        load.fileBytes = DiskSpace.size(of: path) + DiskSpace.size(of: path + "-wal")
        load.freeBytes = DiskSpace.free(at: path) ?? 0
        return load
    }

    package func close() {
        condition.lock()
        isClosing = true
        condition.broadcast()
        while !hasEnded { condition.wait() }
        condition.unlock()
    }

    private func enqueue(_ job: Job) {
        condition.lock()
        let size = job.batch?.body.count ?? 0
        let refusal: StoreFailure? =
            isClosing
            ? StoreFailure(reason: .closed, detail: "the store is closed")
            : waitingBytes + size > pendingLimit
                ? StoreFailure(reason: .overloaded, detail: "\(waitingBytes) bytes wait for the disk") : nil
        if refusal == nil {
            waiting.append(job)
            waitingBytes += size
            if gathering == 0 { condition.signal() }
        }
        condition.unlock()
        if let refusal { job.completion(.failure(refusal)) }
    }

    private func run() {
        while true {
            condition.lock()
            while waiting.isEmpty || gathering > 0, !isClosing, condition.wait(until: wakeTime) {}
            if lastBatches > 1, !waiting.isEmpty, !isClosing {
                // The clients of the last commit have their responses now, and usually send again soon.
                for _ in 0..<Self.mostGathers where waiting.count < lastBatches {
                    condition.unlock()
                    usleep(Self.gatherMicroseconds)
                    condition.lock()
                }
                while gathering > 0, !isClosing { condition.wait() }
            }
            var jobs: [Job] = []
            if gathering == 0 || isClosing { swap(&jobs, &waiting) }
            let isLast = isClosing && jobs.isEmpty
            let isCountDue = nextCount.map { DispatchTime.now() >= $0 } ?? !jobs.isEmpty
            let counts = isLast ? hasUncounted : isCountDue && (!jobs.isEmpty || hasUncounted)
            let erasure = DispatchTime.now() >= nextErasure ? erasures.first : nil
            condition.unlock()
            if !isLast { sweep() }
            if counts { nextCount = .now() + countSeconds }
            if counts || !jobs.isEmpty {
                lastBatches = jobs.count
                let results = write(jobs, counts ? takeUses() : nil)
                condition.lock()
                waitingBytes -= jobs.reduce(0) { $0 + ($1.batch?.body.count ?? 0) }
                condition.unlock()
                // All at once, so that the server's threads wake once for many responses.
                for (job, result) in zip(jobs, results) { job.completion(result) }
            }
            if isLast { break }
            if let erasure {
                let began = DispatchTime.now()
                erase(erasure)
                nextErasure = Self.pause(after: began, times: Self.restShare)
            }
        }
        closeLog()
        condition.lock()
        let unfinished = erasures
        erasures = []
        hasEnded = true
        condition.broadcast()
        condition.unlock()
        for erasure in unfinished { erasure.completion(.failure(Self.closed)) }
    }

    /// The time of the next scheduled work. Must be called under the lock.
    private var wakeTime: DispatchTime {
        let next = erasures.isEmpty ? nextSweep : min(nextSweep, nextErasure)
        guard hasUncounted, let nextCount else { return next }
        return min(next, nextCount)
    }

    /// The end of the pause after a deletion that began at `began`.
    private static func pause(after began: DispatchTime, times share: UInt64) -> DispatchTime {
        let end = DispatchTime.now().uptimeNanoseconds
        return DispatchTime(uptimeNanoseconds: end + share * (end - began.uptimeNanoseconds))
    }

    /// Whether counts are not yet written. Must be called under the lock.
    private var hasUncounted: Bool { !keyUses.isEmpty || log?.hasUncounted == true }

    private func takeUses() -> KeyUseTally {
        condition.lock()
        defer { condition.unlock() }
        defer { keyUses = KeyUseTally() }
        return keyUses
    }

    /// Free bytes on the disk; nil when unknown.
    private func freeSpace() -> Int? {
        let now = DispatchTime.now()
        if now >= spaceUntil {
            space = DiskSpace.free(at: path)
            spaceUntil = now + .milliseconds(Self.spaceMilliseconds)
        }
        return space
    }

    /// With `uses`, also writes the counts of apps and keys.
    private func write(_ jobs: [Job], _ uses: KeyUseTally?) -> [Result<AppendOutcome, StoreFailure>] {
        let began = DispatchTime.now()
        var record = CommitRecord(
            batches: jobs.count, events: jobs.reduce(0) { $0 + ($1.batch?.events.count ?? 0) }, seconds: 0)
        var isSplit = false
        defer {
            record.seconds = Double(DispatchTime.now().uptimeNanoseconds - began.uptimeNanoseconds) / 1e9
            if !isSplit { observer?.commitEnded(record) }
        }
        // Counts alone are also written below the floor, because they need no additional space.
        if !jobs.isEmpty, let free = freeSpace(), free < diskFloorBytes {
            let failure = StoreFailure(
                reason: .full, detail: "\(free >> 20) MiB are free, the floor is \(diskFloorBytes >> 20) MiB")
            record.failure = failure
            keep(uses)
            return jobs.map { _ in .failure(failure) }
        }
        do {
            var outcomes = try openLog().store(
                jobs.filter { $0.change == nil }.map(\.batch), counting: uses, with: jobs.compactMap(\.change)
            )[...]
            guard files.areInPlace else { throw loseFiles() }
            var changed: BytewiseSet = []
            var last: String?
            let results = jobs.map { job -> Result<AppendOutcome, StoreFailure> in
                let outcome = job.change == nil ? outcomes.removeFirst() : AppendOutcome()
                // Consecutive batches are usually of one app.
                if outcome.accepted > 0, let appID = job.batch?.appID, appID != last {
                    changed.insert(appID)
                    last = appID
                }
                return .success(outcome)
            }
            arrivals.note(changed)
            return results
        } catch {
            let sqlite = error as? SQLiteError
            if sqlite?.isConstraint == true, jobs.count > 1 {
                // Retries one by one, so that a batch that cannot be stored does not affect the others.
                isSplit = true
                return jobs.enumerated().flatMap { write([$1], $0 == 0 ? uses : nil) }
            }
            keep(uses)
            let failure = (error as? StoreFailure) ?? StoreFailure(error)
            record.failure = failure
            // After a failed write or fsync, the state of the pages is unknown. Opening the file again
            // recovers from the write-ahead log. A full disk does not affect the connection.
            if failure.reason != .full { closeLog() }
            return jobs.map { _ in .failure(failure) }
        }
    }

    /// Restores the counts of a failed commit.
    private func keep(_ uses: KeyUseTally?) {
        guard let uses else { return }
        condition.lock()
        keyUses.add(uses)
        condition.unlock()
    }

    /// Performs a step of the retention sweep. After an error, the sweep is repeated later.
    private func sweep() {
        let began = DispatchTime.now()
        guard began >= nextSweep else { return }
        if sweeper.isDone {
            sweepBegan = began
            sweeper.begin(
                retention(), nowMilliseconds: clock.time(Milliseconds(now()).count))
        }
        // An overdue sweep pauses less. Otherwise events could arrive faster than they are deleted.
        let isLate = began > sweepBegan + retentionSeconds
        defer {
            nextSweep =
                sweeper.isDone
                ? sweepBegan + retentionSeconds
                : Self.pause(after: began, times: isLate ? 1 : Self.restShare)
        }
        guard !sweeper.isDone else { return }
        let uses = takeUses()
        do {
            let passed = try openLog().sweep(&sweeper, counting: uses)
            guard files.areInPlace else { throw loseFiles() }
            for consumer in passed {
                observer?.eventsMissed(
                    by: consumer.name, ofKind: consumer.kind.rawValue, appID: consumer.appID)
            }
        } catch {
            keep(uses)
            sweeper = RetentionSweeper()
            if StoreFailure(error).reason != .full { closeLog() }
        }
    }

    /// Performs a step of the first erasure.
    private func erase(_ erasure: Erasure) {
        var erasure = erasure
        let result: Result<Void, GatewayError>
        var uses = takeUses()
        do {
            sweeper.leave(erasure.work.appID)
            guard try openLog().erase(&erasure.work, counting: &uses) else {
                condition.lock()
                erasures[0] = erasure
                condition.unlock()
                return
            }
            guard files.areInPlace else { throw loseFiles() }
            result = .success(())
        } catch {
            keep(uses)
            if (error as? SQLiteError)?.isFull != true { closeLog() }
            result = .failure(GatewayError(.storage, (error as? StoreFailure)?.detail ?? "\(error)"))
        }
        condition.lock()
        erasures.removeFirst()
        condition.unlock()
        erasure.completion(result)
    }

    private func openLog() throws -> EventLogWriter {
        if hasLostFiles { throw Self.lostFiles }
        if let log {
            guard files.areInPlace else { throw loseFiles() }
            return log
        }
        guard files.databaseIsInPlace else { throw loseFiles() }
        let began = DispatchTime.now()
        if let unopened, began < unopened.until { throw unopened.failure }
        do {
            let open = try EventLogWriter(path: path, recent: recent, afterFailure: hasBeenOpen, now: now)
            log = open
            hasBeenOpen = true
            unopened = nil
            files = DatabaseFiles(of: path)
            return open
        } catch {
            unopened = (StoreFailure(error), Self.pause(after: began, times: Self.restShare))
            throw error
        }
    }

    private func closeLog() {
        guard !hasLostFiles, let log else { return }
        guard files.areInPlace else {
            _ = loseFiles()
            return
        }
        log.close()
        self.log = nil
    }

    /// Stops storing until the gateway is restarted, because readers of this process still use the old files.
    private func loseFiles() -> StoreFailure {
        hasLostFiles = true
        // Closing would checkpoint the deleted write-ahead log into a database that another process may use.
        // So the connection is leaked.
        if let log { _ = Unmanaged.passRetained(log) }
        return Self.lostFiles
    }

    private static let lostFiles = StoreFailure(
        reason: .failed,
        detail:
            "events.sqlite or its log (events.sqlite-wal) was deleted or replaced while the gateway ran; nothing "
            + "more is stored until it is restarted")
}
