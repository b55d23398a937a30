internal import Foundation

/// An event that failed when sent alone. Only accepted requests with other events show whether it is at fault.
///
/// The event goes to quarantine after two failures alone, if the server accepts a request of other events between
/// them. On a flaky server it takes three failures, with five such accepted requests between each and the next.
struct PoisonEvent: Equatable {
    /// Seconds for which a server counts as flaky after it failed on events that it accepted later.
    static let flakyDuration: TimeInterval = 86_400

    let event: QueuedEvent
    let cause: BatchBisection.Cause
    /// No retry before this uptime, unless other events are accepted.
    var retryAt: TimeInterval = -.infinity
    private(set) var tries = 0

    private var failures = 0
    private var neededFailures = 2
    /// Accepted requests of other events since the last failure of this event.
    private var successes = 0
    private var neededSuccesses = 1

    init(event: QueuedEvent, cause: BatchBisection.Cause) {
        self.event = event
        self.cause = cause
    }

    var mayRetry: Bool { successes >= neededSuccesses }

    var isConfirmed: Bool { failures >= neededFailures }

    mutating func othersWereAccepted() { successes += 1 }

    /// Call it when the server fails on other events too.
    mutating func resetCounts() {
        failures = 0
        successes = 0
    }

    mutating func failedAlone(isFlaky: Bool) {
        neededFailures = isFlaky ? 3 : 2
        let counts = failures == 0 || mayRetry
        neededSuccesses = isFlaky ? 5 : 1
        tries += 1
        if counts { failures += 1 }
        successes = 0
    }
}
