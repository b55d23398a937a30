internal import CountersignCore
package import GatewayModel
package import GatewayStorage

/// Publishes an app's events to one stream over one connection: each once, in the order of storing.
///
/// How far it has come stands in the stream. The header of each message has the event's position, and each is taken only
/// right after the one before it (`Nats-Expected-Last-Sequence`). So at the start, after an answer that is not the expected
/// one and after none in time, the relay reads the stream's last message and goes on after that. Whoever else may publish
/// the same meanwhile, and whatever the stream has lost, each event comes once.
///
/// It has no thread and no clock of its own: ``step()`` does what can be done, and waits at most for answers.
package final class SinkRelay {
    /// The most events that are read at once.
    private static let pageSize = 1_024
    /// One of so many messages asks for an answer, for an answer costs more than a message.
    private static let answerEvery = 128
    /// How long it waits for an answer before it lets others look.
    private static let longestWaitMilliseconds: Int64 = 500
    /// A relay that has nothing to do reads the stream so often: it may have lost its end meanwhile.
    package static let checkPauseMilliseconds: Int64 = 10_000

    /// How often the stream is read again before it has taken anything, until the relay gives up for a while.
    private static let mostStumbles = 8

    private let sink: EventSink
    private let log: any EventLog
    private let connection: any StreamConnection
    private let stream: JetStream
    private let message: SinkMessage
    /// Milliseconds that only ever rise.
    private let clock: () -> Int64
    private var window = PublishWindow()
    private var isSettled = false
    private var stumbles = 0
    private var checkedMilliseconds: Int64 = 0
    /// The number that the stream's last message has once all that is under way is there.
    private var last: Int64 = 0
    /// Events up to here were read.
    private var reached: Int64 = 0
    private var mayHaveMore = true
    private var waiting: ArraySlice<StoredEvent> = []
    private var positions: AppPositions?

    /// How far it has come; `state` is what the relay before it has kept.
    package private(set) var state: SinkState
    /// Messages that the stream has taken so far.
    package private(set) var published = 0

    /// Throws `streamDiffers` when the subject template is invalid.
    package init(
        _ sink: EventSink, _ log: any EventLog, state: SinkState, over connection: any StreamConnection,
        clock: @escaping () -> Int64
    ) throws(SinkError) {
        guard let template = sink.template else {
            throw SinkError(.streamDiffers, "the sink's subject template is invalid; create the sink again")
        }
        self.sink = sink
        self.log = log
        self.connection = connection
        self.clock = clock
        // Of another epoch, it says nothing about this one.
        self.state = state.epoch == sink.epoch ? state : SinkState(epoch: sink.epoch)
        stream = JetStream(connection, sink, template)
        message = SinkMessage(of: sink, template)
    }

    /// True when there is nothing to do until events are stored, or for ``checkPauseMilliseconds``.
    package func step() throws(SinkError) -> Bool {
        if !isSettled { try settle() }
        try fill()
        guard let deadline = window.deadline else {
            if mayHaveMore { return false }
            // Nothing is under way and nothing is left, so the stream has all of it.
            state.markSequence = reached
            stumbles = 0
            // Nobody waits for what comes here; a connection that is broken says so.
            while try connection.answer(withinMilliseconds: 0) != nil {}
            if clock() - checkedMilliseconds >= Self.checkPauseMilliseconds { isSettled = false }
            return isSettled
        }
        try hear(forMilliseconds: min(max(0, deadline - clock()), Self.longestWaitMilliseconds))
        if let deadline = window.deadline, deadline <= clock() { isSettled = false }
        return false
    }

    /// There may be new events.
    package func wake() { mayHaveMore = true }

    /// Reads from the stream where to resume.
    private func settle() throws(SinkError) {
        guard stumbles < Self.mostStumbles else {
            throw SinkError(
                .streamRefuses,
                "the stream neither accepts the next event nor contains it; does something else write to it?")
        }
        stumbles += 1
        window.clear()
        waiting = []
        let ground = try stream.ground()
        last = ground.lastSequence
        reached = try mark(ground)
        state.markSequence = reached
        state.streamSequence = last
        checkedMilliseconds = clock()
        mayHaveMore = true
        isSettled = true
    }

    /// The number of the event after which to go on.
    private func mark(_ ground: StreamGround) throws(SinkError) -> Int64 {
        let known = state.markSequence
        guard let header = ground.lastHeader else {
            // Messages that were taken and are gone, because they were purged or are too old, are not published again. A
            // stream that has not taken them is another one, or has lost them.
            if let known, state.streamSequence > 0, ground.lastSequence >= state.streamSequence {
                return known
            }
            return sink.startSequence
        }
        guard let text = header[SinkMessage.epoch], let epoch = Int64(text),
            let position = header[SinkMessage.position]
        else {
            if known == nil { return sink.startSequence }
            throw SinkError(
                .markUnusable,
                "the last message in the stream was not published by this gateway; delete it there, or move the sink to a "
                    + "position")
        }
        guard epoch <= sink.epoch else {
            throw SinkError(
                .markUnusable,
                "another sink publishes to this stream, or this gateway was restored to an earlier state; move the sink "
                    + "to a position")
        }
        guard epoch == sink.epoch else { return sink.startSequence }
        // Read again: the log has grown since.
        let positions = try readPositions()
        do throws(EventPositions.Fault) {
            return try positions.sequence(of: position, in: sink.appID)
        } catch {
            throw SinkError(
                .markUnusable, "the stream's last message: \(error.reason); move the sink to a position")
        }
    }

    /// Publishes as much as there is room for.
    private func fill() throws(SinkError) {
        while window.hasRoom {
            if waiting.isEmpty, mayHaveMore { try read() }
            guard let event = waiting.popFirst() else { return }
            guard last < Int64.max else {
                throw SinkError(
                    .streamDiffers, "the stream has used its last sequence number; create another")
            }
            let made = message.make(event, try currentPositions(), after: last)
            // Until the stream has taken something since it was read, each asks: a refusal is only said in the answer to the
            // message that is refused.
            let number = window.add(
                event: event.sequence, after: last, bytes: made.body.count,
                asks: waiting.count % Self.answerEvery == 0 || stumbles > 0, at: clock())
            last += 1
            try connection.publish(made, number: number)
        }
    }

    /// Reads the next events, if there are any.
    private func read() throws(SinkError) {
        mayHaveMore = false
        do throws(GatewayError) {
            let stretch = try log.follow(
                EventFollowing(appID: sink.appID), after: reached, limit: Self.pageSize)
            waiting = stretch.events[...]
            reached = max(reached, stretch.reached)
            mayHaveMore = stretch.hasMore
        } catch {
            throw SinkError(.storage, "the events cannot be read: \(error.reason)")
        }
    }

    private func currentPositions() throws(SinkError) -> AppPositions {
        if let positions { return positions }
        return try readPositions().of(sink.appID)
    }

    private func readPositions() throws(SinkError) -> EventPositions {
        do throws(GatewayError) {
            let read = try log.positions()
            positions = read.of(sink.appID)
            return read
        } catch {
            throw SinkError(.storage, "the events cannot be read: \(error.reason)")
        }
    }

    private func hear(forMilliseconds milliseconds: Int64) throws(SinkError) {
        var wait = Int(milliseconds)
        while let answer = try connection.answer(withinMilliseconds: wait) {
            wait = 0
            switch window.hear(answer) {
            case .stored(let event, let message):
                published += Int(message - state.streamSequence)
                stumbles = 0
                state.markSequence = event
                state.streamSequence = message
            case .outOfStep:
                isSettled = false
                return
            case .refused(let error):
                isSettled = false
                throw error
            case .stale: break
            }
        }
    }
}
