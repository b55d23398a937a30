package import CountersignCore
internal import CountersignSQLite
internal import Foundation
package import GatewayModel

/// Stores events in `events.sqlite`, with one writer thread. ``CommitQueue`` decides which batches share a commit. With
/// `synchronous=FULL`, events are on disk when `completion` is called.
package final class SQLiteEventStore: EventStore, @unchecked Sendable {
    private typealias Job = CommitQueue.Job

    package let arrivals = EventArrivals()
    private struct Erasure {
        var work: EventErasure
        let completion: @Sendable (Result<Void, GatewayError>) -> Void
    }

    private let path: String
    private let recent: RecentEvents
    private let diskFloorBytes: Int
    private let observer: (any GatewayObserver)?
    private let retentionSeconds: Double
    private let countSeconds: Double
    private let now: @Sendable () -> Date
    private let retention: @Sendable () -> BytewiseDictionary<AppRules>
    private let queue: CommitQueue
    // The queue's lock guards `erasures`.
    private var erasures: [Erasure] = []
    // Used only by the writer thread after `init`.
    /// Nil until the log is opened for the first time, and after a failure.
    private var log: EventLogWriter?
    private var hasBeenOpen = false
    /// The last failure to open the log. Until `until`, batches fail without an attempt, because opening is slow.
    private var unopened: (failure: StoreFailure, until: DispatchTime)?
    private var files: DatabaseFiles
    private var hasLostFiles = false
    private var sweeper = RetentionSweeper()
    private var clock: RetentionClock
    /// When the next sweep starts or, during a sweep, its next step.
    private var nextSweep = DispatchTime(uptimeNanoseconds: 0)
    private var nextErasure = DispatchTime(uptimeNanoseconds: 0)
    private var sweepBegan = DispatchTime(uptimeNanoseconds: 0)
    /// When the counts are written next. Nil until the first commit, which always writes counts.
    private var nextCount: DispatchTime?
    private var space: Int?
    private var spaceUntil = DispatchTime(uptimeNanoseconds: 0)
    private var lastBatches = 0

    /// The pause after a step of deletion or a failed opening of the log, as a multiple of its duration.
    private static let restShare: UInt64 = 3
    /// How long a measurement of free disk space is valid.
    private static let spaceMilliseconds = 100

    /// Writes the counts of apps and keys every `countSeconds`. Throws `conflict` if the version cannot be migrated,
    /// and other errors if a file cannot be opened. A full disk throws nothing, but batches fail until there is space.
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

    /// `recent` receives the newest events, for readers of this process.
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
        queue = CommitQueue(
            pendingBytes: pendingBytes, waitingFor: "disk",
            gathering: CommitQueue.Gathering(microseconds: 300, least: 0, most: 3))
        self.observer = observer
        do {
            log = try EventLogWriter(path: path, recent: recent, now: now)
            hasBeenOpen = true
        } catch let error as any StorageError where error.isFull {
            // Each batch tries to open the log again, so that storing resumes when there is space.
        }
        files = DatabaseFiles(of: path)
        queue.start(["event writer"]) { [self] in run() }
    }

    package func append(
        _ batch: EventBatch, completion: @escaping @Sendable (Result<AppendOutcome, StoreFailure>) -> Void
    ) {
        queue.append(batch, completion: completion)
    }

    package func together(_ body: () -> Void) { queue.together(body) }

    package func probe(completion: @escaping @Sendable (Result<Void, StoreFailure>) -> Void) {
        queue.probe(completion: completion)
    }

    package func noteKeyUse(appID: String, keyID: String, milliseconds: Int64) {
        queue.noteKeyUse(appID: appID, keyID: keyID, milliseconds: milliseconds)
    }

    /// Waits until the change is durable. After an I/O error, the outcome is unknown. Other errors store nothing.
    func change<Value: Sendable>(
        _ body: @escaping @Sendable (SQLiteConnection) throws -> Value
    ) throws(StoreFailure) -> Value {
        let value = Lock<Value?>(nil)
        let result = Lock<Result<AppendOutcome, StoreFailure>?>(nil)
        let done = DispatchSemaphore(value: 0)
        queue.add(
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
        let erasure = Erasure(work: EventErasure(appID: appID)) { result in
            outcome.withLock { $0 = result }
            done.signal()
        }
        guard queue.wakeWriter(after: { erasures.append(erasure) }) else { throw Self.closed }
        done.wait()
        try outcome.withLock { $0 }.get()
    }

    private static let closed = GatewayError(.storage, "the events are closed; start the gateway again")

    package var load: StoreLoad {
        let (batches, bytes) = queue.load
        var load = StoreLoad(waitingBatches: batches, waitingBytes: bytes)
        load.fileBytes = DiskSpace.size(of: path) + DiskSpace.size(of: path + "-wal")
        load.freeBytes = DiskSpace.free(at: path) ?? 0
        return load
    }

    package func close() { queue.close() }

    private func run() {
        while true {
            let next = queue.next(after: lastBatches) { wakeTime(hasKeyUses: $0) }
            let jobs = next ?? []
            let hasUncounted = hasUncounted(queue.hasKeyUses)
            let isCountDue =
                log?.mustCount == true || (nextCount.map { DispatchTime.now() >= $0 } ?? !jobs.isEmpty)
            let counts = next == nil ? hasUncounted : isCountDue && (!jobs.isEmpty || hasUncounted)
            let erasure = queue.withLock { DispatchTime.now() >= nextErasure ? erasures.first : nil }
            if next != nil { sweep() }
            if counts { nextCount = .now() + countSeconds }
            if counts || !jobs.isEmpty {
                lastBatches = jobs.count
                let results = write(jobs, counts ? queue.takeKeyUses() : nil)
                queue.complete(jobs, results)
            }
            if next == nil { break }
            if let erasure {
                let began = DispatchTime.now()
                erase(erasure)
                nextErasure = Self.pause(after: began, times: Self.restShare)
            }
        }
        closeLog()
        let unfinished = queue.withLock {
            defer { erasures = [] }
            return erasures
        }
        for erasure in unfinished { erasure.completion(.failure(Self.closed)) }
    }

    /// Requires the queue's lock, which guards `erasures`.
    private func wakeTime(hasKeyUses: Bool) -> DispatchTime {
        let next = erasures.isEmpty ? nextSweep : min(nextSweep, nextErasure)
        guard hasUncounted(hasKeyUses), let nextCount else { return next }
        return min(next, nextCount)
    }

    private static func pause(after began: DispatchTime, times share: UInt64) -> DispatchTime {
        let end = DispatchTime.now().uptimeNanoseconds
        return DispatchTime(uptimeNanoseconds: end + share * (end - began.uptimeNanoseconds))
    }

    private func hasUncounted(_ hasKeyUses: Bool) -> Bool { hasKeyUses || log?.hasUncounted == true }

    /// The bytes of free disk space, measured at most every ``spaceMilliseconds``; nil when unknown.
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
            events: jobs.reduce(0) { $0 + ($1.batch?.events.count ?? 0) }, seconds: 0)
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
            queue.putBack(uses)
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
            queue.putBack(uses)
            let failure = (error as? StoreFailure) ?? StoreFailure(error)
            record.failure = failure
            // After a failed write or fsync, the state of the pages is unknown. Opening the file again
            // recovers from the write-ahead log. A full disk does not affect the connection.
            if failure.reason != .full { closeLog() }
            return jobs.map { _ in .failure(failure) }
        }
    }

    /// Performs a step of a sweep if it is due. After an error, a new sweep starts at the next due time.
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
        var uses = queue.takeKeyUses()
        defer { queue.putBack(uses) }
        do {
            let passed = try openLog().sweep(&sweeper, counting: &uses)
            guard files.areInPlace else { throw loseFiles() }
            for consumer in passed {
                observer?.eventsMissed(
                    by: consumer.name, ofKind: consumer.kind.noun, appID: consumer.appID)
            }
        } catch {
            sweeper = RetentionSweeper()
            if StoreFailure(error).reason != .full { closeLog() }
        }
    }

    private func erase(_ erasure: Erasure) {
        var erasure = erasure
        let result: Result<Void, GatewayError>
        var uses = queue.takeKeyUses()
        do {
            sweeper.exclude(erasure.work.appID)
            guard try openLog().erase(&erasure.work, counting: &uses) else {
                queue.withLock { erasures[0] = erasure }
                return
            }
            guard files.areInPlace else { throw loseFiles() }
            result = .success(())
        } catch {
            queue.putBack(uses)
            if (error as? SQLiteError)?.isFull != true { closeLog() }
            result = .failure(GatewayError(.storage, (error as? StoreFailure)?.detail ?? "\(error)"))
        }
        queue.withLock { _ = erasures.removeFirst() }
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
