internal import Foundation

/// Pauses all requests after failures that are not about a single user or event.
struct CircuitBreaker {
    /// The uptime at which the pause ends; nil without a pause.
    private(set) var end: TimeInterval?
    /// Consecutive failures of the server, the network or the queue file.
    private(set) var failures = 0
    private(set) var configurationProblem: ServerAnswer.Explanation?
    private var configurationFailures = 0

    mutating func wait(until instant: TimeInterval) { end = instant }

    /// Does not shorten a pause.
    mutating func backOff(
        _ retry: RetryPolicy, serverDelay: TimeInterval?, now: TimeInterval, fraction: Double
    ) {
        failures += 1
        let delay = retry.delay(afterFailure: failures, serverDelay: serverDelay, fraction: fraction)
        end = max(end ?? now, now + delay)
    }

    /// Pauses, but retries occasionally: the server may be fixed while the app runs, and a single wrong response from
    /// a proxy should cost only seconds.
    mutating func stop(
        _ problem: ServerAnswer.Explanation, _ retry: RetryPolicy, serverDelay: TimeInterval?,
        longest: TimeInterval, now: TimeInterval, fraction: Double
    ) {
        configurationProblem = problem
        configurationFailures += 1
        let delay = retry.delay(
            afterFailure: configurationFailures, serverDelay: serverDelay, fraction: max(fraction, 0.5))
        end = now + min(delay, longest)
    }

    /// Ends the pause for the next round. Failure counts stay until a request is accepted or a session begins.
    mutating func lapse() { end = nil }

    mutating func resume() {
        end = nil
        configurationProblem = nil
    }

    mutating func resetFailures() {
        failures = 0
        configurationFailures = 0
    }
}
