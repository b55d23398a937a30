internal import CountersignCore
internal import Dispatch
package import GatewayModel

/// What became of a delivery.
package enum WebhookOutcome: Sendable {
    /// The webhook answered 2xx.
    case delivered
    /// It was not reached, or answered something else; the reason holds no part of its URL.
    case refused(String)
    /// Too many wait.
    case overloaded
}

/// What one attempt to deliver to a webhook has come to.
package struct WebhookAttempt: Sendable {
    /// Nil when there was no answer.
    package var status: Int?
    /// A stable word for why it was not delivered; nil when it was.
    package var error: String?
    /// The same for people; holds no part of the URL.
    package var reason = ""
    /// When the webhook wants to be asked again; nil when it does not say.
    package var retryAfterSeconds: Int?
    /// How the answer begins.
    package var answer: [UInt8] = []
    package var durationMilliseconds: Int64 = 0

    package init() {}

    /// An attempt that was answered, whose time is not known.
    package init(status: Int, answer: [UInt8] = [], retryAfterSeconds: Int? = nil) {
        self.status = status
        self.answer = answer
        self.retryAfterSeconds = retryAfterSeconds
        switch status {
        case 200..<300: break
        // Elsewhere the body might go to somebody else, and the address was not judged.
        case 300..<400: error = "redirect"
        case 410: error = "gone"
        default: error = "status"
        }
        if error != nil { reason = "it answered \(status)" }
    }

    package init(_ failure: OutboundRequest.Failure) {
        error = failure.code.rawValue
        reason = failure.reason
    }

    package var outcome: WebhookOutcome { error == nil ? .delivered : .refused(reason) }
}

/// One POST to a webhook.
package struct WebhookDelivery {
    /// Bytes of an answer that are read.
    private static let longestAnswer = 1 << 16

    let body: [UInt8]
    let headers: [(name: String, value: String)]
    let webhook: PushWebhook
    let timeoutMilliseconds: Int
    let isCancelled: @Sendable () -> Bool

    package init(
        body: [UInt8], headers: [(name: String, value: String)], webhook: PushWebhook,
        timeoutMilliseconds: Int, isCancelled: @escaping @Sendable () -> Bool = { false }
    ) {
        self.body = body
        self.headers = headers
        self.webhook = webhook
        self.timeoutMilliseconds = timeoutMilliseconds
        self.isCancelled = isCancelled
    }

    /// Delivers, and waits for the answer, of whose body only the beginning is kept.
    package func perform() -> WebhookAttempt {
        let began = DispatchTime.now()
        let request = OutboundRequest(
            url: webhook.url, body: body, headers: headers + [("Content-Type", "application/json")],
            schemes: "http,https", allowsPrivateAddresses: webhook.allowsPrivateAddresses,
            timeoutMilliseconds: timeoutMilliseconds, maximumBytes: Self.longestAnswer,
            cutsLongAnswers: true, isCancelled: isCancelled)
        var attempt: WebhookAttempt
        do throws(OutboundRequest.Failure) {
            let answer = try request.perform()
            attempt = WebhookAttempt(
                status: answer.status, answer: Array(answer.body.prefix(DeliveryRecord.longestAnswer)),
                retryAfterSeconds: answer.retryAfterSeconds)
        } catch {
            attempt = WebhookAttempt(error)
        }
        attempt.durationMilliseconds = Int64(
            (DispatchTime.now().uptimeNanoseconds - began.uptimeNanoseconds) / 1_000_000)
        return attempt
    }
}
