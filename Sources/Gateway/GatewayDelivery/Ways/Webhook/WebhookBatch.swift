internal import CountersignCore
internal import CountersignCrypto
internal import GatewayModel
internal import GatewayStorage

/// The body of a delivery, with as many events of a batch as fit.
package struct WebhookBatch: Sendable {
    package let body: [UInt8]
    package private(set) var firstSequence: Int64?
    package private(set) var lastSequence: Int64?
    package let events: Int
    /// All events up to this sequence number are in the body or do not match the filter.
    package private(set) var scannedThrough: Int64

    package init(_ batch: DeliveryBatch) {
        scannedThrough = batch.scannedThrough
        guard batch.kind != .test else {
            (body, events) = (Array(#"{"type":"test"}"#.utf8), 0)
            return
        }
        var content = WebhookBody(
            appID: batch.route.id.appID, isReplay: batch.kind == .replay, isAfterGap: batch.gap.isOpen)
        let positions = batch.positions?.of(batch.route.id.appID)
        for event in batch.events {
            var text: [UInt8] = []
            event.write(to: &text, position: positions?.text(after: event.sequence) ?? "")
            guard content.append(text) else {
                scannedThrough = lastSequence ?? scannedThrough
                break
            }
            firstSequence = firstSequence ?? event.sequence
            lastSequence = event.sequence
        }
        events = content.events
        body = content.finished()
    }

    /// SHA-256 of a body, to detect whether a retry has the same body.
    package static func digest(of body: [UInt8]) -> String { SHA256.digest(body).hexadecimal }
}
