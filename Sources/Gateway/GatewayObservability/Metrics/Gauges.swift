package import CountersignCore
package import GatewayModel

package struct Gauges: Sendable {
    package var store: StoreLoad
    package var connections: Int
    package var tokens: Tokens
    package var droppedLogLines: Int
    package var uncountedRequests: Int
    /// Spans dropped so far; nil when tracing is disabled.
    package var droppedSpans: Int?
    /// The lag of each way out of the event log.
    package var lags: [Lag]

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

    package struct Lag: Sendable {
        let id: EventConsumerID
        /// Undelivered events.
        let events: Int
        /// Seconds since the oldest of them was received; 0 without one.
        let seconds: Double
        let gap: EventGap

        package init(id: EventConsumerID, events: Int, seconds: Double, gap: EventGap) {
            self.id = id
            self.events = events
            self.seconds = seconds
            self.gap = gap
        }
    }

    package struct Way: Sendable {
        let id: EventConsumerID
        /// Events accepted since the gateway started.
        let events: Int
        let isFailing: Bool

        package init(id: EventConsumerID, events: Int, isFailing: Bool) {
            self.id = id
            self.events = events
            self.isFailing = isFailing
        }
    }

    /// Webhook delivery attempts so far, by app.
    package var webhookAttempts: BytewiseDictionary<(delivered: Int, failed: Int)>

    package var ways: [Way]

    /// Nil without a shared database.
    package var cluster: ClusterGauges?

    package init(
        store: StoreLoad, connections: Int, tokens: Tokens, droppedLogLines: Int,
        uncountedRequests: Int = 0, droppedSpans: Int? = nil,
        lags: [Lag] = [], webhookAttempts: BytewiseDictionary<(delivered: Int, failed: Int)> = [:],
        ways: [Way] = [], cluster: ClusterGauges? = nil
    ) {
        self.cluster = cluster
        self.ways = ways
        self.lags = lags
        self.store = store
        self.connections = connections
        self.tokens = tokens
        self.droppedLogLines = droppedLogLines
        self.uncountedRequests = uncountedRequests
        self.droppedSpans = droppedSpans
        self.webhookAttempts = webhookAttempts
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
