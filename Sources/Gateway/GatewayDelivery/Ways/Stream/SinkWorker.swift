internal import CountersignCore
internal import Foundation
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

/// Publishes to one stream while this gateway holds its lease. Reconnects after failures.
///
/// All work happens in ``turn()``, which is called by one thread at a time: the thread of ``start()``, or
/// a test.
final class SinkWorker: @unchecked Sendable {
    // `state` is shared. The other properties are used only in `turn()`.
    private struct State {
        var sink: EventSink
        var published = 0
        var isFailing = false
    }

    private struct Connected {
        let sink: EventSink
        let connection: any StreamConnection
        let relay: SinkRelay
    }

    /// The interval at which the lease is renewed and progress is stored.
    private static let keepPauseMilliseconds: Int64 = 1_000

    private static let retry = RetryPolicy(baseDelay: 0.5, maximumDelay: 30)

    private let dependencies: SinkDependencies
    private let state: Lock<State>
    private let bell = SinkBell()
    private let ended = CountingSemaphore(value: 0)

    private var connected: Connected?
    private var kept = SinkState()
    private var hasLease = false
    private var placed: Int64?
    private var nextKeep: Int64 = .min
    private var nextTry: Int64 = .min
    private var failures = 0
    private var countedByRelay = 0
    private var waiter: EventArrivals.Waiter?

    init(_ sink: EventSink, _ dependencies: SinkDependencies) {
        self.dependencies = dependencies
        state = Lock(State(sink: sink))
    }

    var sink: EventSink { state.withLock { $0.sink } }
    /// The number of messages stored by the stream.
    var published: Int { state.withLock { $0.published } }
    var isFailing: Bool { state.withLock { $0.isFailing } }

    /// Applies changes by an operator.
    func take(over sink: EventSink) {
        let isNew = state.withLock { state in
            defer { state.sink = sink }
            return state.sink != sink
        }
        if isNew { bell.ring() }
    }

    // MARK: The thread

    func start() {
        let thread = Thread { [self] in
            while !bell.isOver {
                let milliseconds = turn()
                if milliseconds > 0 { bell.wait(milliseconds: milliseconds) }
            }
            leave()
            ended.signal()
        }
        thread.name = "sink"
        thread.start()
    }

    /// Ends the thread after its current turn.
    func end() { bell.end() }

    /// Waits for the thread to end, at most until `deadline`. After the next start, the progress is read from
    /// the stream.
    func wait(until deadline: DispatchTime) { _ = ended.wait(until: deadline) }

    // MARK: Work

    /// Does the available work. Returns the milliseconds until the next turn, unless woken before.
    func turn() -> Int64 {
        let sink = sink
        if let waiter { dependencies.arrivals.cancel(waiter) }
        waiter = nil
        let ticket = dependencies.arrivals.ticket
        do {
            guard sink.pause == nil else {
                state.withLock { $0.isFailing = false }
                try rest()
                return Self.keepPauseMilliseconds
            }
            // Disconnects before the lease is renewed, because old progress does not apply to a moved stream.
            let isMoved = connected.map { $0.sink.epoch != sink.epoch } ?? false
            if let connected, connected.sink != sink { disconnect() }
            guard try renew(sink) else { return Self.keepPauseMilliseconds }
            // The old position may have been stored again before the move was known here.
            if isMoved { try place(sink.startSequence, sink) }
            if connected == nil {
                let now = dependencies.clock()
                guard now >= nextTry else { return min(nextTry - now, Self.keepPauseMilliseconds) }
                try connect(sink)
            }
            guard let connected else { return Self.keepPauseMilliseconds }
            let isIdle = try connected.relay.step()
            noteProgress(connected.relay)
            guard isIdle else { return 0 }
            failures = 0
            try keep(connected.relay.state, of: sink)
            connected.relay.wake()
            waiter = dependencies.arrivals.wait(for: sink.appID, since: ticket) { [bell] in bell.ring() }
            return Self.keepPauseMilliseconds
        } catch {
            fail(error, sink)
            // Includes a failed lease, which is requested before `nextTry` is checked.
            return max(1, min(nextTry - dependencies.clock(), Self.keepPauseMilliseconds))
        }
    }

    /// Closes the connection and releases the lease.
    func leave() {
        do {
            try rest()
        } catch {
            dependencies.log.note(
                .error, "sink's progress not kept", [("sink", sink.key), ("detail", "\(error)")])
        }
    }

    private func rest() throws {
        guard hasLease else { return }
        hasLease = false
        let sink = sink
        if let connected {
            disconnect()
            if connected.sink.epoch == sink.epoch { try keep(connected.relay.state, of: sink) }
        }
        try dependencies.store.release(sink.key, by: dependencies.holder)
    }

    private func disconnect() {
        connected?.connection.close()
        connected = nil
        // The stream may be moved before the next connection.
        placed = nil
        countedByRelay = 0
    }

    /// Acquires or renews the lease, once a second. Returns false while another relay holds it.
    private func renew(_ sink: EventSink) throws -> Bool {
        let now = dependencies.clock()
        if hasLease, now < nextKeep { return true }
        let had = hasLease
        hasLease = try dependencies.store.lease(
            sink.key, by: dependencies.holder, at: dependencies.milliseconds)
        guard hasLease else {
            if had { disconnect() }
            return false
        }
        nextKeep = now + Self.keepPauseMilliseconds
        if had {
            if let connected { try keep(connected.relay.state, of: sink) }
        } else {
            kept = try dependencies.store.states()[sink.key] ?? SinkState()
        }
        return true
    }

    private func connect(_ sink: EventSink) throws(SinkError) {
        let connection = try dependencies.connect(sink)
        do throws(SinkError) {
            let clock = dependencies.clock
            let relay = try SinkRelay(
                sink, dependencies.events, state: kept, over: connection, clock: { clock() })
            connected = Connected(sink: sink, connection: connection, relay: relay)
        } catch {
            connection.close()
            throw error
        }
    }

    private func noteProgress(_ relay: SinkRelay) {
        guard relay.published > countedByRelay else { return }
        let more = relay.published - countedByRelay
        countedByRelay = relay.published
        failures = 0
        state.withLock { state in
            state.published += more
            state.isFailing = false
        }
    }

    /// Stores the progress for operators and retention. After a crash, it is read from the stream.
    private func keep(_ state: SinkState, of sink: EventSink) throws {
        var state = state
        if failures > 0 {
            state.error = kept.error
            state.failingSinceMilliseconds = kept.failingSinceMilliseconds
        } else {
            (state.error, state.failingSinceMilliseconds) = (nil, nil)
            self.state.withLock { $0.isFailing = false }
        }
        if let mark = state.markSequence, mark != placed {
            try place(mark, sink)
            placed = mark
        }
        guard state.changes(kept) else { return }
        state.markMilliseconds = dependencies.milliseconds
        try dependencies.store.keep(state, of: sink.key, by: dependencies.holder)
        if kept.error != nil, state.error == nil {
            dependencies.log.note(
                .info, "sink published to again", [("app", sink.appID), ("sink", sink.name)])
        }
        kept = state
    }

    private func place(_ mark: Int64, _ sink: EventSink) throws {
        do throws(ConsumerFailure) {
            try dependencies.consumers.place(sink.consumer, after: mark)
        } catch {
            // The consumer is created when the gateway first loads the stream.
            guard error.code == .notFound else { throw error }
        }
    }

    private func fail(_ error: any Error, _ sink: EventSink) {
        if kept.epoch != sink.epoch { kept = SinkState(epoch: sink.epoch) }
        if let relay = connected?.relay {
            kept.epoch = relay.state.epoch
            kept.markSequence = relay.state.markSequence
            kept.streamSequence = relay.state.streamSequence
        }
        disconnect()
        failures += 1
        let now = dependencies.clock()
        let fraction = 0.5 + dependencies.random() / 2
        nextTry =
            now + Milliseconds(seconds: Self.retry.delay(afterFailure: failures, fraction: fraction)).count
        let reason = error as? SinkError ?? SinkError(.storage, "\(error)")
        let isNew = kept.error?.code != reason.code || failures == 1
        kept.error = reason
        kept.failingSinceMilliseconds = kept.failingSinceMilliseconds ?? dependencies.milliseconds
        state.withLock { $0.isFailing = true }
        if isNew {
            dependencies.log.note(
                .warning, "sink not published to",
                [
                    ("app", sink.appID), ("sink", sink.name), ("error", reason.code.rawValue),
                    ("detail", reason.reason),
                ])
        }
        try? dependencies.store.keep(kept, of: sink.key, by: dependencies.holder)
    }
}

extension SinkState {
    /// Whether anything except the time differs.
    fileprivate func changes(_ other: SinkState) -> Bool {
        var other = other
        other.markMilliseconds = markMilliseconds
        return self != other
    }
}
