internal import Foundation

/// Counts events stored since the last claim, and decides when to send them.
struct Backlog {
    private var events = 0
    /// The uptime at which the first of the counted events was stored; nil without events.
    private var since: TimeInterval?
    /// Whether to send before the limits of the flush policy are reached. The manual policy ignores it.
    var isUrgent = false

    mutating func stored(_ count: Int, now: TimeInterval) {
        events += count
        since = since ?? now
    }

    mutating func claimBegan() { (events, since) = (0, nil) }

    func isFull(_ policy: FlushPolicy) -> Bool { policy.eventCount.map { events >= max(1, $0) } ?? false }

    func dueAt(_ policy: FlushPolicy) -> TimeInterval? {
        guard let since, let interval = policy.interval else { return nil }
        return since + max(0, interval)  // `max` returns 0 for NaN too.
    }
}
