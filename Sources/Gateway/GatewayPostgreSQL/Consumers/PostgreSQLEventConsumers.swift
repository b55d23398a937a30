internal import CountersignCore
internal import CountersignSQLite
package import GatewayModel
package import GatewayStorage

/// Consumers with positions and leases in rows that all gateways share. Workers of a consumer may use any
/// gateway.
///
/// A lease does not depend on the gateway that granted it. It expires by the database's clock.
package struct PostgreSQLEventConsumers: EventConsumers {
    enum Clock: Sendable {
        case database
        /// Milliseconds since 1970, for tests.
        case given(@Sendable () -> Int64)

        func now(_ connection: PostgreSQLConnection) throws -> Int64 {
            switch self {
            case .given(let now): now()
            case .database:
                try connection.first("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint") {
                    $0.int64(0)
                } ?? 0
            }
        }
    }

    /// The maximum number of unread events that are counted, because counting takes time.
    static let mostCounted = 100_000

    let pool: PostgreSQLPool
    /// The arrivals of the running gateway.
    let arrivals: EventArrivals?
    let clock: Clock

    // MARK: The list

    package func create(
        _ id: EventConsumerID, _ settings: EventConsumerSettings, from start: EventStart
    ) throws(ConsumerFailure) -> EventConsumer {
        try EventConsumerRules.check(id, settings)
        let sequence = try sequence(of: start, in: id.appID)
        let failure = try write { connection -> ConsumerFailure? in
            let rows = EventConsumerTable(connection: connection)
            if try rows.holds(id) { return EventConsumerRules.exists(id) }
            if try rows.countAlone(id.kind, of: id.appID) >= EventConsumerRules.mostOfApp {
                return EventConsumerRules.tooMany
            }
            let isNew = try rows.insert(
                id, settings, at: sequence, milliseconds: try clock.now(connection))
            return isNew ? nil : EventConsumerRules.exists(id)
        }
        if let failure { throw failure }
        return try find(id)
    }

    package func all(
        _ kind: EventConsumerID.Kind, of appID: String?
    ) throws(ConsumerFailure) -> [EventConsumer] {
        try read { connection in
            let table = EventConsumerTable(connection: connection)
            return try table.rows.ids(kind, of: appID).compactMap { id in
                try table.row(id).map { try consumer($0, connection) }
            }
        }
    }

    package func find(_ id: EventConsumerID) throws(ConsumerFailure) -> EventConsumer {
        let found = try read { connection in
            try EventConsumerTable(connection: connection).row(id).map { try consumer($0, connection) }
        }
        guard let found else { throw EventConsumerRules.notFound(id) }
        return found
    }

    private func consumer(
        _ row: EventConsumerTable.Row, _ connection: PostgreSQLConnection
    ) throws -> EventConsumer {
        let now = try clock.now(connection)
        let floor = try Self.floor(of: row.id.appID, connection)
        var counts: [Int64: Int] = [:]
        var behind = 0
        for partition in row.partitions {
            let count =
                try counts[partition.position]
                ?? Self.count(of: row.id.appID, after: max(partition.position, floor), connection)
            counts[partition.position] = count
            behind += count
        }
        let least = row.partitions.map(\.position).min() ?? 0
        let oldest = try connection.first(
            "SELECT received_ms FROM event WHERE app_id = ?1 AND position > ?2 ORDER BY position LIMIT 1",
            .text(row.id.appID), .integer(max(least, floor))
        ) { $0.int64(0) }
        return EventConsumer(
            id: row.id, settings: row.settings, createdMilliseconds: row.createdMilliseconds,
            partitions: row.partitions.map { partition in
                EventConsumer.Partition(
                    committed: partition.position,
                    leasedUntilMilliseconds: partition.lease(at: now))
            },
            lag: (behind + row.partitions.count - 1) / max(1, row.partitions.count),
            oldestUnreadMilliseconds: oldest,
            gap: EventGap(after: least, floor: floor).joined(with: row.passedGap))
    }

    private static func floor(of appID: String, _ connection: PostgreSQLConnection) throws -> Int64 {
        try connection.first("SELECT seq FROM event_floor WHERE app_id = ?1", .text(appID)) { $0.int64(0) }
            ?? 0
    }

    private static func count(
        of appID: String, after sequence: Int64, _ connection: PostgreSQLConnection
    ) throws -> Int {
        try connection.first(
            """
            SELECT count(*) FROM (
                SELECT 1 FROM event WHERE app_id = ?1 AND position > ?2 LIMIT \(mostCounted)) AS unread
            """, .text(appID), .integer(sequence)
        ) { $0.int(0) } ?? 0
    }

    package func seek(
        _ id: EventConsumerID, to start: EventStart
    ) throws(ConsumerFailure) -> EventConsumer {
        try place(id, after: try sequence(of: start, in: id.appID))
        noteChange(of: id)
        return try find(id)
    }

    package func place(_ id: EventConsumerID, after sequence: Int64) throws(ConsumerFailure) {
        let isThere = try write { try EventConsumerTable(connection: $0).place(id, after: sequence) }
        if !isThere { throw EventConsumerRules.notFound(id) }
    }

    package func progress(
        _ kind: EventConsumerID.Kind
    ) throws(ConsumerFailure) -> [EventConsumerID: DeliveryProgress] {
        try read { try ConsumerRows($0).progress(kind) }
    }

    package func follow(
        _ id: EventConsumerID, holdDays: Int?, from progress: DeliveryProgress?
    ) throws(ConsumerFailure) {
        try write { connection in
            let now = try clock.now(connection)
            let rows = ConsumerRows(connection)
            if let progress {
                _ = try EventConsumerTable(connection: connection).insert(
                    id, EventConsumerSettings(), at: progress.committed, milliseconds: now)
                try rows.keep(progress, of: id, atMilliseconds: now)
            }
            try rows.setHold(holdDays, of: id)
        }
    }

    package func keep(_ progress: [EventConsumerID: DeliveryProgress]) throws(ConsumerFailure) {
        try write { connection in
            let now = try clock.now(connection)
            let rows = ConsumerRows(connection)
            // In one order, so that two gateways cannot wait for each other's rows.
            for (id, progress) in progress.sorted(by: { $0.key < $1.key }) {
                try rows.keep(progress, of: id, atMilliseconds: now)
            }
        }
    }

    package func delete(_ id: EventConsumerID) throws(ConsumerFailure) {
        let isThere = try write { try ConsumerRows($0).delete(id) }
        noteChange(of: id)
        if !isThere { throw EventConsumerRules.notFound(id) }
    }

    package func sequence(of start: EventStart, in appID: String) throws(ConsumerFailure) -> Int64 {
        try read { connection in
            let head = try EventHorizon.head(connection)
            let floor = try Self.floor(of: appID, connection)
            return switch start {
            case .start: floor
            case .end: head
            case .time(let milliseconds):
                try max(floor, EventTimeSearch.before(milliseconds, of: appID, head: head, connection))
            case .after(let sequence): min(sequence, head)
            }
        }
    }

    // MARK: The database

    func noteChange(of id: EventConsumerID) { arrivals?.note([id.appID]) }

    func read<Value>(_ body: (PostgreSQLConnection) throws -> Value) throws(ConsumerFailure) -> Value {
        try Self.storing { try pool.use(body) }
    }

    func write<Value>(_ body: (PostgreSQLConnection) throws -> Value) throws(ConsumerFailure) -> Value {
        try Self.storing {
            try pool.use { connection in
                try connection.retrying { try connection.transaction { try body(connection) } }
            }
        }
    }

    private static func storing<Value>(_ body: () throws -> Value) throws(ConsumerFailure) -> Value {
        do {
            return try body()
        } catch let failure as ConsumerFailure {
            throw failure
        } catch {
            let store = StoreFailure(error)
            var failure = ConsumerFailure(.storage, "\(store.summary); try again")
            failure.store = store
            throw failure
        }
    }
}
