public import CountersignCore

/// What the SDK tells a token provider when it needs a token.
public struct TokenRequest: Sendable, Hashable {
    /// Why a token is needed.
    public struct Reason: RawRepresentable, Hashable, Sendable {
        /// A stable word, such as `rejected`.
        public let rawValue: String

        /// Any word.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// There is none for this user.
        public static let missing = Reason(rawValue: "missing")
        /// The one there is has expired, or is about to.
        public static let expired = Reason(rawValue: "expired")
        /// The server has refused the one there is; `code` says why.
        public static let rejected = Reason(rawValue: "rejected")
    }

    /// Whose token. Not always the current user: events of an earlier one may still wait.
    public let userID: String
    /// Why.
    public let reason: Reason
    /// What the server said, for `Reason.rejected`; nil otherwise.
    public let code: AuthErrorCode?
}

/// Gets a token for a user from the app's backend.
///
/// It is called off the main thread and with a time limit (`CountersignConfiguration.tokenProviderTimeout`); never twice at
/// the same time for one user. Calls for different users may overlap, four at most, since events of an earlier user may
/// still wait: a provider that keeps state guards it. It may block: it runs on its own thread (before iOS 18 and
/// macOS 15 only what it suspends for does not take a shared one).
///
/// Nil says that there is no token, and an error means the same. The events are then sent under the last known token, or
/// without one (never those of a user who has logged out), and the server is the judge: one that does not require tokens takes them. Where it refuses, they stay, and
/// both the provider and the server are asked again after waits that grow up to `RetryPolicy.maximumDelay` of
/// `CountersignConfiguration.networkRetry`, without end. A token that it returns is sent even if the device clock calls it
/// expired. `flush()` called from inside it returns at once.
public typealias TokenProvider = @Sendable (TokenRequest) async throws -> String?
