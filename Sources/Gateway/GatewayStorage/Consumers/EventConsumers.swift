package import GatewayModel

/// Consumers of an app's events: named positions that advance when a client acknowledges events.
///
/// A consumer receives every event that matches its filter at least once, in the order of storing for each
/// user. To read events, a worker leases a partition. The worker holds the partition exclusively until the lease
/// is acknowledged, released or expires. Positions are stored in the event database, so positions and events
/// stay consistent in a backup and after a power failure. SQLite storage holds leases in memory, so events leased
/// before a restart are leased again.
///
/// An expired lease can be acknowledged until its partition is leased again, because the position has not moved. So the
/// events need not be processed again. After the next lease, the acknowledgement is rejected, so that two workers
/// cannot move the same position.
///
/// Webhooks, streams and event files (ways) are consumers of separate kinds with separate names.
///
/// All methods may block on the disk, and may throw ``ConsumerFailure``.
package protocol EventConsumers: Sendable {
    /// Creates a consumer. Throws `exists`, `invalid`, `tooMany`.
    func create(
        _ id: EventConsumerID, _ settings: EventConsumerSettings, from start: EventStart
    ) throws(ConsumerFailure) -> EventConsumer

    /// The consumers of this kind, ordered by app and name. Without an app id, the consumers of all apps.
    func all(_ kind: EventConsumerID.Kind, of appID: String?) throws(ConsumerFailure) -> [EventConsumer]

    /// Throws `notFound`.
    func find(_ id: EventConsumerID) throws(ConsumerFailure) -> EventConsumer

    /// Ends all leases and moves the position. Throws `notFound`.
    func seek(_ id: EventConsumerID, to start: EventStart) throws(ConsumerFailure) -> EventConsumer

    /// The progress of all ways of this kind.
    func progress(
        _ kind: EventConsumerID.Kind
    ) throws(ConsumerFailure) -> [EventConsumerID: DeliveryProgress]

    /// Sets the hold of a webhook, stream or folder of files, and stores `progress` in its row, which is created if
    /// necessary. A nil `progress` leaves the stored progress as it is.
    func follow(
        _ id: EventConsumerID, holdDays: Int?, from progress: DeliveryProgress?
    ) throws(ConsumerFailure)

    /// Stores progress. Ignores ways that were deleted.
    func keep(_ progress: [EventConsumerID: DeliveryProgress]) throws(ConsumerFailure)

    /// The sequence number of the last event before a start position.
    func sequence(of start: EventStart, in appID: String) throws(ConsumerFailure) -> Int64

    /// Throws `notFound`.
    func delete(_ id: EventConsumerID) throws(ConsumerFailure)

    /// Leases the next events of a free partition: at most `limit` (1 to 1,000), or until the events reach 1 MiB.
    /// Throws `notFound`.
    func lease(_ id: EventConsumerID, limit: Int, seconds: Int) throws(ConsumerFailure) -> LeaseOutcome

    /// Acknowledges a lease. With `sequence`, acknowledges events through this sequence number, and later events
    /// stay leased. Idempotent. Returns the new position. Throws `leaseExpired`, `notInLease`, `notFound`.
    @discardableResult
    func acknowledge(_ lease: String, of id: EventConsumerID, through sequence: Int64?)
        throws(ConsumerFailure)
        -> Int64

    /// Ends a lease without acknowledging it, so that its events can be leased again. Throws `leaseExpired`.
    func release(_ lease: String, of id: EventConsumerID) throws(ConsumerFailure)
}

package struct EventConsumer: Sendable {
    package let id: EventConsumerID
    package var settings: EventConsumerSettings
    package var createdMilliseconds: Int64
    package var partitions: [Partition]
    /// The number of the app's events after the position, regardless of the filter; the mean of several partitions.
    /// PostgreSQL counts at most 100,000. SQLite may count events of deleted customers until retention reaches them.
    package var lag: Int
    /// When the oldest event after the position was received, in milliseconds since 1970; nil without such an event.
    package var oldestUnreadMilliseconds: Int64?
    package var gap: EventGap

    package struct Partition: Sendable, Equatable {
        /// The partition's position: the sequence number through which events were acknowledged or skipped.
        package var committed: Int64
        /// The deadline of the current lease, in milliseconds since 1970; nil when the partition is free.
        package var leasedUntilMilliseconds: Int64?
    }
}

package struct EventLease: Sendable {
    /// The lease id: 16 characters of base64url.
    package let id: String
    package let partition: Int
    /// Milliseconds since 1970.
    package let deadlineMilliseconds: Int64
    /// At least one event, in ascending order.
    package let events: [StoredEvent]
    /// The position after a full acknowledgement.
    package let scannedThrough: Int64
    package let gap: EventGap
}

package enum LeaseOutcome: Sendable {
    case leased(EventLease)
    /// No events to lease. `hasMore` is true if the examined events did not match the filter and more events
    /// follow. `untilExpiry` is the time until the next lease expires, in milliseconds; nil without leases.
    case nothing(hasMore: Bool, untilExpiry: Int64?)
}
