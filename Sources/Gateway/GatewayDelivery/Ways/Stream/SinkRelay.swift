internal import CountersignCore
package import GatewayModel
package import GatewayStorage

/// Publishes an app's events to one stream over one connection: exactly once, in the order of storage.
///
/// The progress is stored in the stream. The header of each message has the event's position, and the stream
/// accepts a message only directly after its predecessor (`Nats-Expected-Last-Sequence`). At the start, after
/// an unexpected acknowledgement and after a time-out, the relay reads the stream's last message and
/// continues after it. So events are neither lost nor duplicated if another process publishes at the same
/// time or the stream has lost messages.
///
/// The relay has no thread and no clock. ``step()`` does the available work and blocks only to wait for
/// acknowledgements.
package final class SinkRelay {
    private static let pageSize = 1_024
    /// Every so many messages, one requests an acknowledgement, which costs more than a message.
    private static let answerEvery = 128
    /// The longest wait in one step.
    private static let longestWaitMilliseconds: Int64 = 500
    /// The interval at which an idle relay reads the stream, which may have lost messages.
    package static let checkPauseMilliseconds: Int64 = 10_000

    /// The maximum number of reads of the stream's state without progress before the relay fails.
    private static let mostStumbles = 8

    private let sink: EventSink
    private let log: any EventLog
    private let connection: any StreamConnection
    private let stream: JetStream
    private let message: SinkMessage
    /// Milliseconds of a monotonic clock.
    private let clock: () -> Int64
    private var window = PublishWindow()
    private var isSettled = false
    private var stumbles = 0
    private var checkedMilliseconds: Int64 = 0
    /// The sequence number of the stream's last message after all pending messages are stored.
    private var last: Int64 = 0
    /// The last sequence number of the log that was read.
    private var reached: Int64 = 0
    private var mayHaveMore = true
    private var waiting: ArraySlice<StoredEvent> = []
    private var positions: AppPositions?

    /// The current progress. Starts with the stored state of the previous relay.
    package private(set) var state: SinkState
    /// The number of messages stored by the stream.
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
        // A state of another epoch does not apply.
        self.state = state.epoch == sink.epoch ? state : SinkState(epoch: sink.epoch)
        stream = JetStream(connection, sink, template)
        message = SinkMessage(of: sink, template)
    }

    /// Publishes. Returns true if there is nothing to do until events are stored, or for
    /// ``checkPauseMilliseconds``.
    package func step() throws(SinkError) -> Bool {
        if !isSettled { try settle() }
        try fill()
        guard let deadline = window.deadline else {
            if mayHaveMore { return false }
            // Nothing is pending and nothing is left, so the stream has all events.
            state.markSequence = reached
            stumbles = 0
            // Discards late acknowledgements. Throws if the connection is broken.
            while try connection.answer(withinMilliseconds: 0) != nil {}
            if clock() - checkedMilliseconds >= Self.checkPauseMilliseconds { isSettled = false }
            return isSettled
        }
        try hear(forMilliseconds: min(max(0, deadline - clock()), Self.longestWaitMilliseconds))
        if let deadline = window.deadline, deadline <= clock() { isSettled = false }
        return false
    }

    /// Records that new events may be available.
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

    /// The sequence number of the last published event.
    private func mark(_ ground: StreamGround) throws(SinkError) -> Int64 {
        let known = state.markSequence
        guard let header = ground.lastHeader else {
            // Messages that were stored and later purged or expired are not published again. A stream with a
            // smaller last sequence number is another stream or has lost messages.
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
        // Read again, because the log has grown.
        let positions = try readPositions()
        do throws(EventPositions.Fault) {
            return try positions.sequence(of: position, in: sink.appID)
        } catch {
            throw SinkError(
                .markUnusable, "the stream's last message: \(error.reason); move the sink to a position")
        }
    }

    private func fill() throws(SinkError) {
        while window.hasRoom {
            if waiting.isEmpty, mayHaveMore { try read() }
            guard let event = waiting.popFirst() else { return }
            guard last < Int64.max else {
                throw SinkError(
                    .streamDiffers, "the stream has used its last sequence number; create another")
            }
            let made = message.make(event, try currentPositions(), after: last)
            // Each message requests an acknowledgement until the stream has stored one after its state was
            // read, because a rejection is only reported to the rejected message.
            let number = window.add(
                event: event.sequence, after: last, bytes: made.body.count,
                asks: waiting.count % Self.answerEvery == 0 || stumbles > 0, at: clock())
            last += 1
            try connection.publish(made, number: number)
        }
    }

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
