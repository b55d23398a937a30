internal import CountersignJSON
package import GatewayModel

/// The published messages without acknowledgement. Their number is limited, so that a slow or unavailable
/// stream does not use more memory.
///
/// Each message names its predecessor, so the stream stores them in order or not at all. An acknowledgement
/// therefore covers all earlier messages, and not every message needs one.
package struct PublishWindow {
    package static let mostMessages = 512
    package static let mostBytes = 8 << 20
    package static let answerLimitMilliseconds: Int64 = 5_000

    /// A published message that has requested an acknowledgement.
    private struct Entry {
        let number: UInt64
        let event: Int64
        /// The sequence number that the message must get.
        let expected: Int64
        /// The size of this message and of the messages since the previous entry.
        let size: Size
        let deadline: Int64
    }

    private struct Size {
        var messages = 0
        var bytes = 0
    }

    package enum Reply: Equatable {
        /// All events up to `event` are stored; the last has the sequence number `message`.
        case stored(event: Int64, message: Int64)
        /// The stream's state differs from the expected one and must be read.
        case outOfStep
        case rejected(StreamError)
        /// An acknowledgement that is no longer expected.
        case stale
    }

    private var entries: [Entry] = []
    private var size = Size()
    /// The size of the messages since the last request for an acknowledgement.
    private var sizeSinceRequest = Size()
    /// The number for the next request. Numbers are not reused, so that late acknowledgements are recognized.
    private var nextNumber: UInt64 = 1
    private let parser = StrictJSONParser(maximumBytes: 64 << 10)

    package init() {}

    package var hasRoom: Bool { size.messages < Self.mostMessages && size.bytes < Self.mostBytes }

    /// The time on the clock of `add` by which the oldest requested acknowledgement must arrive; nil without one.
    package var deadline: Int64? { entries.first?.deadline }

    /// Records an event that will be published after the message `last`. Returns a number if the message must
    /// request an acknowledgement: because of `needsAcknowledgement`, or because the window is full.
    package mutating func add(
        event: Int64, after last: Int64, bytes: Int, needsAcknowledgement: Bool, at now: Int64
    ) -> UInt64? {
        size.messages += 1
        size.bytes += bytes
        sizeSinceRequest.messages += 1
        sizeSinceRequest.bytes += bytes
        guard needsAcknowledgement || !hasRoom else { return nil }
        entries.append(
            Entry(
                number: nextNumber, event: event, expected: last + 1, size: sizeSinceRequest,
                deadline: now + Self.answerLimitMilliseconds))
        sizeSinceRequest = Size()
        nextNumber += 1
        return entries.last?.number
    }

    package mutating func clear() {
        entries.removeAll(keepingCapacity: true)
        size = Size()
        sizeSinceRequest = Size()
    }

    package mutating func receive(_ answer: StreamAnswer) -> Reply {
        // The number is untrusted: any client with permission to publish to the inbox can choose it.
        guard let first = entries.first?.number, answer.number >= first,
            answer.number - first < UInt64(entries.count)
        else { return .stale }
        guard let body = answer.body else {
            return .rejected(
                StreamError(.streamDiffers, "no NATS stream has the subject of the message any more"))
        }
        let reply = try? parser.parse(bytes: body) { node in
            (
                stored: node["seq"]?.int64, code: node["error"]?["err_code"]?.int64,
                text: node["error"]?["description"]?.string
            )
        }
        guard let reply else { return .outOfStep }
        if let code = reply.code {
            if JetStreamError.wrongLastSequence.contains(code) { return .outOfStep }
            return .rejected(
                StreamError(
                    .streamRejects,
                    "the stream rejects the message: \(DeliveryRecord.text(Array((reply.text ?? "no reason").utf8)))"
                ))
        }
        let count = Int(answer.number - first) + 1
        let entry = entries[count - 1]
        guard reply.stored == entry.expected else { return .outOfStep }
        for entry in entries.prefix(count) {
            size.messages -= entry.size.messages
            size.bytes -= entry.size.bytes
        }
        entries.removeFirst(count)
        return .stored(event: entry.event, message: entry.expected)
    }
}

enum JetStreamError {
    static let streamNotFound: Int64 = 10_059
    static let noMessage: Int64 = 10_037
    static let wrongLastSequence: Set<Int64> = [10_071, 10_164]
}
