internal import GatewayModel

/// What became of a delivery.
package enum WebhookOutcome: Sendable {
    /// The webhook answered 2xx.
    case delivered
    /// It was not reached, or answered something else; the reason holds no part of its URL.
    case refused(String)
    /// Too many wait.
    case overloaded
}

/// One POST to a webhook.
struct WebhookDelivery {
    let body: [UInt8]
    let headers: [(name: String, value: String)]
    let webhook: PushWebhook
    let timeoutMilliseconds: Int

    /// Delivers, and waits for the answer, of whose body nothing is kept.
    func perform() -> WebhookOutcome {
        let request = OutboundRequest(
            url: webhook.url, body: body, headers: headers + [("Content-Type", "application/json")],
            schemes: "http,https", allowsPrivateAddresses: webhook.allowsPrivateAddresses,
            timeoutMilliseconds: timeoutMilliseconds, maximumBytes: 1 << 20)
        do throws(OutboundRequest.Failure) {
            let status = try request.perform().status
            return (200..<300).contains(status) ? .delivered : .refused("it answered \(status)")
        } catch {
            return .refused(error.reason)
        }
    }
}
