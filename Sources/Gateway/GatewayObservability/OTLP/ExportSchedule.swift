internal import CountersignCore

/// Decides what to export and when. It has no clock and sends nothing; times are in seconds. A failed batch
/// is retried with increasing delays, while requests beyond ``mostWaiting`` are dropped.
struct ExportSchedule {
    /// The maximum number of queued requests; more are dropped.
    static let mostWaiting = 2_048
    /// The maximum number of requests in a batch. A full batch is sent immediately.
    static let batch = 256
    static let gatherSeconds = 5.0
    static let metricSeconds = 60.0
    static let retry = RetryPolicy(baseDelay: 1, maximumDelay: 60, maximumServerDelay: 300)

    enum Action {
        case traces([TracedRequest])
        case metrics
        case wait(seconds: Double)
        case end
    }

    enum Outcome: Equatable {
        case taken
        /// Rejected permanently; a retry would fail again.
        case rejected
        /// The collector was unreachable or unavailable, possibly with a `Retry-After` in seconds.
        case failed(retryAfter: Int?)
    }

    private(set) var droppedSpans = 0
    private var waiting: [TracedRequest] = []
    private var underWay: [TracedRequest] = []
    private var tracesDue = 0.0
    private var metricsDue: Double
    private var notBefore = 0.0
    private var failures = 0
    private var isClosing = false
    private var hasSentLast = false
    private var sendsTraces = false

    init(at now: Double) {
        metricsDue = now + Self.metricSeconds
    }

    /// Returns whether the exporter's thread must wake up, because the next due time may have changed.
    mutating func add(_ request: TracedRequest, at now: Double) -> Bool {
        guard !isClosing, waiting.count < Self.mostWaiting else {
            droppedSpans += request.spanCount
            return false
        }
        waiting.append(request)
        if waiting.count == 1 { tracesDue = now + Self.gatherSeconds }
        return waiting.count == 1 || waiting.count == Self.batch
    }

    /// Makes all queued requests due. From then on, a failure ends the export, and a failed batch is not retried.
    mutating func close() { isClosing = true }

    mutating func next(at now: Double) -> Action {
        if isClosing, failures > 0 { return end() }
        guard isClosing || now >= notBefore else { return .wait(seconds: notBefore - now) }
        sendsTraces = false
        // Metrics come first, so that a flood of traces cannot delay them.
        if now >= metricsDue { return .metrics }
        if underWay.isEmpty, isDue(at: now) {
            underWay = Array(waiting.prefix(Self.batch))
            waiting.removeFirst(underWay.count)
            tracesDue = now + Self.gatherSeconds
        }
        if !underWay.isEmpty {
            sendsTraces = true
            return .traces(underWay)
        }
        if isClosing { return hasSentLast ? .end : .metrics }
        return .wait(seconds: (waiting.isEmpty ? metricsDue : min(metricsDue, tracesDue)) - now)
    }

    private func isDue(at now: Double) -> Bool {
        !waiting.isEmpty && (isClosing || waiting.count >= Self.batch || now >= tracesDue)
    }

    /// Records the result of the last action, and the spans that the collector rejected of an accepted batch.
    /// `jitter`, from 0 to 1, spreads the retries of gateways that failed at the same time.
    mutating func ended(_ outcome: Outcome, rejectedSpans: Int = 0, at now: Double, jitter: Double) {
        if sendsTraces {
            droppedSpans += min(max(0, rejectedSpans), Self.spans(of: underWay))
        } else {
            // Failed metrics are not retried, because the next export is cumulative.
            metricsDue = now + Self.metricSeconds
            hasSentLast = isClosing
        }
        guard case .failed(let retryAfter) = outcome else {
            failures = 0
            if sendsTraces {
                if outcome == .rejected { droppedSpans += Self.spans(of: underWay) }
                underWay = []
            }
            return
        }
        failures += 1
        notBefore =
            now
            + Self.retry.delay(
                afterFailure: failures, serverDelay: retryAfter.map(Double.init), fraction: 0.5 + jitter / 2)
    }

    private mutating func end() -> Action {
        droppedSpans += Self.spans(of: underWay) + Self.spans(of: waiting)
        underWay = []
        waiting = []
        return .end
    }

    private static func spans(of requests: [TracedRequest]) -> Int {
        requests.reduce(0) { $0 + $1.spanCount }
    }
}
