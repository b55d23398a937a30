public import CountersignCore

/// An access token and its refresh settings.
///
/// Refreshing requires a `refreshUrl`, a `refreshToken` and at least one field in `refreshPayload`. Otherwise a
/// rejected token is sent again after growing delays of up to five minutes, until the app passes a new token.
public struct AuthorizationConfiguration: Sendable, Hashable {
    /// The unit of an expiry number.
    public struct ExpiresUnit: RawRepresentable, Hashable, Sendable {
        /// A stable word, such as `epochSeconds`.
        public let rawValue: String

        /// Creates a value from its word. Words that this version does not define are allowed.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// From 10¹¹ on milliseconds since 1970, from 10⁹ on seconds since 1970, and below that as `relative`.
        public static let auto = ExpiresUnit(rawValue: "auto")
        /// Seconds since 1970.
        public static let epochSeconds = ExpiresUnit(rawValue: "epochSeconds")
        /// Milliseconds since 1970.
        public static let epochMilliseconds = ExpiresUnit(rawValue: "epochMillis")
        /// Seconds from the moment at which the number was received.
        public static let relative = ExpiresUnit(rawValue: "relative")
    }

    /// How the token is sent. Default: JWT.
    public var strategy = AuthorizationStrategy.jwt
    /// The token of each request: for JWT letters, digits, `-`, `.`, `_`, `~`, `+`, `/`, `|`, and `=` at its end (RFC
    /// 6750, section 2.1), for SAS printable ASCII.
    public var accessToken: String?
    /// When the token expires, in `expiresUnit`. With 0 and below, only a rejection leads to a refresh. A relative
    /// expiry counts from the moment at which the app first set this pair of tokens.
    public var expires: Double = -1
    /// The `http` or `https` URL of the refresh request. The method is `POST`. Redirects are not followed.
    public var refreshUrl: String?
    /// The refresh token.
    public var refreshToken: String?
    /// The fields of the request. `{refreshToken}` and `{accessToken}` are replaced in all strings, also nested ones.
    public var refreshPayload: JSONObject?
    /// Header fields of the request, with the placeholders of `refreshPayload`. With a content type of
    /// `application/json` the payload is sent as JSON, otherwise as a form.
    ///
    /// Nil: `Authorization` with the access token, as the strategy sends it. Empty: only the content type, without
    /// the header fields common to all requests.
    public var refreshHeaders: [String: String]?
    /// Statuses other than 401 that mean a rejected token, such as 403, 419 or 498. A response with
    /// `insufficient_scope` never counts, because a new token would not help (RFC 6750, section 3.1).
    public var refreshStatuses: Set<Int> = []
    /// The unit of expiry numbers, here and in responses.
    public var expiresUnit = ExpiresUnit.auto
    /// Paths of `accessToken`, `refreshToken` and `expires` in a response, such as `$.data.tokens[0].jwt`. Members
    /// without a path are found by name.
    public var responseMapping: [String: String] = [:]

    /// Makes a configuration without a token.
    public init() {}
}

extension AuthorizationConfiguration: CustomStringConvertible, CustomReflectable {
    /// The strategy, which tokens are set, and the expiry. Contains no token and no other setting.
    public var description: String {
        "AuthorizationConfiguration(\(strategy.rawValue), accessToken: \(accessToken == nil ? "none" : "redacted"), "
            + "refreshToken: \(refreshToken == nil ? "none" : "redacted"), expires: \(expires))"
    }

    /// Keeps the tokens out of `dump`: the only child is `description`.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
