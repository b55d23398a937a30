import CountersignCore
import GatewayModel
import GatewayStorage

/// Consumers in a database of any engine, which read the events of a log in memory.
struct ListedEngine<Base: ConsumerEngine>: ConsumerEngine {
    typealias Connection = Base.Connection

    static var generation: String { Base.generation }

    let base: Base
    let log: ListedLog

    func read<Value>(_ body: (Connection) throws -> Value) throws(ConsumerFailure) -> Value {
        try base.read(body)
    }

    func write<Value: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Value
    ) throws(ConsumerFailure) -> Value { try base.write(body) }

    func now(_ connection: Connection) throws -> Int64 { try base.now(connection) }

    func head(_ connection: Connection) -> Int64 { log.state.withLock { Int64($0.events.count) } }

    func sequence(
        before milliseconds: Int64, of appID: String, after floor: Int64, _ connection: Connection
    ) throws -> Int64 { floor }

    func unread(
        of appID: String, after sequence: Int64, _ connection: Connection
    ) -> (count: Int, oldestMilliseconds: Int64?) {
        let unread = log.state.withLock { $0.events.dropFirst(Int(sequence)) }
        return (unread.count, unread.first?.receivedMilliseconds)
    }

    func follow(
        _ query: EventQuery, after sequence: Int64, limit: Int, _ connection: Connection
    ) throws -> EventRange { try log.follow(query, after: sequence, limit: limit) }

    func lockList(of appID: String, _ connection: Connection) throws {
        try base.lockList(of: appID, connection)
    }

    func deadlines(of row: ConsumerRows.Row, _ connection: Connection) throws -> [Int64?] {
        try base.deadlines(of: row, connection)
    }

    func lease(
        _ partition: Int, of row: ConsumerRows.Row,
        _ read: @escaping @Sendable (Connection) throws -> LeaseAttempt
    ) throws(ConsumerFailure) -> LeaseAttempt? { try base.lease(partition, of: row, read) }

    func acknowledge(
        _ lease: String, of id: EventConsumerID, through sequence: Int64?
    ) throws(ConsumerFailure) -> Int64 { try base.acknowledge(lease, of: id, through: sequence) }

    func release(_ lease: String, of id: EventConsumerID) throws(ConsumerFailure) {
        try base.release(lease, of: id)
    }

    func endLeases(of id: EventConsumerID, _ connection: Connection) throws {
        try base.endLeases(of: id, connection)
    }

    func leasesEnded(of id: EventConsumerID) { base.leasesEnded(of: id) }
}

protocol ConsumersOfAnyEngine {
    /// The same consumers, which read the events of `log`.
    func reading(_ log: ListedLog) -> any EventConsumers
}

extension StoredConsumers: ConsumersOfAnyEngine {
    func reading(_ log: ListedLog) -> any EventConsumers {
        StoredConsumers<ListedEngine<Engine>>(ListedEngine(base: engine, log: log))
    }
}
