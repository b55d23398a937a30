internal import CountersignJOSE
package import GatewayModel
package import GatewayStorage

/// An event as a message of a stream: the body as it came, and in the header what a reader must know to trust it and to go
/// on after it.
package struct SinkMessage: Sendable {
    package static let position = "Countersign-Position"
    package static let epoch = "Countersign-Epoch"

    private let template: SubjectTemplate
    private let stream: String
    private let epoch: String

    package init(of sink: EventSink, _ template: SubjectTemplate) {
        self.template = template
        stream = sink.stream
        epoch = String(sink.epoch)
    }

    /// `last` is the number of the message after which the stream must take it.
    package func make(_ event: StoredEvent, _ positions: AppPositions, after last: Int64) -> StreamMessage {
        StreamMessage(
            subject: template.subject(
                type: event.type, user: event.userID ?? event.anonymousID, hash: Self.hash),
            headers: [
                (Self.position, positions.text(after: event.sequence)), (Self.epoch, epoch),
                ("Countersign-Message-Id", Self.header(event.messageID)),
                ("Countersign-Verdict", event.verdict),
                ("Nats-Expected-Stream", stream), ("Nats-Expected-Last-Sequence", String(last)),
            ], body: event.body)
    }

    /// 16 hexadecimal digits of an id's SHA-256.
    private static func hash(_ id: String) -> String {
        var id = id
        var rest = UInt64(bigEndian: id.withUTF8 { SHA256.words(UnsafeRawBufferPointer($0)) }.0)
        return String(unsafeUninitializedCapacity: 16) { digits in
            for index in stride(from: 15, through: 0, by: -1) {
                let digit = UInt8(truncatingIfNeeded: rest & 15)
                digits[index] = digit + (digit < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10)
                rest >>= 4
            }
            return 16
        }
    }

    /// Ids hold what their senders like; a line break in a header would be another field.
    private static func header(_ id: String) -> String {
        let isPlain: (UInt8) -> Bool = { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "%") }
        return id.utf8.allSatisfy(isPlain) ? id : SubjectTemplate.escaped(id, where: isPlain)
    }
}
