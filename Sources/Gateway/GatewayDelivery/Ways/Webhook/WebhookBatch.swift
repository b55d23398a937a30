internal import CountersignCore
internal import CountersignCrypto
internal import GatewayModel
internal import GatewayStorage

package struct WebhookBatch: Sendable {
    /// The maximum size of a body in bytes. A larger event is sent alone.
    package static let maximumBytes = 512 * 1_024

    package private(set) var body: [UInt8]
    package private(set) var firstSequence: Int64?
    package private(set) var lastSequence: Int64?
    package private(set) var events = 0

    init(appID: String, isReplay: Bool, isAfterGap: Bool) {
        body = Array(#"{"type":"events","app":"#.utf8)
        JSONValue.string(appID).write(to: &body)
        if isReplay { body.append(contentsOf: #","replay":true"#.utf8) }
        if isAfterGap { body.append(contentsOf: #","events_missed":true"#.utf8) }
        body.append(contentsOf: #","events":["#.utf8)
    }

    /// Adds an event. Returns false if it does not fit.
    mutating func add(_ event: StoredEvent, position: String) -> Bool {
        var text: [UInt8] = []
        event.write(to: &text, position: position)
        guard events == 0 || body.count + text.count + 3 <= Self.maximumBytes else { return false }
        if events > 0 { body.append(UInt8(ascii: ",")) }
        body.append(contentsOf: text)
        firstSequence = firstSequence ?? event.sequence
        lastSequence = event.sequence
        events += 1
        return true
    }

    mutating func end() {
        body.append(contentsOf: "]}".utf8)
    }

    /// SHA-256 of a body, to detect whether a retry has the same body.
    package static func digest(of body: [UInt8]) -> String { SHA256.digest(body).hexadecimal }

    package static let test = Array(#"{"type":"test"}"#.utf8)
}
