internal import CountersignCore

/// The back-off after a failed attempt.
package enum RetryPause {
    /// The maximum of the first pause in milliseconds. The maximum doubles with each failure.
    package static let first: Int64 = 5_000
    /// The minimum in milliseconds, so that jitter cannot cause rapid retries.
    package static let least: Int64 = 1_000
    package static let longest: Int64 = 86_400_000

    /// A pause with full jitter, so that simultaneous failures are not retried simultaneously. Not shorter
    /// than a `Retry-After` of up to a day.
    package static func milliseconds(
        failures: Int, retryAfterSeconds: Int?, random: (ClosedRange<Int64>) -> Int64
    ) -> Int64 {
        let doublings = min(max(failures, 1) - 1, 20)
        let pause = random(least...min(first << Int64(doublings), longest))
        return max(pause, wanted(retryAfterSeconds))
    }

    /// The `Retry-After` pause in milliseconds: at most a day, and 0 without the header.
    package static func wanted(_ retryAfterSeconds: Int?) -> Int64 {
        min(Milliseconds(seconds: max(retryAfterSeconds ?? 0, 0)).count, longest)
    }
}
