internal import CountersignCore
package import Foundation
package import GatewayHTTP
package import GatewayModel
package import GatewayObservability
package import GatewayStorage

package final class TokenService: Sendable {
    package let apps: AppRegistry
    let issued: IssuedTokens
    package let store: TokenFamilyStore
    /// Limits the requests of one token family, client or address.
    let limiter: RateLimiter<BytewiseText>
    let now: @Sendable () -> Date
    private let secrets: TokenSecrets
    private let refreshKey: [UInt8]
    private let log: GatewayLog
    private let baseURL = Lock("")
    private let audiences = Lock<BytewiseSet>([])
    private let ticker = Ticker(queue: DispatchQueue(label: "token service"), everySeconds: 0.3)
    package let health: RefreshHealth
    /// Held while keys are loaded and replaced, so that older keys cannot replace newer ones.
    private let replacingKeys = Lock(())
    private let familiesSeen = Lock<(version: Int64, milliseconds: Int64)?>(nil)
    private let pruning = Lock(Pruning())
    private let retention = Lock(RetentionClock())
    /// Follows this gateway's clock; `retention` may follow the database's clock.
    private let clock = Lock(RetentionClock())

    private struct Pruning {
        var isRunning = false
        /// When the next batch is due, in milliseconds since 1970.
        var next: Int64 = 0
    }

    /// Milliseconds between two searches for expired rows, and before a retry after an error.
    private static let pruneMilliseconds: Int64 = 3_600_000
    private static let pruneRetryMilliseconds: Int64 = 60_000

    package init(
        storage: any Storage, apps: AppRegistry, issued: IssuedTokens, limits: GatewayLimits,
        gateways: @escaping @Sendable () -> Int = { 1 }, log: GatewayLog,
        health: RefreshHealth = RefreshHealth(), now: @escaping @Sendable () -> Date
    ) throws(GatewayError) {
        self.health = health
        self.apps = apps
        self.issued = issued
        self.log = log
        self.now = now
        limiter = RateLimiter(rate: limits.tokenRequestsPerSecond, sharers: gateways)
        secrets = try storage.openSecrets()
        refreshKey = try secrets.refreshKey()
        store = try storage.openTokenFamilies(refreshKey: refreshKey)
        try refresh()
    }

    var nowMilliseconds: Int64 { Milliseconds(now()).count }

    /// The value of `iss`: the gateway's URL for clients, without a slash at the end.
    var issuer: String { baseURL.withLock { $0 } }

    package func start(urls: [String]) {
        baseURL.withLock { $0 = urls.first ?? "" }
        // As the audience, Segment's clients use the token endpoint's URL without its last component.
        audiences.withLock {
            $0 = BytewiseSet(urls.flatMap { [$0, $0 + "/", $0 + "/oauth", $0 + "/oauth/token"] })
        }
        health.begin()
        ticker.start { [weak self] in
            // After an error, the ticker repeats the refresh.
            guard let self else { return }
            do throws(GatewayError) {
                try refresh()
                health.note(nil)
            } catch {
                health.note(error)
            }
        }
    }

    package func stop() {
        ticker.stop()
        store.close()
    }

    /// Loads the keys and revocations of other processes. Starts the deletion of expired rows if it is due.
    package func refresh() throws(GatewayError) {
        let now = nowMilliseconds
        // Read first: a change committed later has a newer version, so the next check finds it.
        let version = try store.version()
        // Runs on the store's queue, like revocations, so that no revocation can be overwritten.
        try store.perform { [issued, secrets, replacingKeys, familiesSeen, clock] table in
            try replacingKeys.withLock { _ throws(GatewayError) in
                if let keys = try secrets.maintain(at: now) { issued.replaceKeys(keys) }
            }
            let isKnown = familiesSeen.withLock { seen in
                // Loads again if the clock was set back. The last load may have omitted revocations of valid tokens.
                seen.map { $0.version == version && $0.milliseconds <= now } ?? false
            }
            guard !isKnown else { return }
            let time = clock.withLock { $0.time(now) }
            issued.replaceRevoked(
                BytewiseSet(try table.revokedIDs(after: time - TokenSecrets.overlapMilliseconds, at: time)))
            familiesSeen.withLock { $0 = (version, now) }
        }
        prune(at: now)
    }

    /// Deletes expired rows once an hour, in batches, one for each periodic refresh, so that requests are not
    /// delayed. The first run is at start, so that `retention` records a time before the clock can jump.
    private func prune(at now: Int64) {
        let isDue = pruning.withLock { pruning in
            guard !pruning.isRunning,
                DueTime.hasCome(pruning.next, at: now, within: Self.pruneMilliseconds)
            else { return false }
            pruning.isRunning = true
            return true
        }
        guard isDue else { return }
        store.submit(
            { [retention] in try $0.prune(at: now, by: retention) },
            completion: { [pruning, log] result in
                let pause: Int64
                switch result {
                case .success(let isDone): pause = isDone ? Self.pruneMilliseconds : 0
                case .failure(let failure):
                    if case .closed = failure.reason { return }
                    log.note(.error, "expired sessions not deleted", [("detail", failure.detail)])
                    pause = Self.pruneRetryMilliseconds
                }
                pruning.withLock { $0 = Pruning(next: now + pause) }
            })
    }

    func publishedKeys() throws(GatewayError) -> [IssuingKey] {
        // Creates the first key if necessary, because clients would cache an empty set.
        _ = try secrets.signer(at: nowMilliseconds)
        return try secrets.published(at: nowMilliseconds)
    }

    func refreshToken(_ text: String) -> RefreshToken? { RefreshToken(text, key: refreshKey) }

    package func limit(_ key: String) throws(OAuthError) {
        if case .limited(let seconds) = limiter.take(BytewiseText(key)) {
            throw .tooMany(retryAfterSeconds: seconds)
        }
    }

    /// Opens a token family. `finish` creates the response when the family is on disk.
    package func open(
        _ opening: TokenFamilyTable.Opening, for request: HTTPRequest,
        finish: @escaping (IssuedPair) -> HTTPResponse
    ) -> HTTPOutcome {
        let now = nowMilliseconds
        request.context.appID = opening.appID
        return .waiting({ [store] done in
            store.submit({ try $0.open(opening, at: now) }, completion: done)
        }) { [self] result in
            switch result {
            case .success(let (family, token)): answer(family, token, scope: nil, finish)
            case .failure(let failure): OAuthError(failure).response
            }
        }
    }

    func caller(_ request: HTTPRequest, _ form: OAuthForm) throws(OAuthError) -> ClientAuthentication.Caller {
        try ClientAuthentication(
            apps: apps, audiences: audiences.withLock { $0 }, now: now().timeIntervalSince1970
        ).caller(request, form)
    }

    package func answering(_ make: () throws(OAuthError) -> HTTPOutcome) -> HTTPOutcome {
        do throws(OAuthError) {
            return try make()
        } catch {
            return .answer(error.response)
        }
    }

    /// Exchanges a refresh token. `finish` creates the response when the new token is on disk.
    package func exchange(
        _ text: String, _ caller: ClientAuthentication.Caller, scope: String? = nil, for request: HTTPRequest,
        finish: @escaping (IssuedPair) -> HTTPResponse
    ) throws(OAuthError) -> HTTPOutcome {
        guard let token = refreshToken(text) else {
            throw OAuthError(.invalidGrant, "this gateway did not issue the refresh token")
        }
        try limit("session " + token.familyID)
        let presentation = TokenFamilyTable.Presentation(
            clientID: caller.clientID, publicClientID: caller.deviceAppID,
            now: nowMilliseconds, rules: { [apps] in apps.app(id: $0)?.tokenRules }, scope: scope,
            assertion: caller.assertion)
        let address = request.clientAddress
        return .waiting({ [store] done in
            store.submit(
                { try $0.exchange(token, presentation) },
                completion: { [self] result in
                    if case .success(.rejected(.reused(let familyID, let appID))) = result {
                        noteReuse(familyID: familyID, appID: appID, address: address)
                    }
                    done(result)
                })
        }) { [self] result in
            switch result {
            case .success(.granted(let family, let token)):
                request.context.appID = family.appID
                return answer(family, token, scope: scope, finish)
            case .success(.rejected(let rejection)): return Self.error(rejection).response
            case .failure(let failure): return OAuthError(failure).response
            }
        }
    }

    func issue(
        to client: OAuthClient, spending assertion: SpentAssertion?, scope: String,
        finish: @escaping (IssuedPair) -> HTTPResponse
    ) -> HTTPOutcome {
        let answer = { [self] () -> HTTPResponse in
            guard let rules = apps.app(id: client.appID)?.tokenRules else {
                return OAuthError(.invalidClient, "the client's app no longer exists").response
            }
            do throws(OAuthError) {
                let grant = AccessGrant(
                    appID: client.appID, subject: client.id, clientID: client.id, familyID: nil,
                    scope: scope,
                    lifetime: rules.accessSeconds)
                return finish(try issue(grant, refreshToken: nil)).withoutCaching
            } catch {
                return error.response
            }
        }
        guard let assertion else { return .answer(answer()) }
        return .waiting({ [store] done in
            store.submit({ try $0.spend(assertion) }, completion: done)
        }) { result in
            switch result {
            case .success(true): answer()
            case .success(false): Self.error(.replayed).response
            case .failure(let failure): OAuthError(failure).response
            }
        }
    }

    /// Revokes an access or refresh token. `finish` creates the response when the revocation is on disk.
    func revoke(
        _ text: String, _ caller: ClientAuthentication.Caller, for request: HTTPRequest,
        finish: @escaping () -> HTTPResponse
    ) -> HTTPOutcome {
        let now = nowMilliseconds
        let refreshToken = refreshToken(text)
        let claims = refreshToken == nil ? issued.claims(of: text, at: Milliseconds(now).seconds) : nil
        return .waiting({ [store, issued] done in
            store.submit(
                { table in
                    if let assertion = caller.assertion, try !table.spend(assertion) {
                        return TokenFamilyTable.Revocation.rejected(.replayed)
                    }
                    if let refreshToken {
                        return try table.revoke(
                            refreshToken, clientID: caller.clientID, publicClientID: caller.deviceAppID,
                            at: now)
                    }
                    guard let claims else { return .nothing }
                    return try table.revoke(
                        claims, clientID: caller.clientID, publicClientID: caller.deviceAppID)
                },
                completion: { result in
                    if case .success(.revoked(let id)) = result { issued.revoke(id) }
                    done(result)
                })
        }) { result in
            switch result {
            case .success(.rejected(let rejection)): Self.error(rejection).response
            case .success: finish().withoutCaching
            case .failure(let failure): OAuthError(failure).response
            }
        }
    }

    private func noteReuse(familyID: String, appID: String, address: String) {
        issued.revoke(familyID)
        log.note(
            .error, "a replaced refresh token was presented; its session was ended",
            [("app", appID), ("session", familyID), ("client", address)])
    }

    private func answer(
        _ family: TokenFamily, _ token: RefreshToken, scope: String?, _ finish: (IssuedPair) -> HTTPResponse
    ) -> HTTPResponse {
        guard let rules = apps.app(id: family.appID)?.tokenRules else {
            return Self.error(.unknown).response
        }
        do {
            let grant = AccessGrant(
                appID: family.appID, subject: family.subject, clientID: family.clientID ?? family.appID,
                familyID: family.id, scope: scope ?? family.scope, lifetime: rules.accessSeconds,
                endsMilliseconds: rules.end(of: family.lifetimeFromMilliseconds))
            return finish(try issue(grant, refreshToken: token.text)).withoutCaching
        } catch {
            return error.response
        }
    }

    func issue(_ grant: AccessGrant, refreshToken: String?) throws(OAuthError) -> IssuedPair {
        do {
            let instant = self.now()
            let now = Milliseconds(instant).count
            let key = try secrets.signer(at: now)
            if !issued.verifies(key) {
                try replacingKeys.withLock { _ throws(GatewayError) in
                    issued.replaceKeys(try secrets.published(at: now))
                }
            }
            // Rounded up, so that a token is valid at least as long as `expires_in`.
            let start = (now + 999) / 1000
            let end = min(start + Int64(grant.lifetime), (grant.endsMilliseconds + 999) / 1000)
            let expiresAt = max(end, start + 1)
            return IssuedPair(
                // `iat` must not be in the future, so it is not `start`, which is rounded up.
                accessToken: try key.sign(
                    grant.claims(
                        issuer: issuer, issuedAt: Int64(instant.timeIntervalSince1970), expiresAt: expiresAt)),
                expiresAt: expiresAt, expiresIn: Int(expiresAt - start), refreshToken: refreshToken,
                scope: grant.scope)
        } catch {
            log.note(.error, "an access token could not be signed", [("detail", "\(error)")])
            throw OAuthError(.serverError, "the gateway could not sign a token; its log says why")
        }
    }

    private static func error(_ rejection: TokenFamilyTable.Rejection) -> OAuthError {
        switch rejection {
        case .unknown: OAuthError(.invalidGrant, "there is no such session; log in again")
        case .expired: OAuthError(.invalidGrant, "the session has expired; log in again")
        case .revoked: OAuthError(.invalidGrant, "the session was ended; log in again")
        case .otherClient: OAuthError(.invalidGrant, "the refresh token was issued to another client")
        case .reused:
            OAuthError(
                .invalidGrant, "the refresh token had been replaced, so its session was ended; log in again")
        case .replayed: OAuthError(.invalidClient, "the assertion was used before; sign a new one")
        case .scope: OAuthError(.invalidScope, "the request asks for more than the session's scope")
        }
    }
}

struct AccessGrant {
    let appID: String
    let subject: String
    let clientID: String
    /// The token family; nil for a token of an OAuth client without a user.
    let familyID: String?
    let scope: String
    /// The lifetime of the access token, in seconds.
    let lifetime: Int
    /// The end of the token family's maximum lifetime, in milliseconds since 1970.
    var endsMilliseconds = Int64.max - 999

    /// RFC 9068, section 2.2.
    func claims(issuer: String, issuedAt: Int64, expiresAt: Int64) -> JSONObject {
        var claims: JSONObject = [
            "iss": .string(issuer), "sub": .string(subject), "aud": .string(appID),
            "client_id": .string(clientID), "scope": .string(scope), "iat": .integer(issuedAt),
            "exp": .integer(expiresAt), "jti": .string(UUIDv7.make()),
        ]
        claims["sid"] = familyID.map { .string($0) }
        return claims
    }
}

package struct IssuedPair {
    package let accessToken: String
    /// Seconds since 1970.
    package let expiresAt: Int64
    /// Seconds from the time of issue.
    let expiresIn: Int
    /// Nil for the client credentials grant (RFC 6749, section 4.4.3).
    package let refreshToken: String?
    let scope: String
}

extension ClientAuthentication.Caller {
    var clientID: String? {
        if case .client(let client, _) = self { client.id } else { nil }
    }

    var deviceAppID: String? {
        if case .device(let appID) = self { appID } else { nil }
    }

    var assertion: SpentAssertion? {
        if case .client(_, let assertion) = self { assertion } else { nil }
    }
}
