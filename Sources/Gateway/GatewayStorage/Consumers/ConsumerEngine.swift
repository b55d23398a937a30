internal import CountersignCore
package import GatewayModel

/// The parts of consumers that differ between storage engines: the log, the clock and the leases.
/// ``StoredConsumers`` has the parts that all engines share.
package protocol ConsumerEngine: Sendable {
    associatedtype Connection: SQLConnection

    /// The SQL column of ``ConsumerRows/Row/generation``, or `0` for an engine without generations.
    static var generation: String { get }

    func read<Value>(_ body: (Connection) throws -> Value) throws(ConsumerFailure) -> Value

    /// Runs `body` in a transaction, which may be repeated.
    func write<Value: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Value
    ) throws(ConsumerFailure) -> Value

    /// Milliseconds since 1970.
    func now(_ connection: Connection) throws -> Int64

    // MARK: The log

    /// The sequence number of the newest readable event.
    func head(_ connection: Connection) throws -> Int64

    /// The sequence number before the first event received at or after a time. The search may skip events through
    /// `floor`. The number is lower if the search ends after its limit of events.
    func sequence(
        before milliseconds: Int64, of appID: String, after floor: Int64, _ connection: Connection
    ) throws -> Int64

    /// The number of an app's events after a sequence number, and the time of receipt of the first.
    func unread(
        of appID: String, after sequence: Int64, _ connection: Connection
    ) throws -> (count: Int, oldestMilliseconds: Int64?)

    func follow(
        _ query: EventQuery, after sequence: Int64, limit: Int, _ connection: Connection
    ) throws -> EventRange

    // MARK: Leases

    /// Prevents another transaction from creating consumers of the app at the same time.
    func lockList(of appID: String, _ connection: Connection) throws

    /// The deadline of each partition's lease; nil for a partition without one.
    func deadlines(of row: ConsumerRows.Row, _ connection: Connection) throws -> [Int64?]

    /// Reserves a partition, reads its next events with `read`, and stores the lease. If no event matches, stores the
    /// new position. Returns nil if another worker has the partition, or if a seek moved the consumer meanwhile.
    func lease(
        _ partition: Int, of row: ConsumerRows.Row,
        _ read: @escaping @Sendable (Connection) throws -> LeaseAttempt
    ) throws(ConsumerFailure) -> LeaseAttempt?

    /// See ``EventConsumers/acknowledge(_:of:through:)``.
    func acknowledge(
        _ lease: String, of id: EventConsumerID, through sequence: Int64?
    ) throws(ConsumerFailure) -> Int64

    /// See ``EventConsumers/release(_:of:)``.
    func release(_ lease: String, of id: EventConsumerID) throws(ConsumerFailure)

    /// Ends a consumer's leases, in the transaction of a seek.
    func endLeases(of id: EventConsumerID, _ connection: Connection) throws

    /// Called after a seek or a deletion of the consumer was committed.
    func leasesEnded(of id: EventConsumerID)
}

/// The next events of a partition.
package struct LeaseAttempt: Sendable {
    /// The position of the partition before these events.
    package let from: Int64
    /// The generation of the consumer when the events were read.
    package let generation: Int64
    package let range: EventRange
    /// Nil if none of the examined events match.
    package var lease: EventLease?

    /// The lease in the form that the engine stores; nil without a lease.
    package var held: HeldLease? {
        guard let lease, let last = lease.events.last?.sequence else { return nil }
        return HeldLease(
            id: lease.id, partition: lease.partition, from: from, last: last,
            scannedThrough: lease.scannedThrough)
    }
}

/// A lease as the engine stores it.
package struct HeldLease: Sendable, Equatable {
    package let id: String
    package let partition: Int
    /// The position when the lease began. A partial acknowledgement advances it.
    package var from: Int64
    /// The sequence numbers of the last leased event and of the last examined event.
    package let last: Int64
    package let scannedThrough: Int64

    package init(id: String, partition: Int, from: Int64, last: Int64, scannedThrough: Int64) {
        self.id = id
        self.partition = partition
        self.from = from
        self.last = last
        self.scannedThrough = scannedThrough
    }

    /// The position after events through `sequence` are acknowledged; nil acknowledges all. Throws `notInLease`.
    package func position(through sequence: Int64?) throws(ConsumerFailure) -> Int64 {
        guard let sequence else { return scannedThrough }
        guard from...scannedThrough ~= sequence else { throw EventConsumerRules.notInLease }
        return sequence >= last ? scannedThrough : sequence
    }
}
