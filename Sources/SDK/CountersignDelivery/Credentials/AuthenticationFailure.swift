public import CountersignCore
public import Foundation

/// A token that a server did not accept, or that could not be obtained.
public struct AuthenticationFailure: Sendable, Hashable {
    /// The component that detected the failure.
    public struct Origin: RawRepresentable, Hashable, Sendable {
        /// A stable word, such as `server`.
        public let rawValue: String

        /// Creates a value from its word. Words that this version does not define are allowed.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The server, when it verified the token.
        public static let server = Origin(rawValue: "server")
        /// The token provider failed, timed out, or returned nothing, the rejected token, or text that is not a token.
        public static let provider = Origin(rawValue: "provider")
        /// The app passed text that is not a token, or after a rejection the same token or an expired one.
        public static let app = Origin(rawValue: "app")
    }

    /// The number of the failure, such as 22 for an expired token.
    public let code: AuthErrorCode
    /// The name of the failure, such as `EXPIRED`; for other origins than the server a name such as
    /// `token_unchanged`.
    public let reason: String
    /// The user of the token.
    public let userID: String?
    /// The token; nil if the request had no token. Its description is redacted.
    public let token: SignedToken?
    /// True if the server accepted the events anyway, because its settings for the app do not require tokens.
    public let isOptional: Bool
    /// When the request began, by the device's clock.
    public let requestTime: Date
    /// The component that detected the failure.
    public let origin: Origin
    /// Seconds by which the device clock is ahead of the server's (negative: behind), if that is why the
    /// token failed; nil otherwise.
    public let clockSkew: TimeInterval?
    /// The number of failures so far with this user, token, code, `reason` and `isOptional`.
    public var occurrences: Int

    package init(
        code: AuthErrorCode, reason: String, userID: String?, token: SignedToken?, isOptional: Bool,
        requestTime: Date, origin: Origin, clockSkew: TimeInterval?, occurrences: Int
    ) {
        self.code = code
        self.reason = reason
        self.userID = userID
        self.token = token
        self.isOptional = isOptional
        self.requestTime = requestTime
        self.origin = origin
        self.clockSkew = clockSkew
        self.occurrences = occurrences
    }
}
