internal import Foundation

/// The reason why refreshes wait.
struct RefreshObstacle {
    enum State: Equatable {
        case none
        case waiting(until: TimeInterval, ServerAnswer.Explanation)
        case suspended(until: TimeInterval, ServerAnswer.Explanation)
    }

    private(set) var state = State.none
    /// Responses of one kind without a granted token between them.
    struct Series: Equatable {
        private var count = 0
        private var start: TimeInterval = 0

        /// Returns true after `enough` responses over at least `span` seconds.
        mutating func add(at uptime: TimeInterval, count enough: Int, span: TimeInterval) -> Bool {
            if count == 0 { start = uptime }
            count += 1
            return count >= enough && uptime - start >= span
        }
    }

    private var failures = 0
    private var unusableAnswers = Series()
    private var rejections = Series()

    /// Uptime at which the wait ends.
    var wait: (until: TimeInterval, problem: ServerAnswer.Explanation)? {
        switch state {
        case .none: nil
        case .waiting(let instant, let problem), .suspended(let instant, let problem): (instant, problem)
        }
    }

    mutating func pass() { state = .none }

    mutating func wait(
        _ problem: ServerAnswer.Explanation, retry: RetryPolicy, serverDelay: TimeInterval?,
        uptime: TimeInterval, fraction: Double
    ) {
        failures += 1
        let delay = retry.delay(afterFailure: failures, serverDelay: serverDelay, fraction: fraction)
        // At least one second, because jitter may be 0, and to avoid a busy loop.
        state = .waiting(until: uptime + max(delay, 1), problem)
    }

    mutating func suspend(_ problem: ServerAnswer.Explanation, until instant: TimeInterval) {
        state = .suspended(until: instant, problem)
    }

    /// Returns true after `count` unusable responses over at least `span` seconds.
    mutating func isUnusable(at uptime: TimeInterval, count: Int, span: TimeInterval) -> Bool {
        let isTooMuch = unusableAnswers.add(at: uptime, count: count, span: span)
        if isTooMuch { unusableAnswers = Series() }
        return isTooMuch
    }

    /// Returns true after `count` rejections without a reason over at least `span` seconds.
    mutating func isRejectedForGood(at uptime: TimeInterval, count: Int, span: TimeInterval) -> Bool {
        rejections.add(at: uptime, count: count, span: span)
    }

    mutating func forgive() {
        failures = 0
        unusableAnswers = Series()
        rejections = Series()
    }
}
