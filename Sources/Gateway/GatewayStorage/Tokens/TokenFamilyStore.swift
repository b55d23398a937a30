internal import CountersignCore
package import Foundation
package import GatewayModel

/// Stores token families, used assertions and revoked access tokens in `tokens.sqlite` or another database.
///
/// Waiting jobs share a commit, and each completes when it is durable. The file uses a rollback journal with
/// `synchronous=EXTRA`, because the command line may also write (see `docs/adr/0002-two-databases.md`).
package final class TokenFamilyStore: AppData, Sendable {
    /// The maximum number of waiting jobs.
    static let capacity = 20_000
    /// The maximum number of attempts to commit, each without the jobs that failed before.
    private static let attempts = 8

    private let queue = DispatchQueue(label: "token families")
    private let shared: Lock<Shared>
    private let database: any SQLDatabase
    private let refreshKey: [UInt8]
    private let databaseTime: (@Sendable (any SQLConnection) throws -> Int64)?

    private struct Shared {
        var jobs: [Job] = []
        var isClosed = false
    }

    private struct Job: Sendable {
        let run: @Sendable (TokenFamilyTable) throws -> Void
        let finish: @Sendable (StoreFailure?) -> Void
    }

    /// Refresh tokens derive from `refreshKey`.
    package convenience init(
        dataDirectory: DataDirectory, refreshKey: [UInt8], at now: Date
    ) throws(GatewayError) {
        let file = try SQLiteWriter(
            path: try dataDirectory.file("tokens.sqlite"),
            pragmas: "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA; PRAGMA foreign_keys = ON",
            TokenFamilySchema.migrations, from: TokenFamilySchema.oldestVersion, at: now)
        self.init(file, refreshKey: refreshKey)
    }

    /// `databaseTime` returns the time of the database's clock, in milliseconds since 1970. Nil means that the times
    /// passed by callers apply.
    package init(
        _ database: any SQLDatabase, refreshKey: [UInt8],
        databaseTime: (@Sendable (any SQLConnection) throws -> Int64)? = nil
    ) {
        self.database = database
        self.refreshKey = refreshKey
        self.databaseTime = databaseTime
        shared = Lock(Shared())
    }

    /// A number that changes when another connection has committed. Must not be called within a transaction.
    package func version() throws(GatewayError) -> Int64 { try database.version() }

    /// Runs `work` in a shared transaction, possibly several times, so its side effects must be idempotent. Calls
    /// `completion`, from any thread, when the result is durable or has failed.
    package func submit<Value: Sendable>(
        _ work: @escaping @Sendable (TokenFamilyTable) throws -> Value,
        completion: @escaping @Sendable (Result<Value, StoreFailure>) -> Void
    ) {
        let result = Lock<Value?>(nil)
        let job = Job(
            run: { table in
                let value = try work(table)
                result.withLock { $0 = value }
            },
            finish: { failure in
                if failure == nil, let value = result.withLock({ $0 }) {
                    completion(.success(value))
                } else {
                    completion(.failure(failure ?? StoreFailure(reason: .failed, detail: "not run")))
                }
            })
        let (isFirst, rejection) = shared.withLock { shared -> (Bool, StoreFailure?) in
            if shared.isClosed { return (false, StoreFailure(reason: .closed, detail: "sessions closed")) }
            guard shared.jobs.count < Self.capacity else {
                return (
                    false, StoreFailure(reason: .overloaded, detail: "too many token requests are waiting")
                )
            }
            shared.jobs.append(job)
            return (shared.jobs.count == 1, nil)
        }
        if let rejection { return completion(.failure(rejection)) }
        if isFirst { queue.async { [self] in drain() } }
    }

    /// Blocks until the result is durable. Must not be called on the threads that serve requests.
    package func perform<Value: Sendable>(
        _ work: @escaping @Sendable (TokenFamilyTable) throws -> Value
    ) throws(GatewayError) -> Value {
        let slot = Lock<Result<Value, StoreFailure>?>(nil)
        let done = DispatchSemaphore(value: 0)
        submit(work) { result in
            slot.withLock { $0 = result }
            done.signal()
        }
        done.wait()
        switch slot.withLock({ $0 }) {
        case .success(let value): return value
        case .failure(let failure):
            throw GatewayError(.storage, "\(failure.summary): \(failure.detail)")
        case nil: throw GatewayError(.storage, "the session store returned no result")
        }
    }

    /// Deletes all data of an app's token families, in small steps.
    package func erase(appID: String) throws(GatewayError) {
        while try !perform({ try $0.erase(appID: appID) }) {}
    }

    /// Commits waiting jobs; later calls fail.
    package func close() {
        shared.withLock { $0.isClosed = true }
        queue.sync { drain() }
    }

    private func drain() {
        var jobs = shared.withLock { shared in
            defer { shared.jobs = [] }
            return shared.jobs
        }
        var failure: StoreFailure?
        // A job that fails is removed, and the others are committed without it. After several failures, the cause is
        // probably common to all jobs, so the remaining jobs fail too.
        for _ in 0..<Self.attempts where !jobs.isEmpty {
            var running: Int?
            do {
                // Needs no exclusive transaction, because jobs lock the rows that they change, with `forUpdate`.
                try database.commit(alone: false) { connection in
                    let table = TokenFamilyTable(
                        connection: connection, key: refreshKey, databaseTime: try databaseTime?(connection))
                    for (index, job) in jobs.enumerated() {
                        running = index
                        try job.run(table)
                    }
                    running = nil
                }
                failure = nil
                break
            } catch {
                failure = StoreFailure(error)
                guard let running, jobs.count > 1 else { break }
                jobs.remove(at: running).finish(failure)
            }
        }
        for job in jobs { job.finish(failure) }
    }
}
