internal import CountersignCore
internal import CountersignSQLite
package import Foundation
package import GatewayModel

/// Batches that wait for a commit, and the threads that commit them.
///
/// Batches that arrive during a commit share the next one. After a commit of several batches, the writer waits briefly
/// for more batches. After a commit of a single batch, the writer does not wait.
package final class CommitQueue: @unchecked Sendable {
    /// A class, so that moving a job between arrays copies only a reference.
    package final class Job: Sendable {
        /// Nil for a change, or for a probe, which checks that the storage is writable.
        package let batch: EventBatch?
        /// A change that ``SQLiteEventStore`` makes in the next commit, instead of storing a batch.
        let change: (@Sendable (SQLiteConnection) throws -> Void)?
        package let completion: @Sendable (Result<AppendOutcome, StoreFailure>) -> Void

        init(
            batch: EventBatch?, change: (@Sendable (SQLiteConnection) throws -> Void)? = nil,
            completion: @escaping @Sendable (Result<AppendOutcome, StoreFailure>) -> Void
        ) {
            self.batch = batch
            self.change = change
            self.completion = completion
        }
    }

    /// How a writer waits for more batches if its last commit had several jobs.
    package struct Gathering: Sendable {
        let microseconds: UInt32
        /// The minimum number of waits, even if as many batches have arrived as the last commit had.
        let least: Int
        /// The maximum number of waits while fewer batches have arrived than the last commit had.
        let most: Int

        package init(microseconds: UInt32, least: Int, most: Int) {
            self.microseconds = microseconds
            self.least = least
            self.most = most
        }
    }

    private let pendingLimit: Int
    private let gathering: Gathering
    /// The maximum number of events of a commit. A larger batch is committed alone.
    private let mostEvents: Int
    /// The word for the storage in the text of a rejection.
    private let storage: String
    // `condition` guards the properties below.
    private let condition = Condition()
    private var appenders = 0
    private var waiting: [Job] = []
    private var waitingBytes = 0
    private var keyUses = KeyUseTally()
    private var isClosing = false
    private var writers = 0

    /// `pendingBytes` limits the total size of uncommitted bodies. Further batches are rejected as `overloaded`.
    package init(pendingBytes: Int, waitingFor storage: String, gathering: Gathering, mostEvents: Int = .max)
    {
        pendingLimit = pendingBytes
        self.storage = storage
        self.gathering = gathering
        self.mostEvents = mostEvents
    }

    package func start(_ names: [String], _ write: @escaping @Sendable () -> Void) {
        condition.withLock { writers = names.count }
        for name in names {
            let thread = Thread { [self] in
                write()
                condition.withLock {
                    writers -= 1
                    condition.broadcast()
                }
            }
            thread.name = name
            thread.start()
        }
    }

    /// Rejects new jobs, and waits until the writers have ended.
    package func close() {
        condition.withLock {
            isClosing = true
            condition.broadcast()
            while writers > 0 { condition.wait() }
        }
    }
}

// MARK: For appending threads

extension CommitQueue {
    package func append(
        _ batch: EventBatch, completion: @escaping @Sendable (Result<AppendOutcome, StoreFailure>) -> Void
    ) {
        add(Job(batch: batch, completion: completion))
    }

    package func probe(completion: @escaping @Sendable (Result<Void, StoreFailure>) -> Void) {
        add(Job(batch: nil) { completion($0.map { _ in }) })
    }

    /// Batches that `body` appends share a commit, up to `mostEvents`.
    package func together(_ body: () -> Void) {
        condition.lock()
        appenders += 1
        condition.unlock()
        body()
        condition.lock()
        appenders -= 1
        if !waiting.isEmpty { condition.signal() }
        condition.unlock()
    }

    package func noteKeyUse(appID: String, keyID: String, milliseconds: Int64) {
        condition.lock()
        keyUses.add(appID: appID, keyID: keyID, milliseconds: milliseconds)
        condition.unlock()
    }

    package var load: (batches: Int, bytes: Int) {
        condition.lock()
        defer { condition.unlock() }
        return (waiting.count, waitingBytes)
    }

    func add(_ job: Job) {
        condition.lock()
        let size = job.batch?.body.count ?? 0
        let rejection: StoreFailure? =
            isClosing
            ? StoreFailure(reason: .closed, detail: "the store is closed")
            : waitingBytes + size > pendingLimit
                ? StoreFailure(reason: .overloaded, detail: "\(waitingBytes) bytes wait for the \(storage)")
                : nil
        if rejection == nil {
            waiting.append(job)
            waitingBytes += size
            if appenders == 0 { condition.signal() }
        }
        condition.unlock()
        if let rejection { job.completion(.failure(rejection)) }
    }
}

// MARK: For writer threads

extension CommitQueue {
    /// Waits for jobs. Returns nil when the queue is closed and empty. `last` is the number of jobs in this writer's
    /// last commit. `wakeTime` returns the end of the wait. It is called under the lock, with true if key uses wait.
    package func next(after last: Int, until wakeTime: (_ hasKeyUses: Bool) -> DispatchTime) -> [Job]? {
        condition.lock()
        defer { condition.unlock() }
        while waiting.isEmpty || appenders > 0, !isClosing,
            condition.wait(until: wakeTime(!keyUses.isEmpty))
        {}
        if last > 1, !waiting.isEmpty, !isClosing {
            // Waits, because the senders of the last commit have their responses now, and most soon send again.
            for count in 0..<gathering.most where count < gathering.least || waiting.count < last {
                condition.unlock()
                usleep(gathering.microseconds)
                condition.lock()
            }
            while appenders > 0, !isClosing { condition.wait() }
        }
        guard appenders == 0 || isClosing else { return [] }
        return waiting.isEmpty && isClosing ? nil : take()
    }

    private func take() -> [Job] {
        var jobs: [Job] = []
        guard mostEvents < .max else {
            swap(&jobs, &waiting)
            return jobs
        }
        var events = 0
        let count =
            waiting.firstIndex { job in
                events += job.batch?.events.count ?? 0
                return events > mostEvents
            } ?? waiting.count
        jobs = Array(waiting.prefix(max(count, min(1, waiting.count))))
        waiting.removeFirst(jobs.count)
        if !waiting.isEmpty { condition.signal() }
        return jobs
    }

    package func complete(_ jobs: [Job], _ results: [Result<AppendOutcome, StoreFailure>]) {
        condition.lock()
        waitingBytes -= jobs.reduce(0) { $0 + ($1.batch?.body.count ?? 0) }
        condition.unlock()
        // Completes all jobs at once after the commit, so that the HTTP server's threads wake once for many responses.
        for (job, result) in zip(jobs, results) { job.completion(result) }
    }

    package var hasKeyUses: Bool {
        condition.lock()
        defer { condition.unlock() }
        return !keyUses.isEmpty
    }

    /// Takes the waiting key uses if `isDue` returns true. `isDue` is called under the lock, and only if there are any.
    package func takeKeyUses(if isDue: () -> Bool = { true }) -> KeyUseTally {
        condition.lock()
        defer { condition.unlock() }
        guard !keyUses.isEmpty, isDue() else { return KeyUseTally() }
        defer { keyUses = KeyUseTally() }
        return keyUses
    }

    package func putBack(_ uses: KeyUseTally?) {
        guard let uses else { return }
        condition.lock()
        keyUses.add(uses)
        condition.unlock()
    }

    func withLock<Value>(_ change: () -> Value) -> Value { condition.withLock(change) }

    /// Runs `change` under the lock and wakes a writer. If the queue is closed, returns false without calling `change`.
    func wakeWriter(after change: () -> Void) -> Bool {
        condition.withLock {
            guard !isClosing else { return false }
            change()
            condition.signal()
            return true
        }
    }
}
