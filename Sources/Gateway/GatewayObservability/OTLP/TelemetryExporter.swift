internal import CountersignCore
internal import Foundation
package import GatewayModel

/// Exports traces and metrics to a collector with OTLP over HTTP in JSON, on its own thread. A slow collector
/// does not affect requests: the queue is bounded, and excess spans are dropped and counted.
package final class TelemetryExporter: GatewayObserver, @unchecked Sendable {
    /// Posts a body to a path below the collector's URL. Polls `isCancelled` once a second.
    package typealias Post =
        @Sendable (_ path: String, _ body: [UInt8], _ isCancelled: @escaping @Sendable () -> Bool) ->
        OTLPAnswer

    private let resource: OTLPResource
    private let metrics: Metrics
    private let log: GatewayLog
    private let post: Post
    // `condition` guards the properties below.
    private let condition = Condition()
    private var schedule = ExportSchedule(at: TelemetryExporter.now)
    private var isAbandoned = false
    private var hasEnded = true
    /// The paths whose current failure was logged.
    private var failing: BytewiseSet = []

    package init(resource: OTLPResource, metrics: Metrics, log: GatewayLog, post: @escaping Post) {
        self.resource = resource
        self.metrics = metrics
        self.log = log
        self.post = post
    }

    package func requestEnded(_ record: RequestRecord) {
        guard let request = TracedRequest(record) else { return }
        condition.lock()
        if schedule.add(request, at: Self.now) { condition.broadcast() }
        condition.unlock()
    }

    package var droppedSpans: Int {
        condition.lock()
        defer { condition.unlock() }
        return schedule.droppedSpans
    }

    /// Starts the export thread. `gauges` may block on the disk.
    package func start(gauges: @escaping @Sendable () -> Gauges) {
        condition.lock()
        hasEnded = false
        condition.unlock()
        let thread = Thread { [self] in run(gauges) }
        thread.name = "otlp"
        thread.start()
    }

    /// Exports the queue. Gives up after `seconds` if the collector does not respond.
    package func close(within seconds: Double) {
        let deadline = DispatchTime.now() + seconds
        condition.lock()
        schedule.close()
        condition.broadcast()
        while !hasEnded, condition.wait(until: deadline) {}
        isAbandoned = true
        condition.unlock()
    }

    private var mayGiveUp: Bool {
        condition.lock()
        defer { condition.unlock() }
        return isAbandoned
    }

    private func run(_ gauges: @Sendable () -> Gauges) {
        while true {
            condition.lock()
            let action = isAbandoned ? .end : schedule.next(at: Self.now)
            switch action {
            case .wait(let seconds):
                _ = condition.wait(until: .now() + seconds)
                condition.unlock()
            case .end:
                hasEnded = true
                condition.broadcast()
                condition.unlock()
                return
            case .traces(let requests):
                condition.unlock()
                export("/v1/traces", resource.request("Spans", spans(of: requests)))
            case .metrics:
                condition.unlock()
                export("/v1/metrics", resource.request("Metrics", written(gauges())))
            }
        }
    }

    private func spans(of requests: [TracedRequest]) -> [JSONValue] {
        let common = resource.requestAttributes
        let epoch = Self.wallTime - MonotonicClock.now
        return requests.flatMap {
            $0.spans(common, epoch: epoch) { UInt64.random(in: 1...UInt64.max) }
        }
    }

    private func written(_ gauges: Gauges) -> [JSONValue] {
        let format = OTLPMetrics(startTime: UInt64(metrics.started * 1e9), time: Self.wallTime)
        return metrics.families(gauges).compactMap(format.json)
    }

    private func export(_ path: String, _ body: [UInt8]) {
        let answer = post(path, body) { [weak self] in self?.mayGiveUp ?? true }
        let outcome = answer.outcome
        let partial = outcome == .taken ? answer.partialSuccess : nil
        condition.lock()
        schedule.ended(outcome, rejectedSpans: partial?.spans ?? 0, at: Self.now, jitter: .random(in: 0...1))
        // Logs only the first of consecutive failures, because exports are retried.
        let isNews = outcome == .taken ? failing.remove(path) != nil : failing.insert(path).inserted
        let inPart = path + " in part"
        let isPartialNews = partial != nil && failing.insert(inPart).inserted
        if outcome == .taken, partial == nil { failing.remove(inPart) }
        condition.unlock()
        if let partial, isPartialNews {
            log.note(.warning, "telemetry partly accepted", [("path", path), ("detail", partial.detail)])
        }
        guard isNews else { return }
        if outcome == .taken {
            log.note(.info, "telemetry accepted again", [("path", path)])
        } else {
            let detail = answer.failure ?? answer.status.map { "it answered \($0)" } ?? ""
            log.note(.warning, "telemetry not exported", [("path", path), ("detail", detail)])
        }
    }

    /// Seconds of the monotonic clock.
    private static var now: Double { Double(MonotonicClock.now) / 1e9 }

    /// Nanoseconds since 1970.
    private static var wallTime: UInt64 { UInt64(Date().timeIntervalSince1970 * 1e9) }
}
