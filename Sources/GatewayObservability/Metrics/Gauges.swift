package import CountersignCore
package import GatewayModel

/// What `/metrics` measures at the moment of asking.
package struct Gauges: Sendable {
    /// What waits for the disk and what lies on it.
    package var store: StoreLoad
    /// Open connections.
    package var connections: Int
    /// Tokens whose signature need not be verified again.
    package var tokens: Tokens
    /// Log lines that were dropped so far.
    package var droppedLogLines: Int
    /// Requests so far that are missing from the dashboard's counts.
    package var uncountedRequests: Int
    /// Spans that were not exported; nil where none are recorded.
    package var droppedSpans: Int?
    /// How far consumers of events are behind.
    package var consumers: [Consumer]

    /// What is remembered of tokens, and how often that saved a verification.
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
        /// Seconds since the oldest event that it has not confirmed was received; 0 when there is none.
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

    /// How far each webhook is behind.
    package var webhooks: [WebhookLag]
    /// Attempts to deliver to webhooks so far, by app.
    package var webhookAttempts: BytewiseDictionary<(delivered: Int, failed: Int)>

    /// How far each sink has come.
    package var sinks: [Sink]

    /// Nil where a gateway has its storage alone.
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

    /// How far a webhook is behind the newest event of its app.
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

    /// How far a sink has come, and whether it works.
    package struct Sink: Sendable {
        let appID: String
        let name: String
        let lag: Int
        /// Seconds since the oldest event that is not in its stream was received; 0 when there is none.
        let oldestUnreadSeconds: Double
        /// Messages that its stream has taken since the gateway started.
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

    /// Without a value there is no sample.
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
