internal import Foundation

/// Server results that are not yet stored in the queue file. The sender waits until they are.
struct Settling {
    enum State: Equatable {
        case none
        case due(Settlement)
        /// The queue file could not be written so many times.
        case waiting(Settlement, until: TimeInterval, failures: Int)
    }

    private(set) var state = State.none

    mutating func settle(_ settlement: Settlement) { state = .due(settlement) }

    mutating func settled() { state = .none }

    mutating func failed(_ retry: RetryPolicy, now: TimeInterval, fraction: Double) {
        let (settlement, failures): (Settlement, Int)
        switch state {
        // It was given up meanwhile.
        case .none: return
        case .due(let due): (settlement, failures) = (due, 1)
        case .waiting(let waiting, _, let before): (settlement, failures) = (waiting, before + 1)
        }
        state = .waiting(
            settlement, until: now + retry.delay(afterFailure: failures, fraction: fraction),
            failures: failures)
    }
}
