internal import CountersignJOSE
package import GatewayModel

/// The messages that were published and not answered yet: at most so many, so that a stream that is slow or away costs the
/// same memory as one that is fast.
///
/// Each says which message it comes after, so the stream takes them in this order or not at all: the answer to one answers
/// for those before it, and the last of many is enough to ask.
package struct PublishWindow {
    package static let mostMessages = 512
    package static let mostBytes = 8 << 20
    /// How long a stream may take to answer.
    package static let answerLimitMilliseconds: Int64 = 5_000

    /// A message that asks for an answer.
    private struct Entry {
        let number: UInt64
        let event: Int64
        /// The number that its message must get.
        let expected: Int64
        /// Of those that it answers for.
        let size: Size
        let deadline: Int64
    }

    private struct Size {
        var messages = 0
        var bytes = 0
    }

    /// What an answer means.
    package enum Heard: Equatable {
        /// Everything up to this event is in the stream, its last message under this number.
        case stored(event: Int64, message: Int64)
        /// The stream is not where it was thought to be: read it.
        case outOfStep
        case refused(SinkError)
        /// It answers what nobody waits for any more.
        case stale
    }

    private var entries: [Entry] = []
    private var size = Size()
    /// Of the messages published since the last one that asks for an answer.
    private var unasked = Size()
    /// Of the next message that asks; never used twice, so that a late answer is told from a new one.
    private var nextNumber: UInt64 = 1
    private let parser = StrictJSONParser(maximumBytes: 64 << 10)

    package init() {}

    package var hasRoom: Bool { size.messages < Self.mostMessages && size.bytes < Self.mostBytes }

    /// Milliseconds on the clock of `add` by which the oldest must be answered; nil when none waits.
    package var deadline: Int64? { entries.first?.deadline }

    /// Notes an event that is about to be published after the message `last`. Returns the number for the answer when the
    /// message must ask for one: because `asks`, or because nothing more is published before there is one.
    package mutating func add(
        event: Int64, after last: Int64, bytes: Int, asks: Bool, at now: Int64
    ) -> UInt64? {
        size.messages += 1
        size.bytes += bytes
        unasked.messages += 1
        unasked.bytes += bytes
        guard asks || !hasRoom else { return nil }
        entries.append(
            Entry(
                number: nextNumber, event: event, expected: last + 1, size: unasked,
                deadline: now + Self.answerLimitMilliseconds))
        unasked = Size()
        nextNumber += 1
        return entries.last?.number
    }

    /// Waits for nothing any more.
    package mutating func clear() {
        entries.removeAll(keepingCapacity: true)
        size = Size()
        unasked = Size()
    }

    package mutating func hear(_ answer: StreamAnswer) -> Heard {
        // Whoever may publish to the inbox may have sent any number.
        guard let first = entries.first?.number, answer.number >= first,
            answer.number - first < UInt64(entries.count)
        else { return .stale }
        guard let body = answer.body else {
            return .refused(SinkError(.streamDiffers, "no stream listens under the sink's subjects any more"))
        }
        let said = try? parser.parse(bytes: body) { node in
            (
                stored: node["seq"]?.int64, code: node["error"]?["err_code"]?.int64,
                text: node["error"]?["description"]?.string
            )
        }
        guard let said else { return .outOfStep }
        if let code = said.code {
            if JetStreamError.wrongLastSequence.contains(code) { return .outOfStep }
            return .refused(
                SinkError(
                    .streamRefuses,
                    "the stream takes no message: \(DeliveryRecord.text(Array((said.text ?? "no reason").utf8)))"
                ))
        }
        let count = Int(answer.number - first) + 1
        let entry = entries[count - 1]
        guard said.stored == entry.expected else { return .outOfStep }
        for entry in entries.prefix(count) {
            size.messages -= entry.size.messages
            size.bytes -= entry.size.bytes
        }
        entries.removeFirst(count)
        return .stored(event: entry.event, message: entry.expected)
    }
}

/// Numbers of JetStream's errors.
enum JetStreamError {
    static let streamNotFound: Int64 = 10_059
    static let noMessage: Int64 = 10_037
    static let wrongLastSequence: Set<Int64> = [10_071, 10_164]
}
