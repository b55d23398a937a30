internal import CountersignCore
package import CountersignSQLite
package import GatewayModel

/// Consumers in `events.sqlite`. In a running gateway, the event writer commits positions together with events.
///
/// Leases are in memory, because only one gateway runs on a folder, and a poll then needs no commit.
package final class SQLiteConsumerEngine: ConsumerEngine {
    enum Writer: Sendable {
        case store(SQLiteEventStore)
        /// A separate connection, when no gateway runs in this process.
        case file(String)
    }

    package static let generation = "generation"

    private let reader: SQLiteEventLog
    private let writer: Writer
    /// Milliseconds since 1970.
    private let time: @Sendable () -> Int64
    let leases = Lock<[EventConsumerID: ConsumerLeases]>([:])

    init(reader: SQLiteEventLog, writer: Writer, now: @escaping @Sendable () -> Int64) {
        self.reader = reader
        self.writer = writer
        time = now
    }

    // MARK: The file

    package func now(_ connection: SQLiteConnection) -> Int64 { time() }

    package func read<Value>(_ body: (SQLiteConnection) throws -> Value) throws(ConsumerFailure) -> Value {
        try Self.storing {
            try reader.snapshot { sqlite, log in
                guard log.hasPartitionGaps else { throw EventLogState.earlierVersion }
                return try Self.result { try body(sqlite) }
            }.get()
        }
    }

    /// Returns a ``ConsumerFailure`` as a value. If thrown, the store would report it as a failure of the disk.
    private static func result<Value>(
        _ body: () throws -> Value
    ) throws -> Result<Value, ConsumerFailure> {
        do {
            return .success(try body())
        } catch let failure as ConsumerFailure {
            return .failure(failure)
        }
    }

    private static func storing<Value>(_ body: () throws -> Value) throws(ConsumerFailure) -> Value {
        do {
            return try body()
        } catch let failure as ConsumerFailure {
            throw failure
        } catch let error as GatewayError where error.code != .storage {
            throw ConsumerFailure(error.code == .notFound ? .notFound : .invalid, error.reason)
        } catch {
            throw ConsumerFailure(.storage, "the events cannot be read: \(error)")
        }
    }

    package func write<Value: Sendable>(
        _ body: @escaping @Sendable (SQLiteConnection) throws -> Value
    ) throws(ConsumerFailure) -> Value {
        switch writer {
        case .store(let store):
            let result: Result<Value, ConsumerFailure>
            do throws(StoreFailure) {
                result = try store.change { sqlite in try Self.result { try body(sqlite) } }
            } catch {
                var failure = ConsumerFailure(.storage, "\(error.summary); try again")
                failure.store = error
                throw failure
            }
            return try result.get()
        case .file(let path):
            return try Self.storing {
                let sqlite = try SQLiteConnection(path: path)
                try sqlite.execute("PRAGMA synchronous = FULL")
                return try sqlite.transaction { try body(sqlite) }
            }
        }
    }

    /// Does nothing, because only one transaction writes the file at a time.
    package func lockList(of appID: String, _ connection: SQLiteConnection) {}

    // MARK: The log

    package func head(_ connection: SQLiteConnection) throws -> Int64 {
        try EventLogState.readExisting(connection).head(connection)
    }

    package func sequence(
        before milliseconds: Int64, of appID: String, after floor: Int64, _ connection: SQLiteConnection
    ) throws -> Int64 {
        try reader.sequence(
            before: milliseconds, of: appID, after: floor, connection,
            try EventLogState.readExisting(connection))
    }

    package func unread(
        of appID: String, after sequence: Int64, _ connection: SQLiteConnection
    ) throws -> (count: Int, oldestMilliseconds: Int64?) {
        let index = try reader.index(connection)
        let next = try index.sequences(of: .app, in: appID, .after(sequence), limit: 64)
        var oldest: Int64?
        for sequence in next where oldest == nil {
            oldest = try connection.first(
                "SELECT received_ms FROM event WHERE seq = ?1", .integer(sequence)
            ) { $0.int64(0) }
        }
        // The index may list events deleted with their customer. Fewer than 64 entries and no row mean no unread event.
        if oldest == nil, next.count < 64 { return (0, nil) }
        return (try index.count(of: appID, after: sequence), oldest)
    }

    package func follow(
        _ query: EventQuery, after sequence: Int64, limit: Int, _ connection: SQLiteConnection
    ) throws -> EventRange {
        try reader.follow(
            query, after: sequence, limit: limit, connection, try EventLogState.readExisting(connection))
    }

    // MARK: Leases

    package func deadlines(of row: ConsumerRows.Row, _ connection: SQLiteConnection) -> [Int64?] {
        let table = leases.withLock { $0[row.id] }.flatMap { $0.isValid(for: row) ? $0 : nil }
        let now = time()
        return row.positions.indices.map { table?.deadline(of: $0, at: now) }
    }

    package func lease(
        _ partition: Int, of row: ConsumerRows.Row,
        _ read: @escaping @Sendable (SQLiteConnection) throws -> LeaseAttempt
    ) throws(ConsumerFailure) -> LeaseAttempt? {
        let id = row.id
        guard try reserve(partition, of: row) else { return nil }
        func abandon() {
            leases.withLock { if $0[id]?.generation == row.generation { $0[id]?.abandon(partition) } }
        }
        do throws(ConsumerFailure) {
            let attempt = try self.read(read)
            if let lease = attempt.lease, let held = attempt.held {
                let hasBegun = leases.withLock {
                    $0[id]?.generation == attempt.generation
                        && $0[id]?.begin(held, until: lease.deadlineMilliseconds) == true
                }
                // The consumer was moved or created again meanwhile.
                guard hasBegun else { return nil }
                return attempt
            }
            try pass(attempt, partition, of: id)
            abandon()
            return attempt
        } catch {
            abandon()
            throw error
        }
    }

    /// Reserves a partition in the leases of the row's generation. A seek, also by another process, and recreating the
    /// consumer begin a new generation, which ends all leases. Returns false if the row is of an earlier generation
    /// than the leases, or if the partition is not free.
    private func reserve(_ partition: Int, of row: ConsumerRows.Row) throws(ConsumerFailure) -> Bool {
        let isOutdated = leases.withLock { $0[row.id]?.isValid(for: row) == false }
        if isOutdated { try removeOutdatedLeases(of: row.id) }
        return leases.withLock { leases in
            var table =
                leases[row.id] ?? ConsumerLeases(partitions: row.positions.count, generation: row.generation)
            guard table.isValid(for: row) else { return false }
            defer { leases[row.id] = table }
            return table.reserve(partition, at: time())
        }
    }

    /// Removes leases of an earlier generation than the stored one.
    private func removeOutdatedLeases(of id: EventConsumerID) throws(ConsumerFailure) {
        guard let known = leases.withLock({ $0[id]?.generation }) else { return }
        let stored = try read { try ConsumerRows($0).row(id, generation: Self.generation)?.generation }
        // A poll may have begun leases of the stored generation meanwhile.
        if stored != known { leases.withLock { if $0[id]?.generation == known { $0[id] = nil } } }
    }

    /// Advances the position over events that do not match, so that they are not examined again.
    private func pass(
        _ attempt: LeaseAttempt, _ partition: Int, of id: EventConsumerID
    ) throws(ConsumerFailure) {
        guard attempt.range.scanned > 0 else { return }
        _ = try write { connection in
            try ConsumerRows(connection).move(
                id, partition, from: attempt.from, to: attempt.range.scannedThrough, gap: attempt.range.gap,
                if: Self.isOfGeneration, .integer(attempt.generation))
        }
    }

    /// An SQL condition: the consumer has the generation in parameter `?7`.
    private static let isOfGeneration =
        "EXISTS (SELECT 1 FROM event_consumer WHERE \(ConsumerRows.isIt) AND generation = ?7)"

    package func acknowledge(
        _ lease: String, of id: EventConsumerID, through sequence: Int64?
    ) throws(ConsumerFailure) -> Int64 {
        let (found, target, generation) = try leases.withLock {
            leases throws(ConsumerFailure) -> (HeldLease?, Int64, Int64) in
            guard let table = leases[id] else { throw EventConsumerRules.leaseExpired }
            switch table.find(lease) {
            case .expired: throw EventConsumerRules.leaseExpired
            case .busy:
                throw ConsumerFailure(
                    .storage, "the acknowledgement of this lease is still being written; send it again")
            case .acknowledged(let position): return (nil, position, 0)
            case .lease(let found):
                let target = try found.position(through: sequence)
                leases[id]?.acknowledge(found)
                return (found, target, table.generation)
            }
        }
        guard let found else { return target }
        let isMoved: Bool
        let now = time()
        do throws(ConsumerFailure) {
            isMoved = try write { connection in
                let rows = ConsumerRows(connection)
                let isMoved = try rows.move(
                    id, found.partition, from: found.from, to: target, gap: nil, if: Self.isOfGeneration,
                    .integer(generation))
                if isMoved { try rows.noteMoved(id, deliveredMilliseconds: now) }
                return isMoved
            }
        } catch {
            leases.withLock { $0[id]?.fail(found, isOver: false) }
            throw error
        }
        leases.withLock { leases in
            if isMoved {
                leases[id]?.finish(found, at: target)
            } else {
                leases[id]?.fail(found, isOver: true)
            }
        }
        noteChange(of: id)
        guard isMoved else {
            let isThere = try read { try ConsumerRows($0).isThere(id) }
            throw isThere ? EventConsumerRules.leaseExpired : EventConsumerRules.notFound(id)
        }
        return target
    }

    package func release(_ lease: String, of id: EventConsumerID) throws(ConsumerFailure) {
        try leases.withLock { leases throws(ConsumerFailure) in
            guard case .lease(let found)? = leases[id]?.find(lease) else {
                throw EventConsumerRules.leaseExpired
            }
            leases[id]?.release(found)
        }
        noteChange(of: id)
    }

    package func endLeases(of id: EventConsumerID, _ connection: SQLiteConnection) throws {
        try ConsumerRows(connection).run(
            "UPDATE event_consumer SET generation = generation + 1 WHERE \(ConsumerRows.isIt)", id)
    }

    package func leasesEnded(of id: EventConsumerID) {
        // After an error, the outdated leases remain in memory, but their generation makes acknowledgements fail.
        try? removeOutdatedLeases(of: id)
        noteChange(of: id)
    }

    private func noteChange(of id: EventConsumerID) {
        if case .store(let store) = writer { store.arrivals.note([id.appID]) }
    }
}
