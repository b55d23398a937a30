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
/// It is called off the main thread, never twice at the same time, and with a time limit
/// (`CountersignConfiguration.tokenProviderTimeout`). Nil says that there is none: nothing is sent for this user, and it
/// is asked again later. An error means the same. `flush()` called from inside it returns at once.
public typealias TokenProvider = @Sendable (TokenRequest) async throws -> String?
