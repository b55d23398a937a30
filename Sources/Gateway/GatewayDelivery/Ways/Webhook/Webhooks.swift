internal import CountersignCore
package import Foundation
package import GatewayHTTP
package import GatewayModel
package import GatewayStorage

/// All webhooks, as configured in the control database.
package struct Webhooks: WayKind {
    /// Sends one request, then calls `done` once. `isCancelled` returns true to cancel the request.
    package typealias Send =
        @Sendable (
            _ body: [UInt8], _ messageID: String, _ endpoint: WebhookEndpoint,
            _ isCancelled: @escaping @Sendable () -> Bool,
            _ done: @escaping @Sendable (WebhookAttempt) -> Void
        ) -> Void

    package let kind = EventConsumerID.Kind.webhook
    /// Pauses after five days of failures, longer than the example schedule of Standard Webhooks.
    package let retry = Retry(first: 5, patience: 5 * 86_400_000)
    package let hasDuty: @Sendable () -> Bool
    package let counts = WebhookCounts()
    private let directory: AppDirectory
    fileprivate let attempts: DeliveryStore
    fileprivate let now: @Sendable () -> Date
    fileprivate let send: Send
    /// Called when an attempt could not be recorded.
    fileprivate let report: @Sendable (WebhookEndpoint, any Error) -> Void

    package init(
        _ directory: AppDirectory, _ attempts: DeliveryStore, now: @escaping @Sendable () -> Date,
        hasDuty: @escaping @Sendable () -> Bool = { true },
        report: @escaping @Sendable (WebhookEndpoint, any Error) -> Void = { _, _ in },
        send: @escaping Send
    ) {
        self.directory = directory
        self.attempts = attempts
        self.now = now
        self.send = send
        self.report = report
        self.hasDuty = hasDuty
    }

    package func routes() throws -> [DeliveryRoute] {
        let requests = BytewiseDictionary(grouping: try directory.webhooks.requests(), by: \.wayName)
        return try directory.webhooks.all().map { endpoint in
            var route = DeliveryRoute(endpoint.consumer)
            route.filter = EventFilter(
                verdict: endpoint.verdictFilter, type: endpoint.type, name: endpoint.name,
                userID: endpoint.userID, claim: endpoint.claim.flatMap { ClaimFilter($0) })
            route.batchSize = endpoint.batchSize
            route.holdDays = endpoint.holdDays
            route.isPaused = endpoint.pause != nil
            route.revision = endpoint.revision
            route.start = endpoint.startSequence
            route.requests = requests[endpoint.id] ?? []
            route.settings = endpoint
            return route
        }
    }

    package func open(_ id: EventConsumerID) -> any Way { WebhookWay(self) }

    package func earlierProgress() throws -> [EventConsumerID: DeliveryProgress] {
        let earlier = try attempts.earlierProgress()
        let found = try directory.webhooks.all().compactMap { endpoint in
            earlier[endpoint.id].map { (endpoint.consumer, $0) }
        }
        return Dictionary(uniqueKeysWithValues: found)
    }

    package func pause(
        _ id: EventConsumerID, _ reason: WayPause.Reason, _ progress: DeliveryProgress,
        atMilliseconds now: Int64
    ) throws {
        let pause = WayPause(reason, by: "gateway", atMilliseconds: now)
        let failure = progress.failure
        let alert: JSONValue = [
            "type": "webhook.paused", "timestamp": .string(RFC3339.text(milliseconds: now)),
            "data": [
                "app": .string(id.appID), "webhook": .string(id.name),
                "reason": .string(reason.rawValue), "attempts": .integer(Int64(progress.failures)),
                "failing_since": progress.failingSinceMilliseconds.map {
                    .string(RFC3339.text(milliseconds: $0))
                } ?? .null,
                "status": (failure?.status).map { .integer(Int64($0)) } ?? .null,
                "error": (failure?.code).map { .string($0) } ?? .null,
            ],
        ]
        try directory.webhooks.setPause(pause, of: id.name, of: id.appID, alert: alert, at: now)
    }

    package func keep(_ request: DeliveryRequest, isOver: Bool) throws {
        if isOver {
            try directory.webhooks.remove(request)
        } else {
            try directory.webhooks.keep(request)
        }
    }

    package func sweep(keeping names: [String], atMilliseconds now: Int64) throws {
        let alerts = try directory.apps().map { DeliveryRecord.alerts(of: $0.id) }
        try attempts.sweep(keeping: BytewiseSet(names + alerts), at: now)
    }
}

/// Sends batches to one webhook, and records each attempt.
private final class WebhookWay: Way {
    /// 413 Content Too Large (RFC 9110, section 15.5.14).
    private static let tooLarge = 413
    /// 410 Gone (RFC 9110, section 15.5.11).
    private static let gone = 410

    private let webhooks: Webhooks
    private let isClosed = Lock(false)

    init(_ webhooks: Webhooks) { self.webhooks = webhooks }

    func close() { isClosed.withLock { $0 = true } }

    func accept(_ batch: DeliveryBatch, _ done: @escaping @Sendable (DeliveryAnswer) -> Void) {
        guard let endpoint = batch.route.settings as? WebhookEndpoint else {
            preconditionFailure("the settings are not those of a webhook")
        }
        let content = WebhookBatch(batch)
        let id: String
        do {
            id = try batch.identify(WebhookBatch.digest(of: content.body), content.scannedThrough)
        } catch {
            return done(.notTried)
        }
        let began = Milliseconds(webhooks.now()).count
        webhooks.send(content.body, id, endpoint, { [isClosed] in isClosed.withLock { $0 } }) {
            [webhooks] attempt in
            guard attempt.error != OutboundRequest.Failure.Code.cancelled.rawValue else {
                return done(.notTried)
            }
            webhooks.counts.add(endpoint.appID, isDelivered: attempt.error == nil)
            do {
                try webhooks.attempts.add(
                    DeliveryRecord(
                        attempt, of: endpoint.id, id, batch.kind.recorded, content, batch.attempt, at: began))
            } catch {
                // Only operators use the list of attempts, so a delivery without an entry in the list still counts.
                webhooks.report(endpoint, error)
            }
            done(Self.answer(to: attempt, content))
        }
    }

    private static func answer(to attempt: WebhookAttempt, _ content: WebhookBatch) -> DeliveryAnswer {
        guard let error = attempt.error else { return .delivered(through: content.scannedThrough) }
        if attempt.status == tooLarge, content.events > 1 {
            return .split(afterSeconds: attempt.retryAfterSeconds)
        }
        let failure = DeliveryFailure(error, attempt.reason, status: attempt.status)
        return attempt.status == gone
            ? .pause(.gone, failure) : .retry(failure, afterSeconds: attempt.retryAfterSeconds)
    }
}

extension DeliveryBatch.Kind {
    fileprivate var recorded: DeliveryRecord.Kind {
        switch self {
        case .events, .probe: .events
        case .replay: .replay
        case .test: .test
        }
    }
}
