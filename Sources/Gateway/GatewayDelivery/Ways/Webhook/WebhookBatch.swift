internal import CountersignCore
internal import CountersignCrypto
internal import GatewayModel
internal import GatewayStorage

/// The body of a delivery, with as many events of a batch as fit.
package struct WebhookBatch: Sendable {
    /// The maximum size of a body in bytes. A larger event is sent alone.
    package static let maximumBytes = 512 * 1_024

    package private(set) var body: [UInt8]
    package private(set) var firstSequence: Int64?
    package private(set) var lastSequence: Int64?
    package private(set) var events = 0
    /// All events up to this sequence number are in the body or do not match.
    package private(set) var reached: Int64

    package init(_ batch: DeliveryBatch) {
        reached = batch.reached
        guard batch.kind != .test else {
            body = Array(#"{"type":"test"}"#.utf8)
            return
        }
        body = Array(#"{"type":"events","app":"#.utf8)
        JSONValue.string(batch.appID).write(to: &body)
        if batch.kind == .replay { body.append(contentsOf: #","replay":true"#.utf8) }
        if batch.gap.isOpen { body.append(contentsOf: #","events_missed":true"#.utf8) }
        body.append(contentsOf: #","events":["#.utf8)
        let positions = batch.positions?.of(batch.appID)
        for event in batch.events {
            var text: [UInt8] = []
            event.write(to: &text, position: positions?.text(after: event.sequence) ?? "")
            guard events == 0 || body.count + text.count + 3 <= Self.maximumBytes else {
                reached = lastSequence ?? reached
                break
            }
            if events > 0 { body.append(UInt8(ascii: ",")) }
            body.append(contentsOf: text)
            firstSequence = firstSequence ?? event.sequence
            lastSequence = event.sequence
            events += 1
        }
        body.append(contentsOf: "]}".utf8)
    }

    /// SHA-256 of a body, to detect whether a retry has the same body.
    package static func digest(of body: [UInt8]) -> String { SHA256.digest(body).hexadecimal }
}
