internal import CountersignCore
internal import CountersignSQLite
package import GatewayModel

/// Consumers in `events.sqlite`. In a running gateway, the event writer commits positions together with
/// events.
package final class SQLiteEventConsumers: EventConsumers {
    enum Writer: Sendable {
        case store(SQLiteEventStore)
        /// A separate connection, when no gateway runs in this process.
        case file(String)
    }

    let reader: SQLiteEventLog
    private let writer: Writer
    /// Milliseconds since 1970.
    let now: @Sendable () -> Int64
    let leases = Lock<[EventConsumerID: ConsumerLeases]>([:])

    init(reader: SQLiteEventLog, writer: Writer, now: @escaping @Sendable () -> Int64) {
        self.reader = reader
        self.writer = writer
        self.now = now
    }

    // MARK: The list

    package func create(
        _ id: EventConsumerID, _ settings: EventConsumerSettings, from start: EventStart
    ) throws(ConsumerFailure) -> EventConsumer {
        try EventConsumerRules.check(id, settings)
        let sequence = try sequence(of: start, in: id.appID)
        let milliseconds = now()
        let failure = try write { table -> ConsumerFailure? in
            if try table.row(id) == nil,
                try table.rows.count(id.kind, of: id.appID) >= EventConsumerRules.mostOfApp
            {
                return EventConsumerRules.tooMany
            }
            let isNew = try table.insert(id, settings, at: sequence, milliseconds: milliseconds)
            return isNew ? nil : EventConsumerRules.exists(id)
        }
        if let failure { throw failure }
        return try find(id)
    }

    package func all(
        _ kind: EventConsumerID.Kind, of appID: String?
    ) throws(ConsumerFailure) -> [EventConsumer] {
        try read { sqlite, _ in
            let table = EventConsumerTable(sqlite: sqlite)
            return try table.rows.ids(kind, of: appID).compactMap { try table.row($0) }
                .map { try self.consumer($0, sqlite) }
        }
    }

    package func find(_ id: EventConsumerID) throws(ConsumerFailure) -> EventConsumer {
        let found = try read { sqlite, _ in
            try EventConsumerTable(sqlite: sqlite).row(id).map { try self.consumer($0, sqlite) }
        }
        guard let found else { throw EventConsumerRules.notFound(id) }
        return found
    }

    private func consumer(_ row: EventConsumerTable.Row, _ sqlite: SQLiteConnection) throws -> EventConsumer {
        let time = now()
        let table = leases.withLock { $0[row.id] }
        let partitions = row.positions.enumerated().map { index, position in
            EventConsumer.Partition(
                committed: position,
                leasedUntilMilliseconds: table.flatMap {
                    index < $0.partitions && $0.generation == row.generation
                        ? $0.deadline(of: index, at: time) : nil
                })
        }
        let index = try reader.index(sqlite)
        let floor = try EventFloor.read(of: row.id.appID, sqlite)
        var counts: [Int64: Int] = [:]
        var behind = 0
        for position in row.positions {
            let count = try counts[position] ?? index.count(of: row.id.appID, after: max(position, floor))
            counts[position] = count
            behind += count
        }
        let least = row.positions.min() ?? 0
        let next = try index.sequences(of: .app, in: row.id.appID, .after(max(least, floor)), limit: 64)
        var oldest: Int64?
        for sequence in next where oldest == nil {
            oldest = try sqlite.first(
                "SELECT received_ms FROM event WHERE seq = ?1", .integer(sequence)
            ) { $0.int64(0) }
        }
        // The index also counts events of deleted persons.
        if oldest == nil, next.count < 64 { behind = 0 }
        return EventConsumer(
            id: row.id, settings: row.settings, createdMilliseconds: row.createdMilliseconds,
            partitions: partitions, lag: (behind + row.positions.count - 1) / max(1, row.positions.count),
            oldestUnreadMilliseconds: oldest,
            gap: EventGap(after: least, floor: floor).joined(with: row.passedGap))
    }

    package func seek(
        _ id: EventConsumerID, to start: EventStart
    ) throws(ConsumerFailure) -> EventConsumer {
        let sequence = try sequence(of: start, in: id.appID)
        let isThere = try write { table in
            let isThere = try table.row(id) != nil
            if isThere { try table.seek(id, to: sequence) }
            return isThere
        }
        guard isThere else { throw EventConsumerRules.notFound(id) }
        forgetLeases(of: id)
        return try find(id)
    }

    package func place(_ id: EventConsumerID, after sequence: Int64) throws(ConsumerFailure) {
        let isThere = try write { table in
            let isThere = try table.row(id) != nil
            if isThere { try table.place(id, after: sequence) }
            return isThere
        }
        if !isThere { throw EventConsumerRules.notFound(id) }
    }

    package func progress(
        _ kind: EventConsumerID.Kind
    ) throws(ConsumerFailure) -> [EventConsumerID: DeliveryProgress] {
        try read { sqlite, _ in try ConsumerRows(sqlite).progress(kind) }
    }

    package func follow(
        _ id: EventConsumerID, holdDays: Int?, from progress: DeliveryProgress?
    ) throws(ConsumerFailure) {
        let milliseconds = now()
        try write { table in
            if let progress {
                _ = try table.insert(
                    id, EventConsumerSettings(), at: progress.committed, milliseconds: milliseconds)
                try table.rows.keep(progress, of: id, atMilliseconds: milliseconds)
            }
            try table.rows.setHold(holdDays, of: id)
        }
    }

    package func keep(_ progress: [EventConsumerID: DeliveryProgress]) throws(ConsumerFailure) {
        let milliseconds = now()
        try write { table in
            for (id, progress) in progress {
                try table.rows.keep(progress, of: id, atMilliseconds: milliseconds)
            }
        }
    }

    package func delete(_ id: EventConsumerID) throws(ConsumerFailure) {
        let isThere = try write { try $0.rows.delete(id) }
        forgetLeases(of: id)
        if !isThere { throw EventConsumerRules.notFound(id) }
    }

    private func forgetLeases(of id: EventConsumerID) {
        leases.withLock { _ = $0.removeValue(forKey: id) }
        noteChange(of: id)
    }

    package func sequence(of start: EventStart, in appID: String) throws(ConsumerFailure) -> Int64 {
        try read { sqlite, log in
            let floor = try EventFloor.read(of: appID, sqlite)
            return switch start {
            case .start: floor
            case .end: try log.head(sqlite)
            case .time(let milliseconds):
                try max(floor, self.reader.sequence(before: milliseconds, of: appID, sqlite, log))
            case .after(let sequence): min(sequence, try log.head(sqlite))
            }
        }
    }

    // MARK: The file

    func noteChange(of id: EventConsumerID) {
        if case .store(let store) = writer { store.arrivals.note([id.appID]) }
    }

    func row(_ id: EventConsumerID) throws(ConsumerFailure) -> EventConsumerTable.Row? {
        try read { sqlite, _ in try EventConsumerTable(sqlite: sqlite).row(id) }
    }

    private func read<Value>(
        _ body: (SQLiteConnection, EventLogState) throws -> Value
    ) throws(ConsumerFailure) -> Value {
        try Self.storing {
            try reader.following { sqlite, log in
                guard log.hasClaims else { throw SQLiteEventLog.earlierVersion }
                return try body(sqlite, log)
            }
        }
    }

    static func storing<Value>(_ body: () throws -> Value) throws(ConsumerFailure) -> Value {
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

    func write<Value: Sendable>(
        _ body: @escaping @Sendable (EventConsumerTable) throws -> Value
    ) throws(ConsumerFailure) -> Value {
        switch writer {
        case .store(let store):
            do throws(StoreFailure) {
                return try store.change { try body(EventConsumerTable(sqlite: $0)) }
            } catch {
                var failure = ConsumerFailure(.storage, "\(error.summary); try again")
                failure.store = error
                throw failure
            }
        case .file(let path):
            return try Self.storing {
                let sqlite = try SQLiteConnection(path: path)
                try sqlite.execute("PRAGMA synchronous = FULL")
                return try sqlite.transaction { try body(EventConsumerTable(sqlite: sqlite)) }
            }
        }
    }
}
