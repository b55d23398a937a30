internal import CountersignCore
package import GatewayModel
package import GatewayStorage

/// Reads events from the log. The progress of endpoints is stored with their deliveries.
package struct LoggedEvents: WebhookEvents {
    private let log: any EventLog
    private let store: DeliveryStore

    package init(log: any EventLog, store: DeliveryStore) {
        self.log = log
        self.store = store
    }

    package func committed(of endpoint: WebhookEndpoint) throws -> Int64 {
        try store.progress()[endpoint.id]?.committed ?? endpoint.startSequence
    }

    package func commit(_ sequence: Int64, isAfterGap: Bool, of endpoint: WebhookEndpoint) throws {
        var progress = DeliveryProgress(committed: sequence)
        progress.isAfterGap = isAfterGap
        progress.revision = endpoint.revision
        try store.keep(progress, of: endpoint.id, after: nil)
    }

    package func read(
        for endpoint: WebhookEndpoint, after sequence: Int64, through: Int64?, isReplay: Bool,
        isAfterGap: Bool
    ) throws -> WebhookReading {
        let filter = EventFilter(
            verdict: endpoint.verdictFilter, type: endpoint.type, name: endpoint.name,
            userID: endpoint.userID)
        let stretch = try log.follow(
            EventFollowing(appID: endpoint.appID, filter: filter), after: sequence, limit: endpoint.batchSize)
        let positions = try log.positions()
        return WebhookReading(
            stretch.events, of: endpoint.appID, isReplay: isReplay, reached: stretch.reached,
            hasMore: stretch.hasMore,
            // Starting with the oldest stored event misses nothing.
            hasMissed: isAfterGap || stretch.hasMissed && sequence > 0, through: through
        ) { positions.text(after: $0, in: endpoint.appID) }
    }
}
