internal import Foundation

/// An event that failed when sent alone. Only accepted requests with other events show whether the event or
/// the server is at fault.
///
/// A value without I/O. The event goes to quarantine after two failures alone, with an accepted request of
/// others before the second. While the server is flaky, it takes three failures, with five accepted
/// requests in a row before each.
struct PoisonEvent: Equatable {
    /// Seconds for which a server counts as flaky after it failed on events that it accepted later.
    static let flakyDuration: TimeInterval = 86_400

    let event: QueuedEvent
    let cause: BatchBisection.Cause
    /// No retry before this uptime, unless other events are accepted.
    var retryAt: TimeInterval = -.infinity
    /// How often it was sent alone.
    private(set) var tries = 0

    private var failures = 0
    private var neededFailures = 2
    /// Accepted requests of others since its last failure.
    private var successes = 0
    private var neededSuccesses = 1

    init(event: QueuedEvent, cause: BatchBisection.Cause) {
        self.event = event
        self.cause = cause
    }

    /// True if another try is useful.
    var isRipe: Bool { successes >= neededSuccesses }

    /// True if the event is at fault.
    var isCondemned: Bool { failures >= neededFailures }

    mutating func othersWereAccepted() { successes += 1 }

    /// Resets the evidence, because the server fails on other events too.
    mutating func evidenceIsVoid() {
        failures = 0
        successes = 0
    }

    mutating func failedAlone(isFlaky: Bool) {
        neededFailures = isFlaky ? 3 : 2
        let counts = failures == 0 || isRipe
        neededSuccesses = isFlaky ? 5 : 1
        tries += 1
        if counts { failures += 1 }
        successes = 0
    }
}
