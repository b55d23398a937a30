internal import Foundation

/// Growing delays before a rejected token that cannot be refreshed is sent again.
struct Resending {
    private var waitsUntil: TimeInterval?
    private var count = 0

    /// Returns nil if the token may be sent now, or else the uptime until which to wait.
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
