internal import CountersignCore
internal import Dispatch
package import GatewayModel

package enum WebhookOutcome: Sendable {
    case delivered
    /// The webhook was not reached or did not answer 2xx. The reason contains no part of its URL.
    case rejected(String)
    case overloaded
}

package struct WebhookAttempt: Sendable {
    package var status: Int?
    /// A stable identifier of the failure; nil on success.
    package var error: String?
    /// The failure in words. Contains no part of the URL.
    package var reason = ""
    package var retryAfterSeconds: Int?
    package var answer: [UInt8] = []
    package var durationMilliseconds: Int64 = 0

    package init() {}

    /// An attempt that got a response. Its duration is unknown.
    package init(status: Int, answer: [UInt8] = [], retryAfterSeconds: Int? = nil) {
        self.status = status
        self.answer = answer
        self.retryAfterSeconds = retryAfterSeconds
        switch status {
        case 200..<300: break
        // Not followed, because the redirecting server would choose the receiver of the body.
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

    package var outcome: WebhookOutcome { error == nil ? .delivered : .rejected(reason) }
}

package struct WebhookDelivery {
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

    /// Delivers on a pool's thread, and calls `completion` there.
    package func perform(on pool: OutboundPool, _ completion: @escaping @Sendable (WebhookAttempt) -> Void) {
        let began = DispatchTime.now()
        pool.send(request) { completion(Self.attempt($0, since: began)) }
    }

    private var request: OutboundRequest {
        OutboundRequest(
            url: webhook.url, body: body, headers: headers + [("Content-Type", "application/json")],
            schemes: "http,https", allowsPrivateAddresses: webhook.allowsPrivateAddresses,
            timeoutMilliseconds: timeoutMilliseconds, maximumBytes: Self.longestAnswer,
            cutsLongAnswers: true, isCancelled: isCancelled)
    }

    private static func attempt(
        _ result: Result<OutboundRequest.Answer, OutboundRequest.Failure>, since began: DispatchTime
    ) -> WebhookAttempt {
        var attempt =
            switch result {
            case .success(let answer):
                WebhookAttempt(
                    status: answer.status, answer: Array(answer.body.prefix(DeliveryRecord.longestAnswer)),
                    retryAfterSeconds: answer.retryAfterSeconds)
            case .failure(let failure): WebhookAttempt(failure)
            }
        attempt.durationMilliseconds = Int64(
            (DispatchTime.now().uptimeNanoseconds - began.uptimeNanoseconds) / 1_000_000)
        return attempt
    }
}
