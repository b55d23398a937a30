package import GatewayModel

/// Consumers of an app's events: named positions that only move on when somebody has confirmed what was read.
///
/// A consumer reads every event that its filter lets through at least once, in the order of storing for each user. To read
/// is to lease: whoever leases a part of the events (a partition) has it alone until the lease is acknowledged, released
/// or expires. Positions are committed with the events, so that a backup or a power failure leaves both as of one moment.
/// Leases are kept in memory: after a restart what was leased is leased again.
///
/// A lease that has expired may still be acknowledged while nobody has leased its partition since: the position has not
/// moved, so refusing would only make somebody do the same work again. Afterwards it is refused, or two workers would
/// move one position.
///
/// Webhook endpoints and sinks are consumers of their own kinds, which nobody sees or changes by naming one of another kind.
///
/// Everything waits for the disk where it must, so call it from a thread that may wait. All may throw ``ConsumerFailure``.
package protocol EventConsumers: Sendable {
    /// Makes a consumer that begins at a place. Throws `exists`, `invalid`, `tooMany`.
    func create(
        _ id: EventConsumerID, _ settings: EventConsumerSettings, from start: EventStart
    ) throws(ConsumerFailure) -> EventConsumer

    /// The consumers of an app and a kind, by name; of all apps when it is nil.
    func all(_ kind: EventConsumerID.Kind, of appID: String?) throws(ConsumerFailure) -> [EventConsumer]

    /// Throws `notFound`.
    func find(_ id: EventConsumerID) throws(ConsumerFailure) -> EventConsumer

    /// Changes which events it gets from now on. Throws `notFound`, `invalid`.
    func setFilter(_ filter: EventFilter, of id: EventConsumerID) throws(ConsumerFailure)

    /// Ends all leases and goes on from another place. Throws `notFound`.
    func seek(_ id: EventConsumerID, to start: EventStart) throws(ConsumerFailure) -> EventConsumer

    /// Sets the position of a consumer that does not lease, because somebody else says how far it is: a sink's stream. It may
    /// be set back too. Throws `notFound`.
    func place(_ id: EventConsumerID, after sequence: Int64) throws(ConsumerFailure)

    /// The number of the event that a place is after.
    func sequence(of start: EventStart, in appID: String) throws(ConsumerFailure) -> Int64

    /// Throws `notFound`.
    func delete(_ id: EventConsumerID) throws(ConsumerFailure)

    /// Leases the next events of a partition that nobody else has. `limit` is 1 to 1,000; a batch of 1 MiB is full too.
    /// Throws `notFound`.
    func lease(_ id: EventConsumerID, limit: Int, seconds: Int) throws(ConsumerFailure) -> LeaseOutcome

    /// Commits that what was leased is done: all of it, or up to an event of it, after which the rest stays leased.
    /// Done again, it answers the same. Returns the number of the event that the position is after now. Throws
    /// `leaseExpired`, `notInLease`, `notFound`.
    @discardableResult
    func acknowledge(_ lease: String, of id: EventConsumerID, through sequence: Int64?)
        throws(ConsumerFailure)
        -> Int64

    /// Gives a lease back, so that somebody else may have its events at once. Throws `leaseExpired`.
    func release(_ lease: String, of id: EventConsumerID) throws(ConsumerFailure)
}

/// A consumer as it is now.
package struct EventConsumer: Sendable {
    package let id: EventConsumerID
    package var settings: EventConsumerSettings
    package var createdMilliseconds: Int64
    /// One for each partition.
    package var partitions: [Partition]
    /// Events of the app after its positions, whatever the filter. With several partitions it is their mean, and events of
    /// a person who was deleted count until retention has passed them.
    package var lag: Int
    /// Milliseconds since 1970 when the oldest of them was received; nil when there is none.
    package var oldestUnreadMilliseconds: Int64?
    /// True while events after its position were deleted unread, as they were kept no longer.
    package var hasMissed: Bool

    package struct Partition: Sendable, Equatable {
        /// The number of the event that it has confirmed last; 0 before the first.
        package var committed: Int64
        /// Until when somebody has it leased, in milliseconds since 1970; nil when it is free.
        package var leasedUntilMilliseconds: Int64?

        package init(committed: Int64, leasedUntilMilliseconds: Int64?) {
            self.committed = committed
            self.leasedUntilMilliseconds = leasedUntilMilliseconds
        }
    }

    package init(
        id: EventConsumerID, settings: EventConsumerSettings, createdMilliseconds: Int64,
        partitions: [Partition], lag: Int, oldestUnreadMilliseconds: Int64?, hasMissed: Bool
    ) {
        self.id = id
        self.settings = settings
        self.createdMilliseconds = createdMilliseconds
        self.partitions = partitions
        self.lag = lag
        self.oldestUnreadMilliseconds = oldestUnreadMilliseconds
        self.hasMissed = hasMissed
    }
}

/// Events that one worker has alone.
package struct EventLease: Sendable {
    /// Says which lease; 16 characters of base64url.
    package let id: String
    package let partition: Int
    /// Milliseconds since 1970.
    package let deadlineMilliseconds: Int64
    /// At least one, in their order.
    package let events: [StoredEvent]
    /// The number of the event that the position is after once all is acknowledged.
    package let reached: Int64
    /// True when events after the position were deleted unread.
    package let hasMissed: Bool

    package init(
        id: String, partition: Int, deadlineMilliseconds: Int64, events: [StoredEvent], reached: Int64,
        hasMissed: Bool
    ) {
        self.id = id
        self.partition = partition
        self.deadlineMilliseconds = deadlineMilliseconds
        self.events = events
        self.reached = reached
        self.hasMissed = hasMissed
    }
}

package enum LeaseOutcome: Sendable {
    case leased(EventLease)
    /// There is nothing to lease now. True when it would be worth asking again at once, because the filter left out all
    /// that was looked at and there was more. The next lease expires in so many milliseconds; nil when there is none.
    case nothing(hasMore: Bool, untilExpiry: Int64?)
}
