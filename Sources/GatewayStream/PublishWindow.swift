internal import CountersignJOSE
package import GatewayModel

/// The messages that were published and not answered yet: at most so many, so that a stream that is slow or away costs the
/// same memory as one that is fast.
///
/// Each says which message it comes after, so the stream takes them in this order or not at all: the answer to one answers
/// for those before it.
package struct PublishWindow {
    package static let mostMessages = 512
    package static let mostBytes = 8 << 20
    /// How long a stream may take to answer.
    package static let answerLimitMilliseconds: Int64 = 5_000

    private struct Entry {
        let number: UInt64
        let event: Int64
        /// The number that its message must get.
        let expected: Int64
        let bytes: Int
        let deadline: Int64
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
    private var first = 0
    private var bytes = 0
    /// Of the next message; never used twice, so that a late answer is told from a new one.
    private var nextNumber: UInt64 = 1
    private let parser = StrictJSONParser(maximumBytes: 64 << 10)

    package init() {}

    package var isEmpty: Bool { first == entries.count }
    package var hasRoom: Bool { entries.count - first < Self.mostMessages && bytes < Self.mostBytes }

    /// Milliseconds on the clock of `add` by which the oldest must be answered; nil when none waits.
    package var deadline: Int64? { isEmpty ? nil : entries[first].deadline }

    /// Notes an event that is about to be published after the message `last`. Returns the message's number for the answer.
    package mutating func add(event: Int64, after last: Int64, bytes size: Int, at now: Int64) -> UInt64 {
        defer { nextNumber += 1 }
        entries.append(
            Entry(
                number: nextNumber, event: event, expected: last + 1, bytes: size,
                deadline: now + Self.answerLimitMilliseconds))
        bytes += size
        return nextNumber
    }

    /// Waits for nothing any more.
    package mutating func clear() {
        entries.removeAll(keepingCapacity: true)
        first = 0
        bytes = 0
    }

    package mutating func hear(_ answer: StreamAnswer) -> Heard {
        // Whoever may publish to the inbox may have sent any number.
        guard !isEmpty, answer.number >= entries[first].number,
            answer.number - entries[first].number < UInt64(entries.count - first)
        else { return .stale }
        let index = first + Int(answer.number - entries[first].number)
        guard let body = answer.body else {
            return .refused(SinkError(.streamDiffers, "no stream listens under the sink's subjects any more"))
        }
        let said = try? parser.parse(bytes: body) { node in
            (
                stored: node["seq"]?.int64, isDuplicate: node["duplicate"]?.bool ?? false,
                code: node["error"]?["err_code"]?.int64, text: node["error"]?["description"]?.string
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
        let entry = entries[index]
        guard said.stored == entry.expected, !said.isDuplicate else { return .outOfStep }
        for entry in entries[first...index] { bytes -= entry.bytes }
        first = index + 1
        if first >= Self.mostMessages {
            entries.removeFirst(first)
            first = 0
        }
        return .stored(event: entry.event, message: entry.expected)
    }
}

/// Numbers of JetStream's errors.
enum JetStreamError {
    static let streamNotFound: Int64 = 10_059
    static let noMessage: Int64 = 10_037
    static let wrongLastSequence: Set<Int64> = [10_071, 10_164]
}
