internal import CountersignCore
package import Foundation
package import GatewayModel
package import GatewayStorage

/// All webhooks, as configured in the control database.
package struct Webhooks: WayKind {
    package let kind = EventConsumerID.Kind.webhook
    /// Pauses after five days of failures, longer than the example schedule of Standard Webhooks.
    package let retry = Retry(first: 5, patience: 5 * 86_400_000)
    private let directory: AppDirectory
    private let output: WebhookOutput
    private let duty: @Sendable () -> Bool

    /// `report` is called when an attempt could not be recorded.
    package init(
        _ directory: AppDirectory, _ attempts: DeliveryStore, now: @escaping @Sendable () -> Date,
        hasDuty: @escaping @Sendable () -> Bool = { true },
        report: @escaping @Sendable (WebhookEndpoint, any Error) -> Void = { _, _ in },
        send: @escaping WebhookOutput.Send
    ) {
        self.directory = directory
        output = WebhookOutput(attempts: attempts, send: send, now: now, report: report)
        duty = hasDuty
    }

    package var hasDuty: Bool { duty() }
    package var counts: WebhookCounts { output.counts }

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

    package func open(_ route: DeliveryRoute) throws -> any Way {
        guard let endpoint = route.settings as? WebhookEndpoint else {
            throw GatewayError(.invalid, "\(route.id.name) is not a webhook")
        }
        return WebhookWay(endpoint, output)
    }

    package func change(_ way: any Way, to route: DeliveryRoute) {
        if let endpoint = route.settings as? WebhookEndpoint { (way as? WebhookWay)?.change(endpoint) }
    }

    package func earlierProgress() throws -> [EventConsumerID: DeliveryProgress] {
        let earlier = try output.attempts.earlierProgress()
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
        try output.attempts.sweep(keeping: BytewiseSet(names + alerts), at: now)
    }
}
