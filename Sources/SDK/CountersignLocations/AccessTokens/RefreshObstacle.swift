internal import Foundation

/// The reason why refreshes wait.
struct RefreshObstacle {
    struct Wait: Equatable {
        /// Uptime at which the wait ends.
        let until: TimeInterval
        let problem: ServerAnswer.Explanation
        var isSuspended = false
    }

    /// Counts responses of one kind since a token was last granted.
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

    private(set) var wait: Wait?
    private var failures = 0
    var unusableAnswers = Series()
    /// Rejections without a reason.
    var rejections = Series()

    mutating func clear() { wait = nil }

    mutating func wait(
        _ problem: ServerAnswer.Explanation, retry: RetryPolicy, serverDelay: TimeInterval?,
        at reading: ClockReading
    ) {
        failures += 1
        let delay = retry.delay(afterFailure: failures, serverDelay: serverDelay, fraction: reading.fraction)
        // At least one second, because jitter may be 0, and to avoid a busy loop.
        wait = Wait(until: reading.uptime + max(delay, 1), problem: problem)
    }

    mutating func suspend(_ problem: ServerAnswer.Explanation, until instant: TimeInterval) {
        wait = Wait(until: instant, problem: problem, isSuspended: true)
    }

    /// Call it when tokens are granted.
    mutating func resetCounts() {
        failures = 0
        unusableAnswers = Series()
        rejections = Series()
    }
}
