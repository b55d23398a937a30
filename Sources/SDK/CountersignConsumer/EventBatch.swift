internal import CountersignCore

/// Events that are leased to this worker: until they are acknowledged or given back, or the lease expires, nobody else gets
/// them.
///
/// A batch that the app lets go of without acknowledging it is given back: after a `break`, an error or a cancellation another
/// worker gets the events at once.
public struct EventBatch: Sendable {
    /// The events in the order of storing: at least one, unless `eventsMissed`.
    public let events: [ConsumedEvent]
    /// Which part of the consumer this is, from 0. All events of a user are in the same one.
    public let partition: Int
    /// The position that the consumer has once this is acknowledged. Store it with the work, one for each partition.
    public let position: String
    /// True if retention has deleted events before these which nobody has read.
    public let eventsMissed: Bool
    private let lease: EventLease

    init(_ document: EventDocument, _ answer: EventDocument.Lease, _ lease: EventLease) {
        events = document.events
        partition = answer.partition
        position = answer.position
        eventsMissed = document.members.events_missed ?? false
        self.lease = lease
    }

    /// Tells the gateway that the work is done. Call it after your own transaction is committed, never before: what is
    /// acknowledged is not read again.
    ///
    /// It is tried until the gateway answers, once if the task has been cancelled.
    ///
    /// - Returns: False if the lease had expired: another worker reads the events again, and passes over them where the
    ///   position is stored with the work.
    /// - Throws: What another try would not change; `cancelled` if it is unknown whether the gateway has been told.
    @discardableResult
    public func acknowledge() async throws(ConsumerError) -> Bool {
        try await lease.acknowledge(through: nil)
    }

    /// Tells the gateway that the work is done up to an event, this one included; the rest is still leased.
    ///
    /// - Parameter event: An event of this batch.
    /// - Returns: As `acknowledge()`.
    /// - Throws: As `acknowledge()`; `position_not_in_lease` for an event of another batch.
    @discardableResult
    public func acknowledge(through event: ConsumedEvent) async throws(ConsumerError) -> Bool {
        guard let position = event.position else {
            throw ConsumerError(.init(rawValue: "position_not_in_lease"), "give an event of this batch")
        }
        return try await lease.acknowledge(through: position)
    }

    /// Gives the events that are not acknowledged back at once. Nothing is lost if the gateway cannot be reached: the lease
    /// expires.
    public func release() async {
        await lease.release()
    }
}

/// The gateway's promise that nobody else gets some events.
final class EventLease: Sendable {
    private enum State {
        case untouched
        /// Something was acknowledged.
        case begun
        case settled
    }

    private let request: @Sendable (_ position: String?) -> GatewayRequest
    private let giveBack: GatewayRequest
    private let connection: GatewayConnection
    private let returns: LeaseReturns
    private let state = Lock(State.untouched)

    init(_ id: String, of consumer: String, _ connection: GatewayConnection, _ returns: LeaseReturns) {
        request = { .acknowledge(consumer, lease: id, through: $0) }
        giveBack = .release(consumer, lease: id)
        self.connection = connection
        self.returns = returns
    }

    deinit {
        let (last, connection, giveBack) = (state.withLock { $0 }, connection, giveBack)
        if case .settled = last { return }
        var isUntouched = false
        if case .untouched = last { isUntouched = true }
        returns.add(isUntouched: isUntouched, Task { _ = await connection.outcome(of: giveBack) })
    }

    func acknowledge(through position: String?) async throws(ConsumerError) -> Bool {
        let request = request(position)
        var failures = 0
        while true {
            // The work is done: whoever is told to stop still says so.
            let outcome = await Task { [connection] in await connection.outcome(of: request) }.value
            switch outcome {
            case .answer:
                state.withLock { $0 = position == nil ? .settled : .begun }
                return true
            case .failure(let error) where error.code.rawValue == "lease_expired":
                state.withLock { $0 = .settled }
                return false
            case .failure(let error): throw error
            case .passing(let seconds):
                failures += 1
                try await connection.pause(afterFailure: failures, atLeast: seconds)
            }
        }
    }

    func release() async {
        state.withLock { $0 = .settled }
        _ = await Task { [connection, giveBack] in await connection.outcome(of: giveBack) }.value
    }
}

/// The leases that were let go of, and that the gateway is being told about.
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

    /// Waits until the gateway has been told. Returns how many leases nothing was acknowledged of since the last call.
    func settle() async -> Int {
        let settled = state.withLock { state in
            defer { state = State() }
            return state
        }
        for task in settled.tasks { await task.value }
        return settled.untouched
    }
}
