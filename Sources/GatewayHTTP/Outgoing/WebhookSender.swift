internal import CCurl
internal import CountersignCore
package import Foundation
package import GatewayModel

/// Delivers to the webhooks of projects, on its own threads.
package final class WebhookSender: Sendable {
    /// How long a delivery may take, in milliseconds.
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

    /// Returns when nothing is being delivered.
    package func waitUntilIdle() {
        queue.waitUntilAllOperationsAreFinished()
    }

    /// Delivers once, and calls `completion` from any thread; `report` before, unless too many wait. The trace is that of
    /// the request which it is for.
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
            var headers = StandardWebhook.headers(
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
