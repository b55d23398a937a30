package import CountersignCore
internal import CountersignJOSE
internal import Foundation
package import GatewayModel

/// One stored event.
package struct StoredEvent: Sendable {
    /// Counts up in the order of storing.
    package let sequence: Int64
    package let messageID: String
    package let type: String
    package let userID: String?
    package let anonymousID: String?
    package let name: String?
    package let timestampMilliseconds: Int64
    package let receivedMilliseconds: Int64
    /// How it was judged; nil for events that were stored before that was.
    package let proof: EventProof?
    /// The event as it came, as JSON.
    package let body: [UInt8]

    package init(
        sequence: Int64, messageID: String, type: String, userID: String?, anonymousID: String?,
        name: String?, timestampMilliseconds: Int64, receivedMilliseconds: Int64, proof: EventProof?,
        body: [UInt8]
    ) {
        self.sequence = sequence
        self.messageID = messageID
        self.type = type
        self.userID = userID
        self.anonymousID = anonymousID
        self.name = name
        self.timestampMilliseconds = timestampMilliseconds
        self.receivedMilliseconds = receivedMilliseconds
        self.proof = proof
        self.body = body
    }

    /// `unknown` for events that were stored before verdicts were.
    package var verdict: String { proof?.verdict.rawValue ?? "unknown" }

    /// The event as a JSON object, appended to `output`, with its position when one is given.
    ///
    /// The body's bytes are those that came, so no number and no order of members changes. A line has none inside: the
    /// line breaks between members, the only ones that JSON allows, are spaces there.
    package func write(to output: inout [UInt8], position: String? = nil, asLine isLine: Bool = false) {
        output.append(contentsOf: #"{"body":"#.utf8)
        writeBody(to: &output, asLine: isLine)
        func text(_ name: StaticString, _ value: String?) {
            Self.begin(name, &output)
            if let value {
                JSONValue.write(value, to: &output)
            } else {
                output.append(contentsOf: "null".utf8)
            }
        }
        func number(_ name: StaticString, _ value: Int64?) {
            Self.begin(name, &output)
            output.append(contentsOf: (value.map { String($0) } ?? "null").utf8)
        }
        text("anonymous_id", anonymousID)
        number("code", (proof?.code).map { Int64($0) })
        text("dialect", proof?.dialect)
        text("enforcement", proof?.enforcement)
        text("key_id", proof?.keyID)
        text("message_id", messageID)
        text("name", name)
        if let position { text("position", position) }
        number("received_ms", receivedMilliseconds)
        text("request_id", proof?.requestID)
        number("seq", sequence)
        number("timestamp_ms", timestampMilliseconds)
        text("token_id", proof?.tokenID)
        text("type", type)
        text("user_id", userID)
        text("verdict", verdict)
        output.append(UInt8(ascii: "}"))
    }

    private static func begin(_ name: StaticString, _ output: inout [UInt8]) {
        output.append(contentsOf: #",""#.utf8)
        name.withUTF8Buffer { output.append(contentsOf: $0) }
        output.append(contentsOf: #"":"#.utf8)
    }

    /// Null when it is no JSON: somebody else has written it.
    private func writeBody(to output: inout [UInt8], asLine isLine: Bool) {
        guard BodyParsers.isJSON(body) else {
            output.append(contentsOf: "null".utf8)
            return
        }
        let start = output.count
        output.append(contentsOf: body)
        guard isLine, Self.hasLineBreaks(body) else { return }
        for index in start..<output.count where output[index] == 0x0A || output[index] == 0x0D {
            output[index] = 0x20
        }
    }

    private static func hasLineBreaks(_ body: [UInt8]) -> Bool {
        body.withUnsafeBytes { bytes in
            bytes.baseAddress.map {
                memchr($0, 0x0A, bytes.count) != nil || memchr($0, 0x0D, bytes.count) != nil
            } ?? false
        }
    }

    /// The body as a JSON value; null when it cannot be read, or has names that may take long to compare.
    package var bodyValue: JSONValue {
        let parser = StrictJSONParser(maximumBytes: max(1, body.count), maximumNameBytes: 1_024)
        return (try? parser.parse(bytes: body) { $0.value }) ?? .null
    }
}
