internal import CountersignCore
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// Publishes batches to one stream over one connection: exactly once, in the order of storage.
///
/// The stream holds the progress. The header of each message has the event's position, and the stream
/// accepts a message only directly after its predecessor (`Nats-Expected-Last-Sequence`). After connecting,
/// an unexpected acknowledgement or a time-out, this way reads the stream's last message and lets delivery
/// continue after it. So events are neither lost nor duplicated if another process publishes at the same
/// time or the stream has lost messages.
final class StreamWay: Way, @unchecked Sendable {
    /// The interval, in messages, between requests for acknowledgements. An acknowledgement costs more than a message.
    private static let answerEvery = 128
    /// The maximum number of reads of the stream's state without progress before the way fails.
    private static let mostReads = 8
    /// The longest wait for an acknowledgement in milliseconds, so that a delivery ends soon after ``close()``.
    private static let longestWait: Int64 = 250

    private let connect: StreamConnect
    /// Milliseconds of a monotonic clock.
    private let clock: @Sendable () -> Int64
    /// Runs work that waits for acknowledgements, so that no thread of the pool waits.
    private let run: WayRun
    private let isClosed = Lock(false)
    // The properties below are used in `run` only.
    private var settings: StreamSettings?
    private var connection: (any StreamConnection)?
    private var window = PublishWindow()
    /// Reads of the stream's state since its last progress.
    private var reads = 0
    /// The sequence number of the stream's last message after all pending messages are stored; nil before it
    /// was read.
    private var last: Int64?

    init(
        connect: @escaping StreamConnect, clock: @escaping @Sendable () -> Int64, run: @escaping WayRun
    ) {
        self.connect = connect
        self.clock = clock
        self.run = run
    }

    func close() {
        isClosed.withLock { $0 = true }
        run { [self] in disconnect() }
    }

    func accept(_ batch: DeliveryBatch, _ done: @escaping @Sendable (DeliveryAnswer) -> Void) {
        run { [self] in
            guard let settings = batch.route.settings as? StreamSettings else {
                preconditionFailure("the settings are not those of a stream")
            }
            if settings != self.settings { disconnect() }
            self.settings = settings
            do throws(StreamError) {
                done(try deliver(batch, settings))
            } catch {
                disconnect()
                done(.retry(DeliveryFailure(error.code.rawValue, error.reason)))
            }
        }
    }

    private func disconnect() {
        connection?.close()
        connection = nil
        last = nil
    }

    private func deliver(
        _ batch: DeliveryBatch, _ settings: StreamSettings
    ) throws(StreamError) -> DeliveryAnswer {
        if isClosed.withLock({ $0 }) { return .notTried }
        guard let template = settings.template else {
            throw StreamError(.streamDiffers, "the stream's subject template is invalid; create it again")
        }
        let open: any StreamConnection
        if let connection { open = connection } else { open = try connect(settings) }
        connection = open
        if last == nil || batch.kind == .probe {
            let (checkpoint, last) = try resumePoint(batch, settings, JetStream(open, settings, template))
            guard checkpoint == batch.progress.committed else {
                return .moved(to: checkpoint, receiver: last)
            }
        }
        let message = MessageTemplate(of: settings, template)
        let positions = batch.positions?.of(settings.appID)
        var waiting = batch.events[...]
        var deadline: Int64?
        repeat {
            if isClosed.withLock({ $0 }) { return .notTried }
            while window.hasRoom, let positions, let event = waiting.popFirst() {
                guard let last, last < Int64.max else {
                    throw StreamError(
                        .streamDiffers, "the stream has used its last sequence number; create another")
                }
                let made = message.make(event, positions, after: last)
                // After the stream's state was read, each message requests an acknowledgement until one message is
                // stored. The server reports a rejection only if the message has requested an acknowledgement.
                let number = window.add(
                    event: event.sequence, after: last, bytes: made.body.count,
                    needsAcknowledgement: waiting.count % Self.answerEvery == 0 || reads > 0, at: clock())
                self.last = last + 1
                try open.publish(made, number: number)
            }
            deadline = window.deadline
            if let deadline {
                guard try receive(from: open, until: deadline) else {
                    last = nil
                    let (checkpoint, last) = try resumePoint(
                        batch, settings, JetStream(open, settings, template))
                    return .moved(to: checkpoint, receiver: last)
                }
            }
        } while deadline != nil || !waiting.isEmpty
        // Discards late acknowledgements. Throws if the connection is broken.
        while try open.answer(withinMilliseconds: 0) != nil {}
        if batch.kind == .probe { reads = 0 }
        let through = batch.kind == .probe ? batch.progress.committed : batch.scannedThrough
        return .delivered(through: through, receiver: last ?? 0)
    }

    /// Waits for acknowledgements. Returns false after an unexpected one or at the deadline.
    private func receive(
        from open: any StreamConnection, until deadline: Int64
    ) throws(StreamError) -> Bool {
        var wait = Int(min(max(0, deadline - clock()), Self.longestWait))
        while let answer = try open.answer(withinMilliseconds: wait) {
            wait = 0
            switch window.receive(answer) {
            case .stored: reads = 0
            case .outOfStep: return false
            case .rejected(let error): throw error
            case .stale: break
            }
        }
        return window.deadline.map { $0 > clock() } ?? true
    }

    /// Reads from the stream the last published event, after which publishing resumes.
    private func resumePoint(
        _ batch: DeliveryBatch, _ settings: StreamSettings, _ stream: JetStream
    ) throws(StreamError) -> (checkpoint: Int64, last: Int64) {
        guard reads < Self.mostReads else {
            reads = 0
            throw StreamError(
                .streamRejects,
                "the stream neither accepts the next event nor contains it; does something else write to it?")
        }
        reads += 1
        window.clear()
        let info = try stream.info()
        last = info.lastSequence
        return (try Self.checkpoint(info, batch, settings), info.lastSequence)
    }

    /// The sequence number of the last published event.
    private static func checkpoint(
        _ info: StreamInfo, _ batch: DeliveryBatch, _ settings: StreamSettings
    ) throws(StreamError) -> Int64 {
        let known = batch.progress.receiverSequence > 0 ? batch.progress.committed : nil
        guard let header = info.lastHeader else {
            // Messages that were stored and later purged or expired are not published again. A stream with a
            // smaller last sequence number is another stream or has lost messages.
            if let known, info.lastSequence >= batch.progress.receiverSequence { return known }
            return settings.startSequence
        }
        guard let text = header[MessageTemplate.epoch], let epoch = Int64(text),
            let position = header[MessageTemplate.position]
        else {
            if known == nil { return settings.startSequence }
            throw StreamError(
                .markUnusable,
                "the last message in the stream was not published by this gateway; delete it there, or move "
                    + "the stream to a position")
        }
        guard epoch <= settings.epoch else {
            throw StreamError(
                .markUnusable,
                "another gateway publishes to this stream, or this gateway was restored to an earlier state; "
                    + "move the stream to a position")
        }
        guard epoch == settings.epoch, let positions = batch.positions else { return settings.startSequence }
        do throws(EventPositions.Fault) {
            return try positions.sequence(of: position, in: settings.appID)
        } catch {
            throw StreamError(
                .markUnusable, "the stream's last message: \(error.reason); move the stream to a position")
        }
    }
}
