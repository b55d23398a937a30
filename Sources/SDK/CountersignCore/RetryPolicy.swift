public import Foundation

/// Exponential back-off with full jitter, which spreads the retries of an app's devices after an outage. All values
/// must be above 0.
///
/// The delay after failure number n is a random fraction of `baseDelay` × 2ⁿ⁻¹, or of `maximumDelay` if that is less.
public struct RetryPolicy: Sendable, Hashable {
    /// The longest delay after the first failure, in seconds.
    public var baseDelay: TimeInterval
    /// The longest computed delay, in seconds.
    public var maximumDelay: TimeInterval
    /// The longest `Retry-After` that the SDK respects, in seconds. Limits how long a response can stop sending.
    public var maximumServerDelay: TimeInterval
    /// Consecutive rejections of a user's tokens after which retries pause, until a new token, a new session or a call
    /// of `flush()`. With a token provider, retries continue every `maximumServerDelay`. Other failures do not count.
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

    /// For servers that fail or cannot be reached: at most 2 s at first, later 3 minutes. Retries never pause.
    package static let network = RetryPolicy(baseDelay: 2, maximumDelay: 180)

    /// For responses that require other settings. At most 5 s at first, as a proxy may have sent them; later an hour.
    package static let configuration = RetryPolicy(baseDelay: 5, maximumDelay: 3_600)

    /// For rejected tokens: at most 2 s at first, later 5 minutes. After 50 rejections in a row retries pause, or with
    /// a token provider continue every `maximumServerDelay`.
    package static let authentication = RetryPolicy(baseDelay: 2, maximumDelay: 300, maximumFailures: 50)

    /// Returns seconds, at least the smaller of `serverDelay` and `maximumServerDelay`. `failure` counts from 1.
    /// `fraction` is a random number from 0 to 1.
    package func delay(
        afterFailure failure: Int, serverDelay: TimeInterval? = nil, fraction: Double
    ) -> TimeInterval {
        // Limits the exponent, so that the power is finite.
        let bound = min(maximumDelay, baseDelay * pow(2, Double(min(max(failure, 1), 32) - 1)))
        return max(bound * fraction, min(serverDelay ?? 0, maximumServerDelay))
    }
}
