package import GatewayHTTP
package import GatewayModel

extension DeliveryRecord {
    package init(
        _ attempt: WebhookAttempt, of endpointID: String, _ messageID: String, _ kind: Kind,
        _ batch: WebhookBatch?, _ number: Int, at milliseconds: Int64
    ) {
        self.init(
            endpointID: endpointID, messageID: messageID, kind: kind, firstSequence: batch?.firstSequence,
            lastSequence: batch?.lastSequence, events: batch?.events ?? 0, attempt: number,
            atMilliseconds: milliseconds, durationMilliseconds: attempt.durationMilliseconds,
            status: attempt.status, error: attempt.error, answer: Self.text(attempt.answer))
    }
}
