internal import CountersignCore
internal import Foundation
package import GatewayModel
internal import GatewayStorage

/// Stores events with two threads that have a connection each. ``CommitQueue`` decides which batches share a
/// transaction.
///
/// `completion` reports success after the commit. If the response to a commit is lost, its outcome is unknown and
/// reported as a failure. The client sends the events again, and deduplication stores them once.
package final class PostgreSQLEventStore: EventStore, @unchecked Sendable {
    private typealias Job = CommitQueue.Job

    package let arrivals = EventArrivals()

    private let pool: PostgreSQLPool
    private let observer: (any GatewayObserver)?
    private let countSeconds: Double
    private let upkeep: EventUpkeep
    private let watch: ArrivalWatch
    private let queue: CommitQueue
    // The queue's lock guards `nextCount`.
    private var nextCount = DispatchTime(uptimeNanoseconds: 0)

    private static let writers = 2

    init(
        _ pool: PostgreSQLPool, _ options: EventStoreOptions, retentionSeconds: Double = 60,
        countSeconds: Double = 1
    ) throws {
        self.pool = pool
        queue = CommitQueue(
            pendingBytes: options.pendingBytes, waitingFor: "database",
            gathering: CommitQueue.Gathering(microseconds: 150, least: 1, most: 1),
            mostEvents: EventHorizon.mostOfTransaction)
        observer = options.observer
        self.countSeconds = countSeconds
        upkeep = EventUpkeep(
            pool, retention: options.retention, observer: options.observer, everySeconds: retentionSeconds)
        watch = ArrivalWatch(pool, arrivals)
        try upkeep.begin()
        watch.start()
        queue.start((0..<Self.writers).map { "event writer \($0)" }) { [self] in run() }
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

    package func erase(appID: String) throws(GatewayError) {
        try GatewayError.storing {
            try pool.use { connection in try EventErasure.erase(appID, connection) }
        }
    }

    package var load: StoreLoad {
        var database = pool.load
        database.eventPartitions = upkeep.partitions
        let (batches, bytes) = queue.load
        // The free space on the server's disk is unknown.
        return StoreLoad(
            waitingBatches: batches, waitingBytes: bytes, fileBytes: upkeep.databaseBytes,
            database: database)
    }

    package func close() {
        queue.close()
        watch.stop()
        upkeep.stop()
    }

    // MARK: Writer threads

    private func run() {
        let writer = EventLogWriter(pool)
        var lastBatches = 0
        while true {
            let next = queue.next(after: lastBatches) { $0 ? nextCount : .distantFuture }
            let uses = queue.takeKeyUses {
                guard next == nil || DispatchTime.now() >= nextCount else { return false }
                nextCount = .now() + countSeconds
                return true
            }
            if !uses.isEmpty { write(uses, writer) }
            guard let jobs = next else { break }
            guard !jobs.isEmpty else { continue }
            lastBatches = jobs.count
            let results = write(jobs, writer)
            arrivals.note(
                BytewiseSet(
                    zip(jobs, results).compactMap { job, result in
                        (try? result.get().accepted).map { $0 > 0 } == true ? job.batch?.appID : nil
                    }))
            queue.complete(jobs, results)
        }
    }

    private func write(_ uses: KeyUseTally, _ writer: EventLogWriter) {
        do {
            try writer.note(uses)
        } catch {
            queue.putBack(uses)
        }
    }

    private func write(_ jobs: [Job], _ writer: EventLogWriter) -> [Result<AppendOutcome, StoreFailure>] {
        let began = DispatchTime.now()
        var record = CommitRecord(
            events: jobs.reduce(0) { $0 + ($1.batch?.events.count ?? 0) }, seconds: 0)
        var isSplit = false
        defer {
            record.seconds = Double(DispatchTime.now().uptimeNanoseconds - began.uptimeNanoseconds) / 1e9
            if !isSplit { observer?.commitEnded(record) }
        }
        do {
            let batches = jobs.compactMap(\.batch)
            if batches.count < jobs.count { try writer.probe() }
            var outcomes = try store(batches, writer)[...]
            return jobs.map { .success($0.batch == nil ? AppendOutcome() : outcomes.removeFirst()) }
        } catch {
            if (error as? PostgreSQLError)?.isConstraint == true, jobs.count > 1 {
                // Retries one by one, so that a batch that cannot be stored does not affect the others.
                isSplit = true
                return jobs.flatMap { write([$0], writer) }
            }
            let failure = StoreFailure(error)
            record.failure = failure
            return jobs.map { _ in .failure(failure) }
        }
    }

    private func store(_ batches: [EventBatch], _ writer: EventLogWriter) throws -> [AppendOutcome] {
        guard let batch = batches.first else { return [] }
        guard batches.count == 1, batch.events.count > EventHorizon.mostOfTransaction else {
            return try writer.store(batches)
        }
        // Stores parts of a large batch in separate transactions. After a failure, the client sends the batch
        // again, and its stored events are duplicates.
        var outcome = AppendOutcome()
        for start in stride(from: 0, to: batch.events.count, by: EventHorizon.mostOfTransaction) {
            let end = min(start + EventHorizon.mostOfTransaction, batch.events.count)
            let part = EventBatch(
                appID: batch.appID, receivedMilliseconds: batch.receivedMilliseconds, body: batch.body,
                events: Array(batch.events[start..<end]), customers: start == 0 ? batch.customers : [],
                proof: batch.proof)
            for stored in try writer.store([part]) {
                outcome.accepted += stored.accepted
                outcome.duplicates += stored.duplicates
            }
        }
        return [outcome]
    }
}
