internal import CountersignCore

/// The back-off of a webhook, stream or file after failed attempts, in milliseconds.
package struct Retry: Sendable {
    /// The shortest back-off, so that jitter cannot cause rapid retries.
    package static let least: Int64 = 1_000
    /// The longest back-off of all, and the longest accepted `Retry-After`.
    package static let longest: Int64 = 86_400_000

    let policy: RetryPolicy
    /// Milliseconds of failures after which delivery is paused; nil never pauses.
    let patience: Int64?

    /// A back-off that starts at `first` seconds and grows to at most `most` seconds.
    package init(first: Double, most: Double = 86_400, patience: Int64? = nil) {
        policy = RetryPolicy(baseDelay: first, maximumDelay: most, maximumServerDelay: 86_400)
        self.patience = patience
    }

    func pause(failures: Int, afterSeconds: Int?, fraction: Double) -> Int64 {
        let seconds = policy.delay(
            afterFailure: failures, serverDelay: afterSeconds.map(Double.init), fraction: fraction)
        return max(Self.least, Milliseconds(seconds: seconds).count)
    }

    /// The `Retry-After` in milliseconds, without a back-off; 0 without the header.
    static func retryAfter(_ seconds: Int?) -> Int64 {
        min(Milliseconds(seconds: max(seconds ?? 0, 0)).count, longest)
    }
}
