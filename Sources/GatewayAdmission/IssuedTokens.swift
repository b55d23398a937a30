package import CountersignCore
package import CountersignJOSE
package import GatewayModel

/// Judges access tokens that this gateway has issued, for any app.
///
/// One of ours begins with a header that we wrote, so telling it from the tokens of an app's own backend costs a
/// comparison. The app's own policy is not asked: it is about tokens that others sign, and it takes none of this type.
package final class IssuedTokens: Sendable {

    /// `cache` may be the apps' as well: each verifier finds its own tokens only.
    package init(cache: VerifiedTokenCache = VerifiedTokenCache()) {
        self.cache = cache
    }
    private let state = Lock(State())
    private let revoked = Lock<BytewiseSet>([])
    private let clients = Lock<BytewiseSet>([])
    private let cache: VerifiedTokenCache

    private struct State {
        var verifier: TokenVerifier?
        var prefixes: [[UInt8]] = []
        var ids: [String] = []
    }

    /// Takes over the keys that verify from now on.
    package func replaceKeys(_ keys: [IssuingKey]) {
        state.withLock { state in
            guard state.ids != keys.map(\.id) else { return }
            state.ids = keys.map(\.id)
            state.prefixes = keys.map(\.tokenPrefix)
            var policy = ClaimsPolicy(algorithms: [.rs256], leeway: 0, requiresType: true)
            policy.type = "at+jwt"
            state.verifier =
                keys.isEmpty
                ? nil
                : TokenVerifier(
                    keys: KeyRing(
                        entries: [],
                        published: keys.map { KeyRing.Entry(id: $0.id, key: $0.key.publicKey) }),
                    policy: policy, cache: cache)
        }
    }

    /// Whether tokens that this key signs are known.
    package func verifies(_ key: IssuingKey) -> Bool {
        state.withLock { $0.ids.contains(key.id) }
    }

    /// Token families and access tokens that were revoked and might otherwise still be good.
    package func replaceRevoked(_ ids: BytewiseSet) {
        revoked.withLock { $0 = ids }
    }

    /// The clients that there are; the tokens of all others are revoked.
    func replaceClients(_ ids: BytewiseSet) {
        clients.withLock { $0 = ids }
    }

    /// A token family or an access token was revoked just now.
    package func revoke(_ id: String) {
        _ = revoked.withLock { $0.insert(id) }
    }

    /// What our token says, before anything is verified; nil when it is none of ours.
    func unverifiedAudience(of token: String) -> String? {
        guard verifier(of: token) != nil, let jws = try? CompactJWS(parsing: token) else { return nil }
        return IssuedClaims(json: jws.payload)?.audience
    }

    /// Judges a token; nil when it is none of ours. Returns what was found, and who has it.
    func judge(
        _ token: String?, appID: String, userIDs: [String]?, at instant: Double
    ) -> (report: VerificationReport, holder: TokenHolder)? {
        guard let token, let verifier = verifier(of: token) else { return nil }
        var report = verifier.inspect(token, at: instant)
        guard let verified = report.claims else { return (report, .device) }
        guard let claims = IssuedClaims(json: verified.json) else {
            report.add(.invalidPayload, "the claims are not those of an access token")
            return (report, .device)
        }
        if claims.audience != appID { report.add(.audienceMismatch, "aud does not name this app") }
        if isRevoked(claims) { report.add(.revoked, "the token, its session or its client was revoked") }
        // A client's own token speaks for the whole app; a family's for its subject.
        if let userIDs, claims.sessionID != nil {
            let foreign = userIDs.filter { !$0.utf8.elementsEqual(claims.subject.utf8) }
            if foreign.count == userIDs.count {
                report.add(.subjectMismatch, "sub is not the user of this request")
            } else if !foreign.isEmpty {
                report.add(.payloadUserIDMismatch, "the request carries ids of more than one user")
            }
        }
        return (report, claims.sessionID == nil ? .server : .device)
    }

    /// The claims of a token of ours that is good now, whatever its app; nil for all others.
    package func claims(of token: String, at instant: Double) -> IssuedClaims? {
        guard let verifier = verifier(of: token) else { return nil }
        return verifier.inspect(token, at: instant).claims.flatMap { IssuedClaims(json: $0.json) }
    }

    private func isRevoked(_ claims: IssuedClaims) -> Bool {
        let isListed = revoked.withLock { revoked in
            revoked.contains(claims.tokenID) || claims.sessionID.map(revoked.contains) == true
        }
        return isListed || (claims.sessionID == nil && !clients.withLock { $0.contains(claims.subject) })
    }

    private func verifier(of token: String) -> TokenVerifier? {
        let (isOurs, verifier) = state.withLock { state in
            (state.prefixes.contains { token.utf8.starts(with: $0) }, state.verifier)
        }
        // One whose key was deleted has no key that matches, rather than a header that nobody understands.
        return isOurs || IssuingKey.mayHaveSigned(token) ? verifier : nil
    }
}
