package import CountersignCore

/// What is learnt of a request on its way, written by whoever learns it; metrics and logs are made from it.
package struct RequestContext: Sendable {
    /// The path of its endpoint as the table has it; nil when there is no such endpoint.
    package var route: String?
    /// The app that it belongs to; nil when none was found.
    package var appID: String?
    /// How strictly that app is judged.
    package var enforcement: Enforcement?
    /// How admission ended; nil when the request did not come so far.
    package var verdict: VerdictKind?
    /// Why the token was not good, when it was not.
    package var authCode: AuthErrorCode?
    /// True when the token is good and one that a client of the app has for itself.
    package var isFromServer = false
    /// Whom the request speaks for; nil when anonymous.
    package var userID: String?
    /// The key that verified the token; nil when none did.
    package var keyID: String?
    /// The `jti` of a token that is good.
    package var tokenID: String?
    /// Stands for the token, for apps whose enforcement may return automatically; nil for all others.
    package var tokenHash: UInt64?
    /// What the client says of its software.
    package var client = ClientInfo()
    /// The token that was not good, for the samples.
    package var failure: FailedToken?
    /// What its trace is made of; nil for a request whose trace is not recorded.
    package var span: RequestSpan?
    /// Events stored.
    package var accepted = 0
    /// Events that were there already.
    package var duplicates = 0
    /// Events refused one by one.
    package var rejected = 0

    package init() {}
}

extension RequestContext {
    /// Notes what became of the events.
    package mutating func note(_ outcome: AppendOutcome) {
        accepted += outcome.accepted
        duplicates += outcome.duplicates
    }
}
