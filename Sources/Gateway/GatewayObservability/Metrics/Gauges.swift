package import CountersignCore
package import GatewayModel

package struct Gauges: Sendable {
    /// `events` is the number of undelivered events. `seconds` is the age of the oldest such event; 0 without one.
    package typealias Lag = (id: EventConsumerID, events: Int, seconds: Double, gap: EventGap)
    /// `events` is the number of events accepted since this gateway began to deliver to the receiver.
    package typealias Way = (id: EventConsumerID, events: Int, isFailing: Bool)

    let store: StoreLoad
    let connections: Int
    let tokens: (remembered: Int, bytes: Int, hits: Int, misses: Int)
    let droppedLogLines: Int
    let uncountedRequests: Int
    /// Spans dropped so far; nil when tracing is disabled.
    let droppedSpans: Int?
    /// The lag of consumers, webhooks, streams and event files.
    let lags: [Lag]
    /// Webhook delivery attempts so far, by app.
    let webhookAttempts: BytewiseDictionary<(delivered: Int, failed: Int)>
    let ways: [Way]
    /// Nil without a shared database.
    let cluster: ClusterGauges?

    package init(
        store: StoreLoad, connections: Int, tokens: (remembered: Int, bytes: Int, hits: Int, misses: Int),
        droppedLogLines: Int, uncountedRequests: Int = 0, droppedSpans: Int? = nil,
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

    var families: [MetricFamily] { own + waysOut + ClusterGauges.families(cluster) }

    private var own: [MetricFamily] {
        [
            MetricFamily("countersign_connections", .gauge, "Open connections.", Double(connections)),
            MetricFamily(
                "countersign_store_queue_depth", .gauge, "Batches waiting for the disk.",
                Double(store.waitingBatches)),
            MetricFamily(
                "countersign_store_queue_bytes", .gauge, "Bytes waiting for the disk.",
                Double(store.waitingBytes)),
            MetricFamily(
                "countersign_store_bytes", .gauge, "Bytes of the event database and its log.",
                Double(store.fileBytes)),
            MetricFamily(
                "countersign_disk_free_bytes", .gauge, "Free bytes on the disk that holds the events.",
                store.freeBytes.map { Double($0) }),
            MetricFamily(
                "countersign_remembered_tokens", .gauge,
                "Cached tokens, whose signatures need not be verified again.", Double(tokens.remembered)),
            MetricFamily(
                "countersign_remembered_tokens_bytes", .gauge, "Bytes that the cached tokens take.",
                Double(tokens.bytes)),
            MetricFamily(
                "countersign_token_lookups_total", .counter,
                "Lookups of tokens in the cache. After a miss the token is parsed and verified.",
                [([("result", "hit")], Double(tokens.hits)), ([("result", "miss")], Double(tokens.misses))]),
            MetricFamily(
                "countersign_log_dropped_total", .counter,
                "Log lines dropped because the log's reader was too slow.", Double(droppedLogLines)),
            MetricFamily(
                "countersign_analytics_dropped_total", .counter,
                "Requests missing in the dashboard's counts: its database could not be written for long.",
                Double(uncountedRequests)),
            MetricFamily(
                "countersign_spans_dropped_total", .counter,
                "Spans that were not exported: too many were waiting, or the collector rejected them.",
                droppedSpans.map { Double($0) }),
        ]
    }

    private var waysOut: [MetricFamily] {
        let attempts = webhookAttempts.sorted(by: { $0.key < $1.key }).flatMap {
            appID, attempts -> [(MetricFamily.Labels, Double)] in
            [
                ([("app", appID), ("result", "delivered")], Double(attempts.delivered)),
                ([("app", appID), ("result", "failed")], Double(attempts.failed)),
            ]
        }
        let events = lags.map { ($0.id, Double($0.events)) }
        let seconds = lags.map { ($0.id, $0.seconds) }
        let gaps = lags.map { ($0.id, $0.gap.isOpen ? 1.0 : 0) }
        let accepted = ways.map { ($0.id, Double($0.events)) }
        let failing = ways.map { ($0.id, $0.isFailing ? 1.0 : 0) }
        var families = [
            MetricFamily(
                "countersign_webhook_attempts_total", .counter,
                "Delivery attempts to webhooks, by app and result.", attempts),
            family(
                .pull, "consumer", "oldest_unread_seconds",
                "Age of the oldest event that a consumer has not confirmed.", seconds),
        ]
        for kind in EventConsumerID.Kind.allCases {
            // Earlier versions called a stream a sink.
            for noun in kind == .stream ? [kind.noun, "sink"] : [kind.noun] {
                families += [
                    family(kind, noun, "lag_events", "Events after the position, ignoring filters.", events),
                    family(kind, noun, "lag_seconds", "Age of the oldest event after the position.", seconds),
                    family(
                        kind, noun, "events_missed",
                        "1 after unread events were deleted, until a later one is accepted.", gaps),
                ]
                if kind != .pull {
                    families.append(family(kind, noun, "failing", "1 while deliveries fail.", failing))
                }
                if kind == .stream {
                    families.append(
                        family(
                            kind, noun, "published_total",
                            "Events that a stream has accepted since the start.", accepted, as: .counter))
                }
            }
        }
        return families
    }

    /// A metric of consumers of one kind. `noun` is part of the metric's name, and the name of a label.
    private func family(
        _ kind: EventConsumerID.Kind, _ noun: String, _ suffix: String, _ help: String,
        _ values: [(EventConsumerID, Double)], as metric: MetricFamily.Kind = .gauge
    ) -> MetricFamily {
        MetricFamily(
            "countersign_\(noun)_\(suffix)", metric, help,
            values.filter { $0.0.kind == kind }.map { id, value in
                ([("app", id.appID), (noun, id.name)], value)
            })
    }
}
