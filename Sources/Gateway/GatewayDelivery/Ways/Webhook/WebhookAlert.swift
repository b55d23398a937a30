internal import CountersignCore
internal import GatewayModel

extension WebhookEndpoint.Pause {
    /// The alert about an endpoint that was paused automatically.
    func alert(
        of endpoint: WebhookEndpoint, _ progress: DeliveryProgress, _ record: DeliveryRecord?
    ) -> JSONValue {
        [
            "type": "webhook.paused", "timestamp": .string(RFC3339.text(milliseconds: atMilliseconds)),
            "data": [
                "app": .string(endpoint.appID), "webhook": .string(endpoint.id),
                "reason": .string(reason.rawValue), "attempts": .integer(Int64(progress.failures)),
                "failing_since": progress.failingSinceMilliseconds.map {
                    .string(RFC3339.text(milliseconds: $0))
                } ?? .null,
                "status": (record?.status).map { .integer(Int64($0)) } ?? .null,
                "error": (record?.error).map { .string($0) } ?? .null,
            ],
        ]
    }
}
