/// One POST to a webhook.
struct WebhookDelivery {
    let body: [UInt8]
    let headers: [(name: String, value: String)]
    let webhook: PushWebhook
    let timeoutMilliseconds: Int

    /// Delivers, and waits for the answer, of whose body nothing is kept.
    func perform() -> WebhookSender.Outcome {
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
