package import CountersignCore

package struct RequestContext: Sendable {
    /// The path of the endpoint, as in the routing table; nil for an unknown endpoint.
    package var route: String?
    package var appID: String?
    package var enforcement: Enforcement?
    /// The result of admission; nil without one, for example when the app's rate limit rejected the request.
    package var verdict: VerdictKind?
    package var authCode: AuthErrorCode?
    /// Whether the token is valid and was issued to an OAuth client without a user.
    package var isFromServer = false
    /// The access token's subject or the request's first user, even if unverified; nil if the request names no user.
    package var userID: String?
    /// The key that verified the token; nil when no key did.
    package var keyID: String?
    package var tokenID: String?
    /// The claims of a valid token that are listed in the policy's `keptClaims`, as a JSON object.
    package var claims: String?
    /// A hash of the user token, for apps whose enforcement may return automatically; otherwise nil.
    package var tokenHash: UInt64?
    /// The app's restrictions of users and devices; nil if there are no restrictions.
    package var restrictions: UserRestrictions?
    package var client = ClientInfo()
    package var failure: FailedToken?
    /// The timestamps of the request's trace; nil when the trace is not recorded.
    package var span: RequestSpan?
    package var accepted = 0
    /// Events that were already stored.
    package var duplicates = 0
    /// Events that were rejected individually.
    package var rejected = 0

    package init() {}
}

extension RequestContext {
    package mutating func note(_ outcome: AppendOutcome) {
        accepted += outcome.accepted
        duplicates += outcome.duplicates
    }
}
