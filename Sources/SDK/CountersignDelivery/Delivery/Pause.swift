internal import Foundation

/// Whether requests may go at all: pauses after failures that are no user's and no event's.
struct Pause {
    enum State: Equatable {
        case none
        /// No request before this instant.
        case until(TimeInterval)
    }

    private(set) var state = State.none
    /// Failures of the server or the network in a row.
    private(set) var failures = 0
    /// Why nothing gets through until somebody changes settings.
    private(set) var configurationProblem: ServerAnswer.Explanation?
    /// Answers in a row after which settings had to change.
    private var configurationFailures = 0

    var end: TimeInterval? {
        if case .until(let instant) = state { instant } else { nil }
    }

    mutating func wait(until instant: TimeInterval) { state = .until(instant) }

    mutating func backOff(
        _ retry: RetryPolicy, serverDelay: TimeInterval?, now: TimeInterval, fraction: Double
    ) {
        failures += 1
        state = .until(
            now + retry.delay(afterFailure: failures, serverDelay: serverDelay, fraction: fraction))
    }

    /// One request now and then: a server may be put right while the app runs on, and one stray answer of something on the
    /// way is over in seconds.
    mutating func stop(
        _ problem: ServerAnswer.Explanation, _ retry: RetryPolicy, serverDelay: TimeInterval?,
        longest: TimeInterval, now: TimeInterval, fraction: Double
    ) {
        configurationProblem = problem
        configurationFailures += 1
        let delay = retry.delay(
            afterFailure: configurationFailures, serverDelay: serverDelay, fraction: max(fraction, 0.5))
        state = .until(now + min(delay, longest))
    }

    /// The next round begins: what was wrong is so until something is accepted.
    mutating func lapse() { state = .none }

    /// Somebody wants another try.
    mutating func resume() {
        state = .none
        configurationProblem = nil
    }

    /// A session begins with a fresh count.
    mutating func forgive() {
        failures = 0
        configurationFailures = 0
    }
}
