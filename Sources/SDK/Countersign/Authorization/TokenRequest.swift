public import CountersignCore

/// A request of the SDK for a token from the app's token provider.
public struct TokenRequest: Sendable, Hashable {
    /// The reason for a token request.
    public struct Reason: RawRepresentable, Hashable, Sendable {
        /// A stable word, such as `rejected`.
        public let rawValue: String

        /// Creates a value from its word. Words that this version does not define are allowed.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// No token is known for this user.
        public static let missing = Reason(rawValue: "missing")
        /// The token has expired or is about to expire.
        public static let expired = Reason(rawValue: "expired")
        /// The server has rejected the token. `code` has the reason.
        public static let rejected = Reason(rawValue: "rejected")
    }

    /// The user's ID. Not always the current user: events of an earlier user may still wait.
    public let userID: String
    /// The reason for the request.
    public let reason: Reason
    /// The server's error code, for `Reason.rejected`; nil otherwise.
    public let code: AuthErrorCode?
}

/// Gets a token for a user from the app's backend.
///
/// Called off the main thread, with a time limit (`CountersignConfiguration.tokenProviderTimeout`). Calls for one
/// user never overlap, but up to four calls for different users may, because events of an earlier user may still
/// wait. A provider with mutable state must synchronize access. It may block, because each call has its own thread.
/// Before iOS 18 and macOS 15, only one call runs at a time, on a thread of Swift's shared pool.
///
/// Returning nil or throwing means that no token is available. The events are then sent with the last known token. If
/// the user never had one, they are sent without a token, and the server decides. A signed-out user's events are never
/// sent without a token. Rejected events stay queued. The SDK then asks provider and server again without limit, after
/// delays that grow to `RetryPolicy.maximumDelay` of `CountersignConfiguration.networkRetry`. A returned token is sent
/// even if it has expired by the device clock. `flush()` called from inside the provider returns at once.
public typealias TokenProvider = @Sendable (TokenRequest) async throws -> String?
