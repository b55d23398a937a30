internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// Makes partitions ahead, deletes what is kept no longer and seals secrets that are not sealed yet: in one gateway at a time, whichever has the lock.
final class EventUpkeep: @unchecked Sendable {
    /// What may be deleted before a store answers its first batch.
    private static let secondsAtStart = 2.0
    /// The pause after a deletion step, as a multiple of the step's duration.
    private static let restShare: UInt64 = 3

    private let pool: PostgreSQLPool
    private let retention: @Sendable () -> BytewiseDictionary<AppRules>
    private let observer: (any GatewayObserver)?
    private let everySeconds: Double
    private let size = Lock((bytes: 0, partitions: 0))
    private let clock = Lock(RetentionClock())
    /// The time of receipt of each app's oldest event that was not due yet.
    private let oldest = Lock<BytewiseDictionary<Int64>>([:])
    /// For each day's partition, an app that still retains events in it.
    private let keepers = Lock<[Int: String]>([:])
    // `condition` guards `isStopping` and `hasEnded`.
    private let condition = Condition()
    private var isStopping = false
    private var hasEnded = false

    init(
        _ pool: PostgreSQLPool, retention: @escaping @Sendable () -> BytewiseDictionary<AppRules>,
        observer: (any GatewayObserver)?, everySeconds: Double
    ) {
        // Sums over a day may take longer than a request would wait.
        self.pool = PostgreSQLPool(pool.settings.patient, connections: 1, tokenKey: pool.tokenKey)
        self.retention = retention
        self.observer = observer
        self.everySeconds = everySeconds
    }

    /// What the database takes on the server's disk, as of the last look.
    var databaseBytes: Int { size.withLock { $0.bytes } }

    /// The partitions of events, as of the last look.
    var partitions: Int { size.withLock { $0.partitions } }

    /// Does a first round, and goes on with a thread. Throws what the database says.
    func begin() throws {
        let isDone = try round(until: .now() + Self.secondsAtStart)
        let thread = Thread { [self] in run(atOnce: !isDone) }
        thread.name = "event upkeep"
        thread.start()
    }

    func stop() {
        condition.lock()
        isStopping = true
        condition.broadcast()
        while !hasEnded { condition.wait() }
        condition.unlock()
    }

    private func run(atOnce: Bool) {
        var next = DispatchTime.now() + (atOnce ? 0 : everySeconds)
        condition.lock()
        while !isStopping {
            if condition.wait(until: next) { continue }
            condition.unlock()
            // What fails is tried again in the next round.
            _ = try? round(until: .distantFuture)
            next = .now() + everySeconds
            condition.lock()
        }
        hasEnded = true
        condition.broadcast()
        condition.unlock()
    }

    /// False when there may be more to do.
    private func round(until end: DispatchTime) throws -> Bool {
        try pool.use { connection in
            let looked = try connection.first(
                """
                SELECT pg_database_size(current_database()), count(*) FROM pg_inherits
                WHERE inhparent = 'event'::regclass
                """
            ) { (bytes: $0.int(0), partitions: $0.int(1)) }
            if let looked { size.withLock { $0 = looked } }
            // Also where another gateway has the lock, so that a leap is seen whoever has it.
            let told =
                try connection.first("SELECT floor(extract(epoch FROM now()) * 1000)::bigint") { $0.int64(0) }
                ?? 0
            let now = clock.withLock { $0.time(told) }
            let isMine = try connection.first(
                "SELECT pg_try_advisory_lock(\(PostgreSQLSchema.lockClass), 2)"
            ) { $0.int(0) != 0 }
            guard isMine == true else { return true }
            defer { try? connection.execute("SELECT pg_advisory_unlock(\(PostgreSQLSchema.lockClass), 2)") }
            // Without them events lie in the default partition until the next round.
            try? EventPartitions.make(connection)
            // Those that are not sealed yet are shown among the cluster's warnings.
            try? connection.sealSecrets()
            try EventHorizon.note(connection)
            let rules = retention()
            try EventPartitions.dropIDs(nowMilliseconds: now, connection)
            let passed = try keepers.withLock {
                try EventPartitions.dropEvents(rules, nowMilliseconds: now, keepers: &$0, connection)
            }
            for id in passed { tell(id) }
            var oldest = oldest.withLock { $0 }.filter { rules[$0.key] != nil }
            var sweeps = rules.filter { $0.value.retentionDays != nil || $0.value.retentionBytes != nil }
                .map {
                    RetentionSweep(
                        appID: $0.key, rules: $0.value, nowMilliseconds: now,
                        oldestMilliseconds: oldest[$0.key])
                }
            // The apps take turns.
            var pause = DispatchTime(uptimeNanoseconds: 0)
            while let sweep = sweeps.first, DispatchTime.now() < end, !isEnding(after: pause) {
                let began = DispatchTime.now().uptimeNanoseconds
                // A retried transaction starts with the same sweep.
                let (stepped, goesOn) = try connection.committing {
                    var sweep = sweep
                    let goesOn = try sweep.step(connection)
                    return (sweep, goesOn)
                }
                for id in stepped.passed { tell(id) }
                oldest[stepped.appID] = stepped.oldestMilliseconds
                sweeps.removeFirst()
                guard goesOn else { continue }
                sweeps.append(stepped)
                guard end == .distantFuture else { continue }
                let ended = DispatchTime.now().uptimeNanoseconds
                pause = DispatchTime(uptimeNanoseconds: ended + Self.restShare * (ended - began))
            }
            self.oldest.withLock { $0 = oldest }
            return sweeps.isEmpty
        }
    }

    /// Waits until a time, or until stopped. Returns true if stopped.
    private func isEnding(after pause: DispatchTime) -> Bool {
        condition.lock()
        defer { condition.unlock() }
        while !isStopping, condition.wait(until: pause) {}
        return isStopping
    }

    private func tell(_ consumer: EventConsumerID) {
        observer?.eventsMissed(by: consumer.name, ofKind: consumer.kind.rawValue, appID: consumer.appID)
    }
}
