internal import CCurl
internal import CountersignCore
package import Foundation
package import GatewayModel

package final class WebhookSender: Sendable {
    /// The time limit of a delivery in milliseconds.
    private static let timeout = 10_000
    private static let maximumWaiting = 64

    private let queue: OperationQueue
    private let waiting = Lock(0)
    private let now: @Sendable () -> Date

    package init(now: @escaping @Sendable () -> Date) {
        self.now = now
        queue = OperationQueue()
        queue.name = "webhooks"
        queue.maxConcurrentOperationCount = 4
    }

    package func waitUntilIdle() {
        queue.waitUntilAllOperationsAreFinished()
    }

    /// Attempts one delivery, then calls `report` and `completion` from any thread. If too many deliveries
    /// wait, calls only `completion`. `trace` is the context of the request that caused the delivery.
    package func send(
        _ body: [UInt8], id: String, to webhook: PushWebhook, trace: TraceParent? = nil,
        report: @escaping @Sendable (WebhookAttempt) -> Void = { _ in },
        completion: @escaping @Sendable (WebhookOutcome) -> Void
    ) {
        let mayWait = waiting.withLock { waiting -> Bool in
            guard waiting < Self.maximumWaiting else { return false }
            waiting += 1
            return true
        }
        guard mayWait else { return completion(.overloaded) }
        let timestamp = Int64(now().timeIntervalSince1970)
        queue.addOperation { [self] in
            var headers = WebhookSignature.headers(
                id: id, timestamp: timestamp, body: body, keys: [webhook.secret])
            if let trace { headers.append(("traceparent", trace.text)) }
            let attempt = WebhookDelivery(
                body: body, headers: headers, webhook: webhook, timeoutMilliseconds: Self.timeout
            ).perform()
            waiting.withLock { $0 -= 1 }
            report(attempt)
            completion(attempt.outcome)
        }
    }
}
