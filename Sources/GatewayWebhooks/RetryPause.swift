internal import CountersignCore

/// How long to wait after an attempt that has failed.
package enum RetryPause {
    /// Milliseconds that the first pause has at most; each further one has twice as many.
    package static let first: Int64 = 5_000
    /// The least, so that chance never makes a client that hammers.
    package static let least: Int64 = 1_000
    /// The most: a day.
    package static let longest: Int64 = 86_400_000

    /// A pause by full jitter: any length up to the limit, so that what failed together does not come again together. A
    /// webhook that says when it wants to be asked is not asked before that, as far as a day goes.
    package static func milliseconds(
        failures: Int, retryAfterSeconds: Int?, random: (ClosedRange<Int64>) -> Int64
    ) -> Int64 {
        let doublings = min(max(failures, 1) - 1, 20)
        let pause = random(least...min(first << Int64(doublings), longest))
        return max(pause, wanted(retryAfterSeconds))
    }

    /// The pause requested by a webhook's `Retry-After`, in milliseconds: at most a day, 0 if there is none.
    package static func wanted(_ retryAfterSeconds: Int?) -> Int64 {
        min(Milliseconds(seconds: max(retryAfterSeconds ?? 0, 0)).count, longest)
    }
}
