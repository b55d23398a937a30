internal import Foundation

/// Why there is no refresh now.
struct RefreshObstacle {
    enum State: Equatable {
        case none
        case waiting(until: TimeInterval, ServerAnswer.Explanation)
        case suspended(until: TimeInterval, ServerAnswer.Explanation)
    }

    private(set) var state = State.none
    private var failures = 0
    private var unusableAnswers = 0

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

    /// An answer was no token and promises no better. Returns true if that is one too many in a row.
    mutating func isUnusable(maximum: Int) -> Bool {
        unusableAnswers += 1
        guard unusableAnswers >= maximum else { return false }
        unusableAnswers = 0
        return true
    }

    /// Another process has refreshed.
    mutating func forgiveFailures() { failures = 0 }

    /// A refresh is through.
    mutating func forgive() {
        failures = 0
        unusableAnswers = 0
    }
}
