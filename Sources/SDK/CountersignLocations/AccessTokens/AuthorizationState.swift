public import Foundation

/// Whether requests can be authorized, and what has to happen if not.
public struct AuthorizationState: Sendable, Hashable {
    /// The kinds of states.
    public struct Kind: RawRepresentable, Hashable, Sendable {
        /// A stable word.
        public let rawValue: String

        /// Any word.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// Nobody has handed over an access token or a refresh token.
        public static let noCredential = Kind(rawValue: "no_credential")
        /// There is a token that was not refused, as far as the SDK knows.
        public static let ready = Kind(rawValue: "ready")
        /// A refresh has failed in a way that may pass; the next try is in `retryIn` seconds.
        public static let waiting = Kind(rawValue: "waiting")
        /// Refreshing did not help: too many in a short time, or fresh tokens that are refused. One more try in `retryIn`
        /// seconds, and at once with new credentials.
        public static let suspended = Kind(rawValue: "suspended")
        /// The refresh token is dead: the person has to log in. Nothing is sent before the app has new credentials.
        public static let reauthenticationRequired = Kind(rawValue: "reauthentication_required")
    }

    /// What it is.
    public let kind: Kind
    /// Why, as a code and words that are safe to log; nil when there is nothing to say.
    public let reason: String?
    /// Seconds until the next try; nil if none is planned.
    public let retryIn: TimeInterval?
}
