internal import CountersignCore
package import Foundation
package import GatewayModel

package final class WebhookSender: Sendable {
    private static let maximumRunning = 64

    private let pool: OutboundPool
    private let timeoutMilliseconds: Int
    private let now: @Sendable () -> Date
    /// Runs `report` and `completion`, because the pool's thread must not block.
    private let queue = OperationQueue()
    private let running = Lock(0)
    private let busy = DispatchGroup()

    /// `timeoutMilliseconds` is the time limit of a delivery.
    package init(
        on pool: OutboundPool, timeoutMilliseconds: Int = 10_000, now: @escaping @Sendable () -> Date
    ) {
        self.pool = pool
        self.timeoutMilliseconds = timeoutMilliseconds
        self.now = now
        queue.name = "webhooks"
        queue.maxConcurrentOperationCount = 4
    }

    /// The number of deliveries that may start now.
    package var freeSlots: Int { Self.maximumRunning - running.withLock { $0 } }

    package func waitUntilIdle() {
        busy.wait()
    }

    /// Attempts one delivery, then calls `report` and `completion` from any thread. If too many deliveries
    /// run, calls only `completion`. `trace` is the context of the request that caused the delivery.
    package func send(
        _ body: [UInt8], id: String, to webhook: PushWebhook, trace: TraceParent? = nil,
        report: @escaping @Sendable (WebhookAttempt) -> Void = { _ in },
        completion: @escaping @Sendable (WebhookOutcome) -> Void
    ) {
        let mayRun = running.withLock { running -> Bool in
            guard running < Self.maximumRunning else { return false }
            running += 1
            return true
        }
        guard mayRun else { return completion(.overloaded) }
        busy.enter()
        let timestamp = Int64(now().timeIntervalSince1970)
        var headers = WebhookSignature.headers(
            id: id, timestamp: timestamp, body: body, keys: [webhook.secret])
        if let trace { headers.append(("traceparent", trace.text)) }
        WebhookDelivery(
            body: body, headers: headers, webhook: webhook, timeoutMilliseconds: timeoutMilliseconds
        ).perform(on: pool) { [self] attempt in
            queue.addOperation { [self] in
                running.withLock { $0 -= 1 }
                report(attempt)
                completion(attempt.outcome)
                busy.leave()
            }
        }
    }
}
