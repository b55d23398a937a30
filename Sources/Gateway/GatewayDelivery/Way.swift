package import Dispatch
package import GatewayModel
package import GatewayStorage

/// Delivers events to one receiver: a webhook, a stream or a file.
///
/// Reports the result of each batch. A ``Follower`` tracks the position and decides about retries.
package protocol Way: AnyObject, Sendable {
    /// Delivers a batch, then calls `done` once, from any thread. A way that waits for its receiver must not
    /// block the calling thread.
    func accept(_ batch: DeliveryBatch, _ done: @escaping @Sendable (DeliveryAnswer) -> Void)

    /// Closes the way. Later deliveries, and a running one if possible, end with ``DeliveryAnswer/notTried``.
    func close()
}

/// Runs work on another thread.
package typealias WayRun = @Sendable (@escaping @Sendable () -> Void) -> Void

/// Returns a function that runs work on a new serial queue, for work that would block ``DeliveryRunner``'s pool.
package func serialRun(_ label: String, _ qos: DispatchQoS = .unspecified) -> WayRun {
    let queue = DispatchQueue(label: label, qos: qos)
    return { queue.async(execute: $0) }
}

/// The events to deliver at once.
package struct DeliveryBatch: Sendable {
    package enum Kind: Sendable {
        case events
        /// Events that an operator has requested again.
        case replay
        /// A message without events.
        case test
        /// No events. The way compares the receiver's position with ``progress``.
        case probe
    }

    package var kind = Kind.events
    /// The way's settings when the delivery began.
    package let route: DeliveryRoute
    /// In the order of storing.
    package var events: [StoredEvent] = []
    /// All events up to this sequence number are in the batch or do not match the filter.
    package var scannedThrough: Int64 = 0
    /// The deleted events before the batch, if no accepted batch has reported this gap yet.
    package var gap = EventGap.none
    /// Counts from 1.
    package var attempt = 1
    /// The progress before the batch.
    package var progress: DeliveryProgress
    package var positions: EventPositions?
    /// Whether more events may follow the batch now.
    package var hasMore = false
    /// Reads the next events after a sequence number, for a way that delivers more than one batch at once.
    package var follow: @Sendable (_ after: Int64) throws -> EventRange = { EventRange(scannedThrough: $0) }
    /// Stores that a message with this digest is about to be sent, with events up to a sequence number.
    /// Returns its id: that of the previous attempt if the digest is the same, else a new one. For receivers
    /// that recognize a repetition by its id.
    package var identify: @Sendable (_ digest: String, _ through: Int64) throws -> String

    package init(
        _ route: DeliveryRoute, _ progress: DeliveryProgress,
        identify: @escaping @Sendable (_ digest: String, _ through: Int64) throws -> String
    ) {
        self.route = route
        self.progress = progress
        self.identify = identify
    }
}

package enum DeliveryAnswer: Sendable {
    /// The receiver has stored all events up to this sequence number. `receiver` is the receiver's own number
    /// for the last one.
    case delivered(through: Int64, receiver: Int64 = 0)
    /// The receiver's last event has this sequence number, so delivery continues after it.
    case moved(to: Int64, receiver: Int64)
    /// The batch is too large for the receiver. Fewer events are sent, without a back-off. A batch of one event fails.
    case split(afterSeconds: Int?)
    case retry(DeliveryFailure, afterSeconds: Int? = nil)
    /// Nothing is delivered before this time in milliseconds since 1970. This is not a failure.
    case wait(untilMilliseconds: Int64)
    /// No further attempt until an operator resumes.
    case pause(WayPause.Reason, DeliveryFailure)
    /// The delivery has no result, because events could not be read or the way was closed.
    case notTried
}

/// A way as configured by an operator.
package struct DeliveryRoute: Sendable {
    package var id: EventConsumerID
    package var filter = EventFilter()
    /// The maximum number of events in a batch.
    package var batchSize = 1_000
    /// The extra days for which retention keeps undelivered events; nil keeps none.
    package var holdDays: Int?
    package var isPaused = false
    /// Changes with every change by an operator.
    package var revision: Int64 = 1
    /// The sequence number after which the first delivery starts.
    package var start: Int64 = 0
    /// Changes when an operator moves the position to ``start``.
    package var epoch: Int64 = 0
    /// The age of the oldest undelivered event that triggers an alert; nil sends none.
    package var alertSeconds: Int?
    package var requests: [DeliveryRequest] = []
    /// The settings of the way's kind.
    package var settings: any Sendable = ()

    package init(_ id: EventConsumerID) { self.id = id }
}

/// All ways of one kind. The gateway passes the conforming values to ``DeliveryRunner``.
package protocol WayKind: Sendable {
    var kind: EventConsumerID.Kind { get }
    var retry: Retry { get }
    /// Seconds for which new events are collected before they are delivered.
    var gatherSeconds: Double { get }
    /// Milliseconds after which an idle receiver is probed; nil does not probe.
    var probeMilliseconds: Int64? { get }
    /// Whether this gateway delivers. In a cluster, only one gateway does.
    var hasDuty: @Sendable () -> Bool { get }
    /// The routes as configured now.
    func routes() throws -> [DeliveryRoute]
    func open(_ id: EventConsumerID) -> any Way
    /// Progress stored by an earlier version, by the id of the way.
    func earlierProgress() throws -> [EventConsumerID: DeliveryProgress]
    /// Stores an automatic pause, and sends an alert.
    func pause(
        _ id: EventConsumerID, _ reason: WayPause.Reason, _ progress: DeliveryProgress,
        atMilliseconds now: Int64) throws
    /// Sends an alert about a way that is late.
    func sendLagAlert(
        _ consumer: EventConsumer, _ progress: DeliveryProgress, atMilliseconds now: Int64) throws
    /// Stores the state of a request, or removes it if it is complete.
    func keep(_ request: DeliveryRequest, isOver: Bool) throws
    /// Deletes the data of ways that are not in `names`.
    func sweep(keeping names: [String], atMilliseconds now: Int64) throws
}

extension WayKind {
    package var gatherSeconds: Double { 0.1 }
    package var probeMilliseconds: Int64? { nil }
    package var hasDuty: @Sendable () -> Bool { { true } }
    package func earlierProgress() throws -> [EventConsumerID: DeliveryProgress] { [:] }
    package func pause(
        _ id: EventConsumerID, _ reason: WayPause.Reason, _ progress: DeliveryProgress,
        atMilliseconds now: Int64
    ) throws {}
    package func sendLagAlert(
        _ consumer: EventConsumer, _ progress: DeliveryProgress, atMilliseconds now: Int64
    ) throws {}
    package func keep(_ request: DeliveryRequest, isOver: Bool) throws {}
    package func sweep(keeping names: [String], atMilliseconds now: Int64) throws {}
}
