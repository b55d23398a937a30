internal import Foundation

/// Growing pauses before a token that was rejected, and cannot be refreshed, is tried again.
struct Resending {
    enum State: Equatable {
        case none
        case waiting(until: TimeInterval)
    }

    private var state = State.none
    private var count = 0

    /// Nil to try now, or the uptime until which to wait.
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
