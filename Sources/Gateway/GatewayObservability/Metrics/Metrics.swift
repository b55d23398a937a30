package import CountersignCore
internal import Foundation
package import GatewayModel

/// Counts requests and commits, for Prometheus and OTLP. Labels come from fixed sets; client data never
/// becomes a label. A single lock, held for a fraction of a microsecond, is cheaper than shards.
package final class Metrics: GatewayObserver {
    private struct RequestKey: Hashable {
        let appID: String?
        let route: String?
        /// The first digit of the status, such as 2 for 200 to 299; 0 without a response.
        let statusClass: Int
    }

    private struct RequestSeries {
        var duration = Histogram.seconds
        var accepted = 0
        var duplicates = 0
        var rejected = 0
        var batch = Histogram.sizes

        var count: Int { duration.counts.reduce(0, +) }
    }

    private struct AuthKey: Hashable {
        let appID: String?
        let enforcement: Enforcement?
        let verdict: VerdictKind
        let code: AuthErrorCode?
    }

    private struct State {
        var requests: [RequestKey: RequestSeries] = [:]
        var auth: [AuthKey: Int] = [:]
        /// The series of the last request, usually also of the next. The index is valid until a series is
        /// added or removed.
        var last: (key: RequestKey, at: Dictionary<RequestKey, RequestSeries>.Index)?
        var lastAuth: (key: AuthKey, at: Dictionary<AuthKey, Int>.Index)?
        var commitSeconds = Histogram.seconds
        var commitEvents = Histogram.sizes
        var failedCommits: BytewiseDictionary<Int> = [:]
    }

    private let state = Lock(State())
    /// Seconds since 1970.
    let started = Date().timeIntervalSince1970

    package init() {}

    package func requestEnded(_ record: RequestRecord) {
        state.withLock { state in
            let series = Self.series(of: record, &state)
            Self.count(record, in: &state.requests.values[series])
            guard let verdict = record.context.verdict else { return }
            let verdicts = Self.verdicts(of: record, verdict, &state)
            state.auth.values[verdicts] += 1
        }
    }

    private static func series(
        of record: RequestRecord, _ state: inout State
    ) -> Dictionary<RequestKey, RequestSeries>.Index {
        let statusClass = record.status.map { $0 / 100 } ?? 0
        if let (key, index) = state.last, key.statusClass == statusClass,
            key.route == record.context.route, key.appID == record.context.appID
        {
            return index
        }
        let key = RequestKey(
            appID: record.context.appID, route: record.context.route, statusClass: statusClass)
        if state.requests[key] == nil { state.requests[key] = RequestSeries() }
        guard let index = state.requests.index(forKey: key) else { preconditionFailure("it was added above") }
        state.last = (key, index)
        return index
    }

    private static func verdicts(
        of record: RequestRecord, _ verdict: VerdictKind, _ state: inout State
    ) -> Dictionary<AuthKey, Int>.Index {
        if let (key, index) = state.lastAuth, key.verdict == verdict,
            key.enforcement == record.context.enforcement, key.code == record.context.authCode,
            key.appID == record.context.appID
        {
            return index
        }
        let key = AuthKey(
            appID: record.context.appID, enforcement: record.context.enforcement, verdict: verdict,
            code: record.context.authCode)
        if state.auth[key] == nil { state.auth[key] = 0 }
        guard let index = state.auth.index(forKey: key) else { preconditionFailure("it was added above") }
        state.lastAuth = (key, index)
        return index
    }

    /// Drops the series of deleted apps. A request in progress may create a series again.
    package func forget(_ appIDs: BytewiseSet) {
        state.withLock { state in
            state.requests = state.requests.filter { $0.key.appID.map(appIDs.contains) != true }
            state.auth = state.auth.filter { $0.key.appID.map(appIDs.contains) != true }
            (state.last, state.lastAuth) = (nil, nil)
        }
    }

    package func commitEnded(_ record: CommitRecord) {
        state.withLock { state in
            if let failure = record.failure {
                state.failedCommits[failure.code, default: 0] += 1
            } else {
                state.commitSeconds.observe(record.seconds)
                state.commitEvents.observe(Double(record.events))
            }
        }
    }

    private static func count(_ record: RequestRecord, in series: inout RequestSeries) {
        series.duration.observe(record.seconds)
        let stored = record.context.accepted + record.context.duplicates
        if stored > 0 { series.batch.observe(Double(stored)) }
        series.accepted += record.context.accepted
        series.duplicates += record.context.duplicates
        series.rejected += record.context.rejected
    }

    package func text(_ gauges: Gauges) -> [UInt8] {
        var text = PrometheusText()
        write(gauges, to: &text)
        return text.bytes
    }

    func write(_ gauges: Gauges, to text: inout some MetricWriter) {
        let state = state.withLock { $0 }
        Self.writeRequests(state, to: &text)
        Self.writeEvents(state, to: &text)
        Self.writeCommits(state, to: &text)
        Self.writeWebhookAttempts(gauges, to: &text)
        Self.writeWays(gauges, to: &text)
        for gauge in gauges.all {
            text.begin(gauge.name, .gauge, help: gauge.help)
            if let value = gauge.value { text.sample(value) }
        }
        text.begin(
            "countersign_token_lookups_total", .counter,
            help: "Lookups of tokens in the cache. After a miss the token is parsed and verified.")
        text.sample([("result", "hit")], Double(gauges.tokens.hits))
        text.sample([("result", "miss")], Double(gauges.tokens.misses))
        ClusterGauges.write(gauges.cluster, to: &text)
        text.begin(
            "countersign_log_dropped_total", .counter,
            help: "Log lines dropped because the log's reader was too slow.")
        text.sample(Double(gauges.droppedLogLines))
        text.begin(
            "countersign_analytics_dropped_total", .counter,
            help: "Requests that the dashboard does not count: its database could not be written for long.")
        text.sample(Double(gauges.uncountedRequests))
        text.begin(
            "countersign_spans_dropped_total", .counter,
            help: "Spans that were not exported: too many were waiting, or the collector rejected them.")
        if let spans = gauges.droppedSpans { text.sample(Double(spans)) }
        text.begin(
            "countersign_start_time_seconds", .gauge, help: "When the gateway started, in seconds since 1970."
        )
        text.sample(started)
        text.begin("countersign_build_info", .gauge, help: "Always 1; the version is a label.")
        text.sample([("version", countersignVersion)], 1)
    }

    private static func writeRequests(_ state: State, to text: inout some MetricWriter) {
        let requests = state.requests.sorted { order($0.key) < order($1.key) }
        text.begin(
            "countersign_requests_total", .counter,
            help: "Requests by app, endpoint and class of status.")
        for (key, series) in requests {
            text.sample(
                [
                    ("app", key.appID ?? ""), ("route", key.route ?? unmatched),
                    ("status", key.statusClass == 0 ? "none" : "\(key.statusClass)xx"),
                ], Double(series.count))
        }
        text.begin(
            "countersign_request_duration_seconds", .histogram,
            help: "Time from the request line to the answer, by endpoint.")
        let byRoute = BytewiseDictionary(
            requests.map { ($0.key.route ?? unmatched, $0.value.duration) }, uniquingKeysWith: sum)
        for (route, histogram) in byRoute.sorted(by: { $0.key < $1.key }) {
            text.samples(histogram, [("route", route)])
        }
        text.begin(
            "countersign_auth_results_total", .counter,
            help: "Verdicts of admission by app, enforcement, result and reason.")
        for (key, count) in state.auth.sorted(by: { order($0.key) < order($1.key) }) {
            text.sample(
                [
                    ("app", key.appID ?? ""), ("mode", key.enforcement?.rawValue ?? ""),
                    ("result", key.verdict.rawValue), ("reason", key.code?.reason ?? ""),
                ], Double(count))
        }
    }

    private static func writeEvents(_ state: State, to text: inout some MetricWriter) {
        text.begin("countersign_events_total", .counter, help: "Events by app and outcome.")
        var byApp: BytewiseDictionary<(accepted: Int, duplicates: Int, rejected: Int)> = [:]
        var batch = Histogram.sizes
        for (key, series) in state.requests {
            batch.add(series.batch)
            guard let appID = key.appID else { continue }
            let before = byApp[appID] ?? (0, 0, 0)
            byApp[appID] = (
                before.accepted + series.accepted, before.duplicates + series.duplicates,
                before.rejected + series.rejected
            )
        }
        for (appID, counts) in byApp.sorted(by: { $0.key < $1.key }) {
            text.sample([("app", appID), ("outcome", "accepted")], Double(counts.accepted))
            text.sample([("app", appID), ("outcome", "duplicate")], Double(counts.duplicates))
            text.sample([("app", appID), ("outcome", "rejected")], Double(counts.rejected))
        }
        text.begin(
            "countersign_batch_events", .histogram,
            help: "Events per request, as handed to the store."
        )
        text.samples(batch)
    }

    private static func writeCommits(_ state: State, to text: inout some MetricWriter) {
        text.begin(
            "countersign_commit_duration_seconds", .histogram,
            help: "Duration of a commit, until the disk has confirmed it.")
        text.samples(state.commitSeconds)
        text.begin("countersign_commit_events", .histogram, help: "Events per commit.")
        text.samples(state.commitEvents)
        text.begin(
            "countersign_failed_commits_total", .counter, help: "Commits that stored nothing, by reason.")
        for (reason, count) in state.failedCommits.sorted(by: { $0.key < $1.key }) {
            text.sample([("reason", reason)], Double(count))
        }
    }

    private static func writeWebhookAttempts(_ gauges: Gauges, to text: inout some MetricWriter) {
        text.begin(
            "countersign_webhook_attempts_total", .counter,
            help: "Delivery attempts to webhooks, by app and result.")
        for (appID, attempts) in gauges.webhookAttempts.sorted(by: { $0.key < $1.key }) {
            text.sample([("app", appID), ("result", "delivered")], Double(attempts.delivered))
            text.sample([("app", appID), ("result", "failed")], Double(attempts.failed))
        }
    }

    /// A metric of all webhooks or of all streams. `noun` is part of its name, and the name of its label.
    private struct WayMetric<Value> {
        let kind: EventConsumerID.Kind
        let noun: String
        let suffix: String
        var metricKind = MetricKind.gauge
        let help: String
        let value: (Value) -> Double

        func write(_ values: [Value], _ id: (Value) -> EventConsumerID, to text: inout some MetricWriter) {
            text.begin("countersign_\(noun)_\(suffix)", metricKind, help: help)
            for item in values where id(item).kind == kind {
                text.sample([("app", id(item).appID), (noun, id(item).name)], value(item))
            }
        }
    }

    private static func writeWays(_ gauges: Gauges, to text: inout some MetricWriter) {
        var lags: [WayMetric<Gauges.Lag>] = [
            .init(
                kind: .webhook, noun: "webhook", suffix: "lag_seconds",
                help: "Age of the oldest event after a webhook's position.", value: \.seconds)
        ]
        var ways: [WayMetric<Gauges.Way>] = []
        // Earlier versions called a stream a sink.
        for noun in ["stream", "sink"] {
            lags += [
                .init(
                    kind: .stream, noun: noun, suffix: "lag_events",
                    help: "Events that are not in a stream yet.", value: { Double($0.events) }),
                .init(
                    kind: .stream, noun: noun, suffix: "lag_seconds",
                    help: "Age of the oldest event that is not in a stream yet.", value: \.seconds),
            ]
            ways += [
                .init(
                    kind: .stream, noun: noun, suffix: "published_total", metricKind: .counter,
                    help: "Events that a stream has accepted since the start.", value: { Double($0.events) }),
                .init(
                    kind: .stream, noun: noun, suffix: "failing",
                    help: "1 while nothing can be published to a stream.", value: { $0.isFailing ? 1 : 0 }),
            ]
        }
        lags += [
            .init(
                kind: .file, noun: "files", suffix: "lag_events",
                help: "Events that are in no hourly file yet.", value: { Double($0.events) }),
            .init(
                kind: .file, noun: "files", suffix: "lag_seconds",
                help: "Age of the oldest event that is in no hourly file yet.", value: \.seconds),
        ]
        ways.append(
            .init(
                kind: .file, noun: "files", suffix: "failing",
                help: "1 while no hourly file can be written.", value: { $0.isFailing ? 1 : 0 }))
        lags += [
            .init(
                kind: .pull, noun: "consumer", suffix: "lag_events",
                help: "Events that a consumer has not confirmed.", value: { Double($0.events) }),
            .init(
                kind: .pull, noun: "consumer", suffix: "oldest_unread_seconds",
                help: "Age of the oldest event that a consumer has not confirmed.", value: \.seconds),
            .init(
                kind: .pull, noun: "consumer", suffix: "events_missed",
                help: "1 while events after a consumer's position were deleted unread.",
                value: { $0.gap.isOpen ? 1 : 0 }),
        ]
        for metric in lags { metric.write(gauges.lags, \.id, to: &text) }
        for metric in ways { metric.write(gauges.ways, \.id, to: &text) }
    }

    private static let unmatched = "unmatched"

    private static func sum(_ first: Histogram, _ second: Histogram) -> Histogram {
        var sum = first
        sum.add(second)
        return sum
    }

    private static func order(_ key: RequestKey) -> (String, String, Int) {
        (key.appID ?? "", key.route ?? unmatched, key.statusClass)
    }

    private static func order(_ key: AuthKey) -> (String, String, String, Int) {
        (
            key.appID ?? "", key.enforcement?.rawValue ?? "", key.verdict.rawValue, key.code?.rawValue ?? 0
        )
    }
}
