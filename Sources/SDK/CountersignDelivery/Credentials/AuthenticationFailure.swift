public import CountersignCore
public import Foundation

/// A token that a server did not accept, or that could not be obtained.
public struct AuthenticationFailure: Sendable, Hashable {
    /// The component that detected the failure.
    public struct Origin: RawRepresentable, Hashable, Sendable {
        /// A stable word.
        public let rawValue: String

        /// Any word.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The server, when it looked at the token.
        public static let server = Origin(rawValue: "server")
        /// The token provider. It failed, timed out, or returned nothing, the rejected token or an expired
        /// token.
        public static let provider = Origin(rawValue: "provider")
        /// The app passed something that cannot be a token.
        public static let app = Origin(rawValue: "app")
    }

    /// The number that says what is wrong.
    public let code: AuthErrorCode
    /// The same as a word, such as `EXPIRED`; for other origins than the server a word such as `token_unchanged`.
    public let reason: String
    /// The user of the token.
    public let userID: String?
    /// The token; nil if the request had no token. Its description is redacted.
    public let token: SignedToken?
    /// True if the server accepted the events anyway, because the app does not require tokens.
    public let isOptional: Bool
    /// When the request began, by the device's clock.
    public let requestTime: Date
    /// The component that detected the failure.
    public let origin: Origin
    /// Seconds by which the device clock is ahead of the server's (negative: behind), when the token would be good by the
    /// device clock; nil when the clocks are not to blame.
    public let clockSkew: TimeInterval?
    /// How often this has happened with this user, token and code, this time included.
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
