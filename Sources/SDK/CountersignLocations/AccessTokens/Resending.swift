internal import Foundation

/// When a token that was rejected, and cannot be refreshed, is tried again: after growing pauses.
struct Resending {
    enum State: Equatable {
        case none
        case waiting(until: TimeInterval)
    }

    private var state = State.none
    private var count = 0

    /// Returns nil to try now, or until when to wait.
    mutating func take(at uptime: TimeInterval, retry: RetryPolicy) -> TimeInterval? {
        if case .waiting(let instant) = state {
            guard instant <= uptime else { return instant }
            state = .none
            return nil
        }
        count += 1
        let instant = uptime + retry.delay(afterFailure: count, fraction: 1)
        state = .waiting(until: instant)
        return instant
    }

    mutating func accepted() { count = 0 }
}
