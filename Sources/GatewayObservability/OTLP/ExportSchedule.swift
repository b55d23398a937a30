/// Says what to export when; it has no clock and sends nothing. Instants and times are seconds.
///
/// What waits is bounded: at most ``mostWaiting`` requests, and the batch that is under way. A collector that does not
/// take it is asked again, later each time, while newer requests are dropped.
struct ExportSchedule {
    /// Requests that wait; further ones are dropped.
    static let mostWaiting = 2_048
    /// Requests of one batch; so many that wait are sent at once.
    static let batch = 256
    /// How long a request waits for others.
    static let gatherSeconds = 5.0
    /// Between two exports of metrics.
    static let metricSeconds = 60.0
    /// The longest pause after a failure, and the longest that a collector may ask for.
    static let longestPause = 60.0
    static let longestRetryAfter = 300.0

    enum Action {
        case traces([TracedRequest])
        case metrics
        case wait(seconds: Double)
        case end
    }

    /// What became of an export.
    enum Outcome: Equatable {
        case taken
        /// The same again would end alike.
        case refused
        /// The collector was not reached or could not take it now, and may have said how long to wait.
        case failed(retryAfter: Int?)
    }

    /// Spans that were not exported.
    private(set) var droppedSpans = 0
    private var waiting: [TracedRequest] = []
    private var underWay: [TracedRequest] = []
    private var tracesDue = 0.0
    private var metricsDue: Double
    private var notBefore = 0.0
    private var failures = 0
    private var isClosing = false
    private var hasSentLast = false
    /// True when the batch under way is traces.
    private var sendsTraces = false

    init(at now: Double) {
        metricsDue = now + Self.metricSeconds
    }

    /// Takes a request; true when it changes when there is something to do.
    mutating func add(_ request: TracedRequest, at now: Double) -> Bool {
        guard !isClosing, waiting.count < Self.mostWaiting else {
            droppedSpans += request.spanCount
            return false
        }
        waiting.append(request)
        if waiting.count == 1 { tracesDue = now + Self.gatherSeconds }
        return waiting.count == 1 || waiting.count == Self.batch
    }

    /// From now on everything is due, and a failure is the end.
    mutating func close() { isClosing = true }

    mutating func next(at now: Double) -> Action {
        if isClosing, failures > 0 { return end() }
        guard isClosing || now >= notBefore else { return .wait(seconds: notBefore - now) }
        sendsTraces = false
        // First, lest a flood of traces keeps them back.
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

    /// Hears what became of the last action, and how many spans a collector did not take of a batch that it took. `jitter`
    /// is from 0 to 1, so that gateways which failed together do not come back together.
    mutating func ended(_ outcome: Outcome, rejectedSpans: Int = 0, at now: Double, jitter: Double) {
        if sendsTraces {
            droppedSpans += min(max(0, rejectedSpans), Self.spans(of: underWay))
        } else {
            // Failed ones are not sent again: the next say the same and more.
            metricsDue = now + Self.metricSeconds
            hasSentLast = isClosing
        }
        guard case .failed(let retryAfter) = outcome else {
            failures = 0
            if sendsTraces {
                if outcome == .refused { droppedSpans += Self.spans(of: underWay) }
                underWay = []
            }
            return
        }
        failures += 1
        let pause = min(Self.longestPause, Double(1 << min(failures - 1, 6))) * (0.5 + jitter / 2)
        notBefore = now + max(pause, min(Self.longestRetryAfter, Double(retryAfter ?? 0)))
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
