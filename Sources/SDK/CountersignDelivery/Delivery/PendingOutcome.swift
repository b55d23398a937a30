internal import Foundation

/// A result of a request that is not yet stored in the queue file. The sender waits until it is stored.
struct PendingOutcome {
    private(set) var outcome: DeliveryOutcome?
    /// No attempt to store it before this uptime.
    private(set) var retryAt: TimeInterval = -.infinity
    private var failures = 0

    mutating func apply(_ outcome: DeliveryOutcome) {
        self = PendingOutcome()
        self.outcome = outcome
    }

    mutating func applied() { self = PendingOutcome() }

    mutating func failed(_ retry: RetryPolicy, now: TimeInterval, fraction: Double) {
        failures += 1
        retryAt = now + retry.delay(afterFailure: failures, fraction: fraction)
    }
}
