internal import CountersignCore

/// Events leased to this worker. Until they are acknowledged or released, or the lease expires, no other worker
/// receives them.
///
/// A batch deallocated without acknowledgement is released, so after a `break`, an error or a cancellation another
/// worker receives the events at once.
public struct EventBatch: Sendable {
    /// The events in storage order: at least one, unless `eventsMissed`.
    public let events: [ConsumedEvent]
    /// The consumer's partition, from 0. All events of a user are in the same partition.
    public let partition: Int
    /// The consumer's position after acknowledgement. Store one for each partition, in the transaction of your work.
    public let position: String
    /// Whether retention has deleted unread events before this batch.
    public let eventsMissed: Bool
    private let lease: EventLease

    init(_ document: EventDocument, _ answer: EventDocument.Lease, _ lease: EventLease) {
        events = document.events
        partition = answer.partition
        position = answer.position
        eventsMissed = document.members.events_missed ?? false
        self.lease = lease
    }

    /// Acknowledges the batch. Call it after your own transaction is committed, never before: acknowledged events are
    /// not read again.
    ///
    /// Retries until the gateway responds. After cancellation of the task it tries once.
    ///
    /// - Returns: False if the lease had expired. Another worker then reads the events again, and can skip them if
    ///   the position is stored with the work.
    /// - Throws: A permanent error, or `cancelled` if it is unknown whether the gateway has received the request.
    @discardableResult
    public func acknowledge() async throws(ConsumerError) -> Bool {
        try await lease.acknowledge(through: nil)
    }

    /// Acknowledges the events up to and including an event. The other events stay leased.
    ///
    /// - Parameter event: An event of this batch.
    /// - Returns: As `acknowledge()`.
    /// - Throws: As `acknowledge()`; `position_not_in_lease` for an event of another batch.
    @discardableResult
    public func acknowledge(through event: ConsumedEvent) async throws(ConsumerError) -> Bool {
        guard let position = event.position else {
            throw ConsumerError(.init(rawValue: "position_not_in_lease"), "the event is not in this batch")
        }
        return try await lease.acknowledge(through: position)
    }

    /// Releases the events that are not acknowledged. If the gateway cannot be reached, the lease expires later.
    public func release() async {
        await lease.release()
    }
}

final class EventLease: Sendable {
    private struct State {
        var isAcknowledged = false
        /// Whether the lease has ended or its release was requested, so that `deinit` releases nothing.
        var isOver = false
    }

    private let id: String
    private let consumer: String
    private let connection: GatewayConnection
    private let returns: LeaseReturns
    private let state = Lock(State())

    init(_ id: String, of consumer: String, _ connection: GatewayConnection, _ returns: LeaseReturns) {
        self.id = id
        self.consumer = consumer
        self.connection = connection
        self.returns = returns
    }

    deinit {
        let (state, connection, request) = (state.withLock { $0 }, connection, releaseRequest)
        if state.isOver { return }
        returns.add(isUntouched: !state.isAcknowledged, Task { _ = await connection.outcome(of: request) })
    }

    private var releaseRequest: GatewayRequest { .release(consumer, lease: id) }

    func acknowledge(through position: String?) async throws(ConsumerError) -> Bool {
        do throws(ConsumerError) {
            // The work is done, so acknowledge it even if the task is cancelled.
            _ = try await connection.answer(
                to: .acknowledge(consumer, lease: id, through: position), ignoresCancellation: true)
        } catch {
            guard error.code.rawValue == "lease_expired" else { throw error }
            state.withLock { $0.isOver = true }
            return false
        }
        state.withLock { $0 = State(isAcknowledged: true, isOver: position == nil) }
        return true
    }

    func release() async {
        state.withLock { $0.isOver = true }
        _ = await connection.outcome(of: releaseRequest, ignoresCancellation: true)
    }
}

/// Dropped leases that are being released on the gateway.
final class LeaseReturns: Sendable {
    private struct State {
        var tasks: [Task<Void, Never>] = []
        var untouched = 0
    }

    private let state = Lock(State())

    func add(isUntouched: Bool, _ task: Task<Void, Never>) {
        state.withLock { state in
            state.tasks.append(task)
            if isUntouched { state.untouched += 1 }
        }
    }

    /// Waits until the releases are sent. Returns the number of leases dropped unacknowledged since the last call.
    func finish() async -> Int {
        let found = state.withLock { state in
            defer { state = State() }
            return state
        }
        for task in found.tasks { await task.value }
        return found.untouched
    }
}
