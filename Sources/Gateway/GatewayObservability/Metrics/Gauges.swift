package import CountersignCore
package import GatewayModel

/// The current values of gauges.
package struct Gauges: Sendable {
    /// The event store's queue and disk usage.
    package var store: StoreLoad
    package var connections: Int
    /// The token cache.
    package var tokens: Tokens
    /// Log lines dropped so far.
    package var droppedLogLines: Int
    /// Requests missing from the dashboard's counts so far.
    package var uncountedRequests: Int
    /// Spans dropped so far; nil when tracing is disabled.
    package var droppedSpans: Int?
    /// The lag of each consumer.
    package var consumers: [Consumer]

    /// The size of the token cache and its hit counts.
    package struct Tokens: Sendable {
        let remembered: Int
        let bytes: Int
        let hits: Int
        let misses: Int

        package init(remembered: Int, bytes: Int, hits: Int, misses: Int) {
            self.remembered = remembered
            self.bytes = bytes
            self.hits = hits
            self.misses = misses
        }
    }

    package struct Consumer: Sendable {
        let appID: String
        let name: String
        let lag: Int
        /// Seconds since the oldest unconfirmed event was received; 0 if all events are confirmed.
        let oldestUnreadSeconds: Double
        let hasMissed: Bool

        package init(appID: String, name: String, lag: Int, oldestUnreadSeconds: Double, hasMissed: Bool) {
            self.appID = appID
            self.name = name
            self.lag = lag
            self.oldestUnreadSeconds = oldestUnreadSeconds
            self.hasMissed = hasMissed
        }
    }

    /// The lag of each webhook.
    package var webhooks: [WebhookLag]
    /// Webhook delivery attempts so far, by app.
    package var webhookAttempts: BytewiseDictionary<(delivered: Int, failed: Int)>

    /// The progress of each sink.
    package var sinks: [Sink]

    /// Nil without a shared database.
    package var cluster: ClusterGauges?

    package init(
        store: StoreLoad, connections: Int, tokens: Tokens, droppedLogLines: Int,
        uncountedRequests: Int = 0, droppedSpans: Int? = nil,
        consumers: [Consumer] = [],
        webhooks: [WebhookLag] = [], webhookAttempts: BytewiseDictionary<(delivered: Int, failed: Int)> = [:],
        sinks: [Sink] = [], cluster: ClusterGauges? = nil
    ) {
        self.cluster = cluster
        self.sinks = sinks
        self.consumers = consumers
        self.store = store
        self.connections = connections
        self.tokens = tokens
        self.droppedLogLines = droppedLogLines
        self.uncountedRequests = uncountedRequests
        self.droppedSpans = droppedSpans
        self.webhooks = webhooks
        self.webhookAttempts = webhookAttempts
    }

    /// The lag of a webhook behind the newest event of its app.
    package struct WebhookLag: Sendable {
        let appID: String
        let id: String
        let seconds: Double

        package init(appID: String, id: String, seconds: Double) {
            self.appID = appID
            self.id = id
            self.seconds = seconds
        }
    }

    /// The progress and state of a sink.
    package struct Sink: Sendable {
        let appID: String
        let name: String
        let lag: Int
        /// Seconds since the oldest unpublished event was received; 0 if all events are published.
        let oldestUnreadSeconds: Double
        /// Messages accepted by the stream since the gateway started.
        let published: Int
        let isFailing: Bool

        package init(
            appID: String, name: String, lag: Int, oldestUnreadSeconds: Double, published: Int,
            isFailing: Bool
        ) {
            self.appID = appID
            self.name = name
            self.lag = lag
            self.oldestUnreadSeconds = oldestUnreadSeconds
            self.published = published
            self.isFailing = isFailing
        }
    }

    /// The gauges without labels. A nil value writes no sample.
    var all: [(name: String, help: String, value: Double?)] {
        [
            ("countersign_connections", "Open connections.", Double(connections)),
            (
                "countersign_store_queue_depth", "Batches waiting for the disk.",
                Double(store.waitingBatches)
            ),
            ("countersign_store_queue_bytes", "Bytes waiting for the disk.", Double(store.waitingBytes)),
            ("countersign_store_bytes", "Bytes of the event database and its log.", Double(store.fileBytes)),
            (
                "countersign_disk_free_bytes", "Free bytes on the disk that holds the events.",
                store.freeBytes.map { Double($0) }
            ),
            (
                "countersign_remembered_tokens",
                "Cached tokens, whose signatures need not be verified again.",
                Double(tokens.remembered)
            ),
            (
                "countersign_remembered_tokens_bytes", "Bytes that the cached tokens take.",
                Double(tokens.bytes)
            ),
        ]
    }
}
