internal import CountersignCrypto
package import GatewayModel
package import GatewayStorage

/// Converts an event to a message: the stored body, and a header with the verification result and the event's
/// position.
package struct MessageTemplate: Sendable {
    package static let position = "Countersign-Position"
    package static let epoch = "Countersign-Epoch"

    private let template: SubjectTemplate
    private let stream: String
    private let epoch: String

    package init(of settings: StreamSettings, _ template: SubjectTemplate) {
        self.template = template
        stream = settings.stream
        epoch = String(settings.epoch)
    }

    /// `last` is the sequence number of the preceding message, which the stream must have stored last.
    package func make(_ event: StoredEvent, _ positions: AppPositions, after last: Int64) -> StreamMessage {
        var message = StreamMessage(
            subject: template.subject(
                type: event.type, user: event.userID ?? event.anonymousID, hash: Self.hash),
            headers: [
                (Self.position, positions.text(after: event.sequence)), (Self.epoch, epoch),
                ("Countersign-Message-Id", Self.header(event.messageID)),
                ("Countersign-Verdict", event.verdict),
                ("Nats-Expected-Stream", stream), ("Nats-Expected-Last-Sequence", String(last)),
            ], body: event.body)
        if let claims = event.proof?.claims {
            message.headers.append(("Countersign-Claims", Self.header(claims)))
        }
        return message
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

    /// Escapes an id or claims, because a line break in them would start another field.
    private static func header(_ id: String) -> String {
        let isPlain: (UInt8) -> Bool = { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "%") }
        return id.utf8.allSatisfy(isPlain) ? id : SubjectTemplate.escaped(id, where: isPlain)
    }
}
