internal import Foundation

/// Limits how often a new token resumes sending at once: five times, then once a minute.
struct Resumption {
    private static let interval: TimeInterval = 60
    private static let burst = 5 * interval

    /// The uptime at which five tokens may resume sending at once again.
    private var fullAt: TimeInterval = 0
    private var waitEnd: TimeInterval { fullAt - Self.burst }

    /// Returns nil if sending may resume at once, or else the uptime until which to wait.
    mutating func take(at now: TimeInterval) -> TimeInterval? {
        // More tokens during a wait do not extend it, or tokens in quick succession would never be sent.
        if waitEnd <= now { fullAt = max(fullAt, now) + Self.interval }
        return waitEnd > now ? waitEnd : nil
    }
}
