public import CountersignCore

/// An access token, and how to get the next one.
///
/// A token can be refreshed when there are a `refreshUrl`, a `refreshToken` and at least one field in `refreshPayload`.
/// Without those a refused token waits for the app to hand over another.
public struct AuthorizationConfiguration: Sendable, Hashable {
    /// What a number that says when a token expires means.
    public struct ExpiresUnit: RawRepresentable, Hashable, Sendable {
        /// A stable word.
        public let rawValue: String

        /// Any word.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// From 10¹¹ on milliseconds since 1970, from 10⁹ on seconds since 1970, below that seconds from now.
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
    /// The token that goes with each request: for JWT letters, digits, `-`, `.`, `_`, `~`, `+`, `/`, `|`, and `=` at its end
    /// (RFC 6750, section 2.1), for SAS printable ASCII.
    public var accessToken: String?
    /// When the token expires: see `expiresUnit`. 0 and below: not known, so that only a refusal leads to a refresh.
    /// Seconds from now count from the moment at which this pair of tokens was first handed over.
    public var expires: Double = -1
    /// Where to get the next token: an `http` or `https` URL. The method is `POST`, redirects are not followed.
    public var refreshUrl: String?
    /// What the token is refreshed with.
    public var refreshToken: String?
    /// The fields of the request. `{refreshToken}` and `{accessToken}` are replaced wherever they stand in a string, in
    /// nested objects and arrays too.
    public var refreshPayload: JSONObject?
    /// Header fields of the request, with the same replacements. Nil: `Authorization` with the present access token, as the
    /// strategy sends it: for SAS without `Bearer`.
    /// Empty: no header fields but the content type, not even those that all requests carry. With a content type of
    /// `application/json` the payload is sent as JSON, otherwise as a form.
    public var refreshHeaders: [String: String]?
    /// Statuses beside 401 that mean that the token was refused, such as 403, 419 or 498.
    ///
    /// An answer that says `insufficient_scope` never counts: no other token would help (RFC 6750, section 3.1).
    public var refreshStatuses: Set<Int> = []
    /// What the numbers mean that say when a token expires, here and in answers.
    public var expiresUnit = ExpiresUnit.auto
    /// Paths of `accessToken`, `refreshToken` and `expires` in an answer, such as `$.data.tokens[0].jwt`. Members that are not
    /// listed are found by their names.
    public var responseMapping: [String: String] = [:]

    /// Makes a configuration without a token.
    public init() {}
}

extension AuthorizationConfiguration: CustomStringConvertible, CustomReflectable {
    /// Everything but the tokens, header values and fields.
    public var description: String {
        "AuthorizationConfiguration(\(strategy.rawValue), accessToken: \(accessToken == nil ? "none" : "redacted"), "
            + "refreshToken: \(refreshToken == nil ? "none" : "redacted"), expires: \(expires))"
    }

    /// The same, for `dump`.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
