internal import Foundation

/// A result of a request that is not yet stored in the queue file. The sender waits until it is stored.
struct PendingOutcomes {
    enum State: Equatable {
        case none
        case due(DeliveryOutcome)
        case waiting(DeliveryOutcome, until: TimeInterval, failures: Int)
    }

    private(set) var state = State.none

    mutating func apply(_ outcome: DeliveryOutcome) { state = .due(outcome) }

    mutating func applied() { state = .none }

    mutating func failed(_ retry: RetryPolicy, now: TimeInterval, fraction: Double) {
        let (outcome, failures): (DeliveryOutcome, Int)
        switch state {
        // The outcome was discarded while it was being stored.
        case .none: return
        case .due(let due): (outcome, failures) = (due, 1)
        case .waiting(let waiting, _, let before): (outcome, failures) = (waiting, before + 1)
        }
        state = .waiting(
            outcome, until: now + retry.delay(afterFailure: failures, fraction: fraction),
            failures: failures)
    }
}
