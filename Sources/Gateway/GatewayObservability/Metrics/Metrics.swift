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

    package func text(_ gauges: Gauges) -> [UInt8] { PrometheusText(families(gauges)).bytes }

    func families(_ gauges: Gauges) -> [MetricFamily] {
        let state = state.withLock { $0 }
        return Self.requests(state) + Self.events(state) + Self.commits(state) + gauges.families + [
            MetricFamily(
                "countersign_start_time_seconds", .gauge, "When the gateway started, in seconds since 1970.",
                started),
            MetricFamily(
                "countersign_build_info", .gauge, "Always 1; the version is a label.",
                [([("version", countersignVersion)], 1)]),
        ]
    }

    private static func requests(_ state: State) -> [MetricFamily] {
        let requests = state.requests.sorted { order($0.key) < order($1.key) }
        let durations = BytewiseDictionary(
            requests.map { ($0.key.route ?? unmatched, $0.value.duration) }, uniquingKeysWith: sum)
        return [
            MetricFamily(
                "countersign_requests_total", .counter, "Requests by app, endpoint and class of status.",
                requests.map { key, series in
                    (
                        [
                            ("app", key.appID ?? ""), ("route", key.route ?? unmatched),
                            ("status", key.statusClass == 0 ? "none" : "\(key.statusClass)xx"),
                        ], Double(series.count)
                    )
                }),
            MetricFamily(
                "countersign_request_duration_seconds",
                "Time from the request line to the answer, by endpoint.",
                histograms: durations.sorted(by: { $0.key < $1.key }).map { ([("route", $0.key)], $0.value) }),
            MetricFamily(
                "countersign_auth_results_total", .counter,
                "Verdicts of admission by app, enforcement, result and reason.",
                state.auth.sorted(by: { order($0.key) < order($1.key) }).map { key, count in
                    (
                        [
                            ("app", key.appID ?? ""), ("mode", key.enforcement?.rawValue ?? ""),
                            ("result", key.verdict.rawValue), ("reason", key.code?.reason ?? ""),
                        ], Double(count)
                    )
                }),
        ]
    }

    private static func events(_ state: State) -> [MetricFamily] {
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
        return [
            MetricFamily(
                "countersign_events_total", .counter, "Events by app and outcome.",
                byApp.sorted(by: { $0.key < $1.key }).flatMap { appID, counts in
                    [
                        ([("app", appID), ("outcome", "accepted")], Double(counts.accepted)),
                        ([("app", appID), ("outcome", "duplicate")], Double(counts.duplicates)),
                        ([("app", appID), ("outcome", "rejected")], Double(counts.rejected)),
                    ]
                }),
            MetricFamily(
                "countersign_batch_events", "Accepted events and duplicates of a request.",
                histograms: [([], batch)]),
        ]
    }

    private static func commits(_ state: State) -> [MetricFamily] {
        [
            MetricFamily(
                "countersign_commit_duration_seconds",
                "Duration of a commit, until the disk has confirmed it.",
                histograms: [([], state.commitSeconds)]),
            MetricFamily(
                "countersign_commit_events", "Events per commit.", histograms: [([], state.commitEvents)]),
            MetricFamily(
                "countersign_failed_commits_total", .counter, "Commits that stored nothing, by reason.",
                state.failedCommits.sorted(by: { $0.key < $1.key }).map {
                    ([("reason", $0.key)], Double($0.value))
                }),
        ]
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
