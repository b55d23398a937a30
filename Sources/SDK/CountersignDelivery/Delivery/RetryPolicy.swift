public import Foundation

/// How long to wait after a failure: exponential back-off with full jitter.
///
/// The wait after failure number n is a random share of `baseDelay` × 2ⁿ⁻¹, and of `maximumDelay` from where that is
/// less. Full jitter keeps the devices of an app from coming back all at once after an outage.
public struct RetryPolicy: Sendable, Hashable {
    /// The longest wait after the first failure, in seconds.
    public var baseDelay: TimeInterval
    /// No computed wait is longer, in seconds.
    public var maximumDelay: TimeInterval
    /// A server's `Retry-After` is followed up to this, in seconds, so that no answer can silence an app for good.
    public var maximumServerDelay: TimeInterval
    /// Failures in a row after which retries pause. A new token, a new session or a call of `flush()` resumes. Failures of
    /// a token provider never pause.
    public var maximumFailures: Int

    /// Makes a policy.
    public init(
        baseDelay: TimeInterval, maximumDelay: TimeInterval, maximumServerDelay: TimeInterval = 3_600,
        maximumFailures: Int = .max
    ) {
        self.baseDelay = baseDelay
        self.maximumDelay = maximumDelay
        self.maximumServerDelay = maximumServerDelay
        self.maximumFailures = maximumFailures
    }

    /// For servers that fail or cannot be reached: from 2 s up to 3 minutes, without end.
    public static let network = RetryPolicy(baseDelay: 2, maximumDelay: 180)

    /// For responses that require other settings, or that come from a proxy: from 5 s up to an hour.
    static let configuration = RetryPolicy(baseDelay: 5, maximumDelay: 3_600)

    /// For tokens that are refused: from 2 s up to 5 minutes, 50 times in a row. Then retries pause; with a token provider
    /// there is one try every `maximumServerDelay`.
    public static let authentication = RetryPolicy(baseDelay: 2, maximumDelay: 300, maximumFailures: 50)

    /// The wait after failure number `failure`.
    ///
    /// - Parameters:
    ///   - failure: Failures in a row, this one included: 1 or more.
    ///   - serverDelay: The server's `Retry-After` in seconds; the wait is not shorter than this.
    ///   - fraction: A random number from 0 to 1.
    /// - Returns: Seconds.
    package func delay(
        afterFailure failure: Int, serverDelay: TimeInterval? = nil, fraction: Double
    ) -> TimeInterval {
        // Beyond 2^32 the maximum has long won; pow would run into infinity.
        let bound = min(maximumDelay, baseDelay * pow(2, Double(min(max(failure, 1), 32) - 1)))
        return max(bound * fraction, min(serverDelay ?? 0, maximumServerDelay))
    }
}
