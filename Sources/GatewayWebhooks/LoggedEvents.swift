package import GatewayModel
package import GatewayStorage

/// Events as the log has them; how far each endpoint has come is kept beside its deliveries.
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

    package func commit(_ sequence: Int64, of endpoint: WebhookEndpoint) throws {
        try store.keep(DeliveryProgress(committed: sequence), of: endpoint.id, after: nil)
    }

    package func read(
        for endpoint: WebhookEndpoint, after sequence: Int64, through: Int64?, isReplay: Bool
    ) throws -> WebhookReading {
        var query = EventQuery(appID: endpoint.appID)
        // What is stored after this is looked at the next time.
        let newest = try log.newest(query, before: nil, limit: 1).events.first?.sequence ?? 0
        query.verdict = endpoint.verdictFilter
        query.type = endpoint.type
        query.name = endpoint.name
        query.userID = endpoint.userID
        let page = try log.oldest(query, after: sequence, limit: endpoint.batchSize)
        let last = page.events.last?.sequence ?? sequence
        return WebhookReading(
            page.events, of: endpoint.appID, isReplay: isReplay,
            reached: page.hasMore ? last : max(last, newest), hasMore: page.hasMore, through: through)
    }
}
