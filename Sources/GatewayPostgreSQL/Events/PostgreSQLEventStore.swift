internal import CountersignCore
internal import Foundation
package import GatewayModel
internal import GatewayStorage

/// Stores events in PostgreSQL with two threads, each with its own connection.
///
/// A single batch is stored immediately. Batches that arrive during a transaction share the next one. Events
/// are committed when `completion` is called. If the response to a commit is lost, its outcome is unknown and
/// reported as a failure. The sender retries, and duplicates are detected.
package final class PostgreSQLEventStore: EventStore, @unchecked Sendable {
    private struct Job {
        /// Nil is a test write.
        let batch: EventBatch?
        let completion: @Sendable (Result<AppendOutcome, StoreFailure>) -> Void
    }

    package let arrivals = EventArrivals()

    private let pool: PostgreSQLPool
    private let pendingLimit: Int
    private let observer: (any GatewayObserver)?
    private let countSeconds: Double
    private let upkeep: EventUpkeep
    private let watch: ArrivalWatch
    // `condition` guards the properties below.
    private let condition = Condition()
    private var gathering = 0
    private var waiting: [Job] = []
    private var waitingBytes = 0
    private var keyUses = KeyUses()
    private var nextCount = DispatchTime(uptimeNanoseconds: 0)
    private var isClosing = false
    private var openLanes = 0

    private static let lanes = 2
    /// The time that a commit waits for more batches after a shared commit.
    private static let gatherMicroseconds: UInt32 = 150

    /// Connects, deletes expired data, and starts. Throws `PostgreSQLError` or `storage`.
    init(
        _ pool: PostgreSQLPool, _ options: EventStoreOptions, retentionSeconds: Double = 60,
        countSeconds: Double = 1
    ) throws {
        self.pool = pool
        pendingLimit = options.pendingBytes
        observer = options.observer
        self.countSeconds = countSeconds
        upkeep = EventUpkeep(
            pool, retention: options.retention, observer: options.observer, everySeconds: retentionSeconds)
        watch = ArrivalWatch(pool, arrivals)
        try upkeep.begin()
        watch.start()
        openLanes = Self.lanes
        for number in 0..<Self.lanes {
            let thread = Thread { [self] in run() }
            thread.name = "event lane \(number)"
            thread.start()
        }
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

    package func erase(appID: String) throws(GatewayError) {
        try GatewayError.storing {
            try pool.use { connection in try EventErasure.erase(appID, connection) }
        }
    }

    package var load: StoreLoad {
        var database = pool.load
        database.eventPartitions = upkeep.partitions
        condition.lock()
        defer { condition.unlock() }
        // The free space on the server's disk is unknown.
        return StoreLoad(
            waitingBatches: waiting.count, waitingBytes: waitingBytes, fileBytes: upkeep.databaseBytes,
            database: database)
    }

    package func close() {
        condition.lock()
        isClosing = true
        condition.broadcast()
        while openLanes > 0 { condition.wait() }
        condition.unlock()
        watch.stop()
        upkeep.stop()
    }

    private func enqueue(_ job: Job) {
        condition.lock()
        let size = job.batch?.body.count ?? 0
        let refusal: StoreFailure? =
            isClosing
            ? StoreFailure(reason: .closed, detail: "the store is closed")
            : waitingBytes + size > pendingLimit
                ? StoreFailure(reason: .overloaded, detail: "\(waitingBytes) bytes wait for the database")
                : nil
        if refusal == nil {
            waiting.append(job)
            waitingBytes += size
            if gathering == 0 { condition.signal() }
        }
        condition.unlock()
        if let refusal { job.completion(.failure(refusal)) }
    }

    // MARK: Writer threads

    private func run() {
        let lane = EventLane(pool)
        var lastBatches = 0
        while true {
            condition.lock()
            while waiting.isEmpty || gathering > 0, !isClosing, !isCountDue,
                condition.wait(until: keyUses.isEmpty ? .distantFuture : nextCount)
            {}
            if lastBatches > 1, !waiting.isEmpty, !isClosing {
                condition.unlock()
                usleep(Self.gatherMicroseconds)
                condition.lock()
                while gathering > 0, !isClosing { condition.wait() }
            }
            let jobs = gathering == 0 || isClosing ? takeJobs() : []
            let isLast = isClosing && jobs.isEmpty
            let uses = isCountDue || isLast ? takeUses() : KeyUses()
            condition.unlock()
            if !uses.isEmpty { write(uses, lane) }
            if isLast { break }
            guard !jobs.isEmpty else { continue }
            lastBatches = jobs.count
            let results = write(jobs, lane)
            condition.lock()
            waitingBytes -= jobs.reduce(0) { $0 + ($1.batch?.body.count ?? 0) }
            condition.unlock()
            arrivals.note(
                BytewiseSet(
                    zip(jobs, results).compactMap { job, result in
                        (try? result.get().accepted).map { $0 > 0 } == true ? job.batch?.appID : nil
                    }))
            // All at once, so that the server's threads wake once for many responses.
            for (job, result) in zip(jobs, results) { job.completion(result) }
        }
        condition.lock()
        openLanes -= 1
        condition.broadcast()
        condition.unlock()
    }

    private var isCountDue: Bool { !keyUses.isEmpty && DispatchTime.now() >= nextCount }

    /// Takes the jobs that fit into a transaction. A larger batch is taken alone.
    private func takeJobs() -> [Job] {
        var events = 0
        let count =
            waiting.firstIndex { job in
                events += job.batch?.events.count ?? 0
                return events > EventHorizon.mostOfTransaction
            } ?? waiting.count
        let jobs = Array(waiting.prefix(max(count, min(1, waiting.count))))
        waiting.removeFirst(jobs.count)
        if !waiting.isEmpty { condition.signal() }
        return jobs
    }

    private func takeUses() -> KeyUses {
        nextCount = .now() + countSeconds
        defer { keyUses = KeyUses() }
        return keyUses
    }

    private func write(_ uses: KeyUses, _ lane: EventLane) {
        do {
            try lane.note(uses)
        } catch {
            condition.lock()
            keyUses.add(uses)
            condition.unlock()
        }
    }

    private func write(_ jobs: [Job], _ lane: EventLane) -> [Result<AppendOutcome, StoreFailure>] {
        let began = DispatchTime.now()
        var record = CommitRecord(
            batches: jobs.count, events: jobs.reduce(0) { $0 + ($1.batch?.events.count ?? 0) }, seconds: 0)
        var isSplit = false
        defer {
            record.seconds = Double(DispatchTime.now().uptimeNanoseconds - began.uptimeNanoseconds) / 1e9
            if !isSplit { observer?.commitEnded(record) }
        }
        do {
            let batches = jobs.compactMap(\.batch)
            if batches.count < jobs.count { try lane.probe() }
            var outcomes = try store(batches, lane)[...]
            return jobs.map { .success($0.batch == nil ? AppendOutcome() : outcomes.removeFirst()) }
        } catch {
            if (error as? PostgreSQLError)?.isConstraint == true, jobs.count > 1 {
                // Retries one by one, so that a batch that cannot be stored does not affect the others.
                isSplit = true
                return jobs.flatMap { write([$0], lane) }
            }
            let failure = StoreFailure(error)
            record.failure = failure
            return jobs.map { _ in .failure(failure) }
        }
    }

    private func store(_ batches: [EventBatch], _ lane: EventLane) throws -> [AppendOutcome] {
        guard let batch = batches.first else { return [] }
        guard batches.count == 1, batch.events.count > EventHorizon.mostOfTransaction else {
            return try lane.store(batches)
        }
        // Stores parts of a large batch in separate transactions. After a failure, a retry finds the stored
        // parts as duplicates.
        var outcome = AppendOutcome()
        for start in stride(from: 0, to: batch.events.count, by: EventHorizon.mostOfTransaction) {
            let end = min(start + EventHorizon.mostOfTransaction, batch.events.count)
            let part = EventBatch(
                appID: batch.appID, receivedMilliseconds: batch.receivedMilliseconds, body: batch.body,
                events: Array(batch.events[start..<end]), customers: start == 0 ? batch.customers : [],
                proof: batch.proof)
            for stored in try lane.store([part]) {
                outcome.accepted += stored.accepted
                outcome.duplicates += stored.duplicates
            }
        }
        return [outcome]
    }
}
