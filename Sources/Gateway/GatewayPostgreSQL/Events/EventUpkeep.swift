internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// Creates partitions and deletes expired data, in the gateway that takes the advisory lock.
final class EventUpkeep: Sendable {
    /// The time limit of the first round, which ends before the store accepts batches, in seconds.
    private static let secondsAtStart = 2.0
    /// The pause after a deletion step, as a multiple of the step's duration.
    private static let restShare: UInt64 = 3

    private let pool: PostgreSQLPool
    private let retention: @Sendable () -> BytewiseDictionary<AppRules>
    private let observer: (any GatewayObserver)?
    private let everySeconds: Double
    private let size = Lock((bytes: 0, partitions: 0))
    private let clock = Lock(RetentionClock())
    /// The time of receipt of each app's oldest event at the last round.
    private let oldest = Lock<BytewiseDictionary<Int64>>([:])
    /// For each day's partition, an app that still retains events in it.
    private let keepers = Lock<[Int: String]>([:])
    private let stopping = CountingSemaphore(value: 0)
    private let ended = CountingSemaphore(value: 0)

    init(
        _ pool: PostgreSQLPool, retention: @escaping @Sendable () -> BytewiseDictionary<AppRules>,
        observer: (any GatewayObserver)?, everySeconds: Double
    ) {
        // A separate pool, because sums over a day may exceed the statement timeout of requests.
        self.pool = PostgreSQLPool(pool.settings.patient, connections: 1)
        self.retention = retention
        self.observer = observer
        self.everySeconds = everySeconds
    }

    var databaseBytes: Int { size.withLock { $0.bytes } }

    var partitions: Int { size.withLock { $0.partitions } }

    /// Performs a first round and starts the thread.
    func begin() throws {
        let isDone = try round(until: .now() + Self.secondsAtStart)
        let thread = Thread { [self] in run(atOnce: !isDone) }
        thread.name = "event upkeep"
        thread.start()
    }

    func stop() {
        stopping.signal()
        _ = ended.wait(until: .distantFuture)
        ended.signal()
    }

    private func run(atOnce: Bool) {
        var next = DispatchTime.now() + (atOnce ? 0 : everySeconds)
        while !isStopping(by: next) {
            // A failed round is repeated at the next interval.
            _ = try? round(until: .distantFuture)
            next = .now() + everySeconds
        }
        ended.signal()
    }

    /// Returns false when more work remains.
    private func round(until end: DispatchTime) throws -> Bool {
        try pool.use { connection in
            let measured = try connection.first(
                """
                SELECT pg_database_size(current_database()), count(*) FROM pg_inherits
                WHERE inhparent = 'event'::regclass
                """
            ) { (bytes: $0.int(0), partitions: $0.int(1)) }
            if let measured { size.withLock { $0 = measured } }
            // Every gateway reads the time, so that each detects sudden jumps of the database's clock.
            let databaseTime =
                try connection.first("SELECT floor(extract(epoch FROM now()) * 1000)::bigint") { $0.int64(0) }
                ?? 0
            let now = clock.withLock { $0.time(databaseTime) }
            let isMine = try connection.first(
                "SELECT pg_try_advisory_lock(\(PostgreSQLSchema.lockClass), \(PostgreSQLSchema.AdvisoryLock.upkeep))"
            ) { $0.int(0) != 0 }
            guard isMine == true else { return true }
            defer {
                try? connection.execute(
                    "SELECT pg_advisory_unlock(\(PostgreSQLSchema.lockClass), \(PostgreSQLSchema.AdvisoryLock.upkeep))"
                )
            }
            // Ignores errors, because events of a day without a partition are stored in the default partition.
            try? EventPartitions.make(connection)
            try EventHorizon.note(connection)
            let rules = retention()
            try EventPartitions.dropIDs(nowMilliseconds: now, connection)
            try keepers.withLock {
                try EventPartitions.dropEvents(
                    rules, nowMilliseconds: now, keepers: &$0, connection, report: report)
            }
            var oldest = oldest.withLock { $0 }.filter { rules[$0.key] != nil }
            var sweeps = rules.filter { $0.value.retentionDays != nil || $0.value.retentionBytes != nil }
                .map {
                    RetentionSweeper(
                        appID: $0.key, rules: $0.value, nowMilliseconds: now,
                        oldestMilliseconds: oldest[$0.key])
                }
            // Performs one step of each app in turn, so that an app with many expired events does not delay others.
            var pause = DispatchTime(uptimeNanoseconds: 0)
            while let sweep = sweeps.first, DispatchTime.now() < end, !isStopping(by: pause) {
                let began = DispatchTime.now().uptimeNanoseconds
                // Copies the sweep, so that a retried transaction starts with the same state.
                let (stepped, goesOn) = try connection.committing {
                    var sweep = sweep
                    let goesOn = try sweep.step(connection)
                    return (sweep, goesOn)
                }
                for id in stepped.passed { report(id) }
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

    /// Waits until `time`. Returns true if the upkeep is being stopped.
    private func isStopping(by time: DispatchTime) -> Bool {
        guard stopping.wait(until: time) else { return false }
        stopping.signal()
        return true
    }

    private func report(_ consumer: EventConsumerID) {
        observer?.eventsMissed(by: consumer.name, ofKind: consumer.kind.noun, appID: consumer.appID)
    }
}
