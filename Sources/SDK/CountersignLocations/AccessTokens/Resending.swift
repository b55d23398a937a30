internal import Foundation

/// Growing pauses before a token that was rejected, and cannot be refreshed, is tried again.
struct Resending {
    private var waitsUntil: TimeInterval?
    private var count = 0

    /// Nil to try now, or the uptime until which to wait.
    mutating func take(at uptime: TimeInterval, retry: RetryPolicy) -> TimeInterval? {
        if let waitsUntil, waitsUntil <= uptime {
            self.waitsUntil = nil
            return nil
        }
        if waitsUntil == nil {
            count += 1
            waitsUntil = uptime + retry.delay(afterFailure: count, fraction: 1)
        }
        return waitsUntil
    }

    mutating func accepted() { count = 0 }
}
