internal import Foundation

/// Counts events stored since the last claim, and decides when to send them.
struct Backlog {
    enum State: Equatable {
        case empty
        case waiting(events: Int, since: TimeInterval)
    }

    private(set) var state = State.empty
    /// Sends soon, regardless of the flush policy.
    var isUrgent = false

    mutating func stored(_ count: Int, now: TimeInterval) {
        switch state {
        case .empty: state = .waiting(events: count, since: now)
        case .waiting(let events, let since): state = .waiting(events: events + count, since: since)
        }
    }

    mutating func claimBegan() { state = .empty }

    func isFull(_ policy: FlushPolicy) -> Bool {
        guard let count = policy.eventCount else { return false }
        guard case .waiting(let events, _) = state else { return count <= 0 }
        return events >= count
    }

    func dueAt(_ policy: FlushPolicy) -> TimeInterval? {
        guard case .waiting(_, let since) = state, let interval = policy.interval else { return nil }
        return since + interval
    }
}
