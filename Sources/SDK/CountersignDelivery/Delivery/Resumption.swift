internal import Foundation

/// Limits how often a new token resumes sending at once: five times, then once a minute.
struct Resumption {
    static let capacity = 5.0
    static let interval: TimeInterval = 60

    private var credits = capacity
    private var updatedAt: TimeInterval?

    /// Returns nil if sending may resume at once, or else the uptime until which to wait.
    mutating func take(at now: TimeInterval) -> TimeInterval? {
        if let updatedAt { credits = min(Self.capacity, credits + (now - updatedAt) / Self.interval) }
        updatedAt = now
        credits -= 1
        return credits >= 0 ? nil : now - credits * Self.interval
    }
}
