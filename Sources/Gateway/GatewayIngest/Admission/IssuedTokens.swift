package import CountersignCore
package import CountersignJOSE
package import GatewayModel

/// Verifies access tokens issued by this gateway, which are recognized by the bytes of their headers. The app's
/// policy does not apply, because it is for tokens of other issuers.
package final class IssuedTokens: Sendable {
    /// `cache` may be shared with the apps, because each verifier finds only its own entries.
    package init(cache: VerifiedTokenCache = VerifiedTokenCache()) {
        self.cache = cache
    }
    private let state = Lock(State())
    private let revoked = Lock<BytewiseSet>([])
    private let clients = Lock<BytewiseSet>([])
    private let cache: VerifiedTokenCache

    private struct State {
        var verifier: TokenVerifier?
        var prefixes: [String] = []
        var ids: [String] = []
    }

    package func replaceKeys(_ keys: [IssuingKey]) {
        state.withLock { state in
            guard state.ids != keys.map(\.id) else { return }
            state.ids = keys.map(\.id)
            state.prefixes = keys.map(\.tokenPrefix)
            var policy = ClaimsPolicy(algorithms: [.rs256], leeway: 0, requiresType: true)
            policy.types = ["at+jwt"]
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

    package func verifies(_ key: IssuingKey) -> Bool {
        state.withLock { $0.ids.contains(key.id) }
    }

    /// `ids` has the ids of revoked token families and access tokens that have not expired.
    package func replaceRevoked(_ ids: BytewiseSet) {
        revoked.withLock { $0 = ids }
    }

    /// Replaces the ids of the existing clients. Tokens of all other clients count as revoked.
    func replaceClients(_ ids: BytewiseSet) {
        clients.withLock { $0 = ids }
    }

    package func revoke(_ id: String) {
        _ = revoked.withLock { $0.insert(id) }
    }

    /// The unverified audience of a token; nil if this gateway did not issue it.
    func unverifiedAudience(of token: String) -> String? {
        guard verifier(of: token) != nil, let jws = try? CompactJWS(parsing: token) else { return nil }
        return IssuedClaims(json: jws.payload)?.audience
    }

    /// Verifies a token. Returns nil if this gateway did not issue it; otherwise the report and the holder.
    func verify(
        _ token: String?, appID: String, userIDs: [String]?, at instant: Double
    ) -> (report: VerificationReport, holder: Principal)? {
        guard let token, let verifier = verifier(of: token) else { return nil }
        var report = verifier.inspect(token, at: instant)
        guard let verified = report.claims else { return (report, .device) }
        guard let claims = IssuedClaims(json: verified.json) else {
            report.add(.invalidPayload, "the claims are not those of an access token")
            return (report, .device)
        }
        if claims.audience != appID { report.add(.audienceMismatch, "aud does not name this app") }
        if isRevoked(claims) { report.add(.revoked, "the token, its session or its client was revoked") }
        // A token without a family belongs to an OAuth client and is valid for all users of the app. A token with
        // a family is valid only for its subject.
        if let userIDs, claims.familyID != nil {
            let foreign = userIDs.filter { !$0.utf8.elementsEqual(claims.subject.utf8) }
            if foreign.count == userIDs.count {
                report.add(.subjectMismatch, "sub is not the user of this request")
            } else if !foreign.isEmpty {
                report.add(.payloadUserIDMismatch, "the request carries ids of more than one user")
            }
        }
        return (report, claims.familyID == nil ? .server : .device)
    }

    /// The claims of an unexpired token issued by this gateway, for any app, even if revoked; nil for other tokens.
    package func claims(of token: String, at instant: Double) -> IssuedClaims? {
        guard let verifier = verifier(of: token) else { return nil }
        return verifier.inspect(token, at: instant).claims.flatMap { IssuedClaims(json: $0.json) }
    }

    private func isRevoked(_ claims: IssuedClaims) -> Bool {
        let isListed = revoked.withLock { revoked in
            revoked.contains(claims.tokenID) || claims.familyID.map(revoked.contains) == true
        }
        // The tokens of an app's own devices name the app as their client.
        let isOfClient = claims.clientID != claims.audience
        return isListed || isOfClient && !clients.withLock { $0.contains(claims.clientID) }
    }

    private func verifier(of token: String) -> TokenVerifier? {
        state.withLock { state in
            // A token whose key was deleted must fail because no key matches, not because the app rejects its `typ`.
            state.prefixes.contains { token.hasPrefix($0) } || IssuingKey.mayHaveSigned(token)
                ? state.verifier : nil
        }
    }
}
