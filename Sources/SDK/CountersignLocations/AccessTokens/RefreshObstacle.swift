internal import Foundation

/// Why there is no refresh now.
struct RefreshObstacle {
    enum State: Equatable {
        case none
        case waiting(until: TimeInterval, ServerAnswer.Explanation)
        case suspended(until: TimeInterval, ServerAnswer.Explanation)
    }

    private(set) var state = State.none
    /// Answers of one kind, with none between them that granted a token.
    struct Series: Equatable {
        private var count = 0
        private var start: TimeInterval = 0

        /// Counts an answer. Returns true if there are that many, over that many seconds.
        mutating func add(at uptime: TimeInterval, count enough: Int, span: TimeInterval) -> Bool {
            if count == 0 { start = uptime }
            count += 1
            return count >= enough && uptime - start >= span
        }
    }

    private var failures = 0
    private var unusableAnswers = Series()
    private var refusals = Series()

    /// Until when, and why.
    var wait: (until: TimeInterval, problem: ServerAnswer.Explanation)? {
        switch state {
        case .none: nil
        case .waiting(let instant, let problem), .suspended(let instant, let problem): (instant, problem)
        }
    }

    /// The next refresh begins.
    mutating func pass() { state = .none }

    mutating func wait(
        _ problem: ServerAnswer.Explanation, retry: RetryPolicy, serverDelay: TimeInterval?,
        uptime: TimeInterval, fraction: Double
    ) {
        failures += 1
        let delay = retry.delay(afterFailure: failures, serverDelay: serverDelay, fraction: fraction)
        // Not at once even if chance says so: a refresh is never worth a busy loop.
        state = .waiting(until: uptime + max(delay, 1), problem)
    }

    mutating func suspend(_ problem: ServerAnswer.Explanation, until instant: TimeInterval) {
        state = .suspended(until: instant, problem)
    }

    /// Counts an answer without a token that promises no better. Returns true if there were `count` over
    /// `span` seconds.
    mutating func isUnusable(at uptime: TimeInterval, count: Int, span: TimeInterval) -> Bool {
        let isTooMuch = unusableAnswers.add(at: uptime, count: count, span: span)
        if isTooMuch { unusableAnswers = Series() }
        return isTooMuch
    }

    /// Counts a refusal without a reason. Returns true if there were `count` over `span` seconds.
    mutating func isRefusedForGood(at uptime: TimeInterval, count: Int, span: TimeInterval) -> Bool {
        refusals.add(at: uptime, count: count, span: span)
    }

    /// A token was granted, to this process or another.
    mutating func forgive() {
        failures = 0
        unusableAnswers = Series()
        refusals = Series()
    }
}
