internal import Foundation

/// An event that failed alone. Whether it is the event or the server shows only when the server takes others in between.
///
/// A value without I/O. It is set aside after it has failed alone twice, with an accepted request of others before the
/// second time. While the server also fails on what it takes later, it has to fail three times, with five accepted
/// requests in a row before each.
struct Suspect: Equatable {
    /// How long a server that failed on what it took later is called flaky, in seconds.
    static let flakyDuration: TimeInterval = 86_400

    let event: QueuedEvent
    let cause: Isolation.Cause
    /// Not tried before this uptime, as long as nothing else is accepted.
    var retryAt: TimeInterval = -.infinity
    /// How often it was sent alone.
    private(set) var tries = 0

    private var failures = 0
    private var neededFailures = 2
    /// Requests of others that were accepted since it failed last.
    private var successes = 0
    private var neededSuccesses = 1

    init(event: QueuedEvent, cause: Isolation.Cause) {
        self.event = event
        self.cause = cause
    }

    /// True when another try would tell something.
    var isRipe: Bool { successes >= neededSuccesses }

    /// True when it is the event.
    var isCondemned: Bool { failures >= neededFailures }

    mutating func othersWereAccepted() { successes += 1 }

    /// The server fails on others too, so what it did to this event tells nothing.
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
