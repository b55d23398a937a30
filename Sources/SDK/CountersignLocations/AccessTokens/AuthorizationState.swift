public import Foundation

/// Whether requests can be authorized, and the reason if not.
public struct AuthorizationState: Sendable, Hashable {
    /// The kinds of states.
    public struct Kind: RawRepresentable, Hashable, Sendable {
        /// A stable word, such as `ready`.
        public let rawValue: String

        /// Creates a value from its word. Words that this version does not define are allowed.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// Neither an access token nor a refresh token is in use.
        public static let noCredential = Kind(rawValue: "no_credential")
        /// Tokens are in use, and no failed refresh waits for a retry. The server may still reject the access token.
        public static let ready = Kind(rawValue: "ready")
        /// A refresh has failed temporarily; the next try is in `retryIn` seconds.
        public static let waiting = Kind(rawValue: "waiting")
        /// Too many refreshes in a short time, rejected new tokens, or unusable responses. Retried in `retryIn`
        /// seconds, and at once with new credentials.
        public static let suspended = Kind(rawValue: "suspended")
        /// The refresh token is invalid: the user has to log in. Once the access token is rejected, requests wait.
        public static let reauthenticationRequired = Kind(rawValue: "reauthentication_required")
    }

    /// The kind of state.
    public let kind: Kind
    /// The reason, as a code and text safe to log; nil without a reason.
    public let reason: String?
    /// Seconds until the next attempt; nil if no attempt is planned.
    public let retryIn: TimeInterval?
}
