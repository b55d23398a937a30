internal import CountersignCore
internal import CountersignCrypto
internal import CountersignJOSE
internal import CountersignJSON
internal import Foundation
internal import GatewayHTTP
package import GatewayModel

/// Authenticates the client of a request to `/oauth/…` (RFC 6749, section 2.3; RFC 7523, section 2.2).
package struct ClientAuthentication {
    static let assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    /// The maximum lifetime in seconds. Limited, because the id of a used assertion is stored until its expiry.
    static let longestAssertion = 3_600.0
    static let leeway = 60.0

    let apps: AppRegistry
    let audiences: BytewiseSet
    /// Seconds since 1970.
    let now: Double

    package enum Caller {
        case anonymous
        /// A device of an app. It has no credentials; `client_id` is the app's id.
        case device(appID: String)
        /// An authenticated client. An assertion must still be recorded as used, to prevent replay.
        case client(OAuthClient, SpentAssertion?)
    }

    /// Authenticates the client. Throws `invalid_client`, or `invalid_request` for parameters that do not fit together.
    func caller(_ request: HTTPRequest, _ form: OAuthForm) throws(OAuthError) -> Caller {
        let basic = try Self.basic(request)
        let ways = [basic?.secret, form["client_secret"], form["client_assertion"]].compactMap(\.self)
        guard ways.count <= 1 else {
            throw OAuthError(.invalidRequest, "a client may authenticate in only one way per request")
        }
        if let id = form["client_id"], let basic, !basic.id.utf8.elementsEqual(id.utf8) {
            throw OAuthError(.invalidRequest, "client_id and Authorization name different clients")
        }
        if let assertion = form["client_assertion"] {
            guard form["client_assertion_type"] == Self.assertionType else {
                throw OAuthError(.invalidRequest, "client_assertion_type must be \(Self.assertionType)")
            }
            return try self.caller(assertion: assertion, clientID: form["client_id"])
        }
        guard let id = basic?.id ?? form["client_id"] else { return .anonymous }
        guard let secret = basic?.secret ?? form["client_secret"] else {
            guard apps.client(id: id) == nil, apps.app(id: id) != nil else {
                throw OAuthError(.invalidClient, "the client is unknown, or did not authenticate")
            }
            return .device(appID: id)
        }
        guard let client = apps.client(id: id), client.secretHash == SHA256.digest(secret) else {
            throw OAuthError(.invalidClient, "the client is unknown, or its secret is wrong")
        }
        return .client(client, nil)
    }

    /// Reads `Authorization: Basic`. Ignores other schemes, because an SDK may send the token that it refreshes.
    private static func basic(_ request: HTTPRequest) throws(OAuthError) -> (id: String, secret: String?)? {
        guard let value = request.header("authorization") else { return nil }
        let parts = value.split(separator: " ", maxSplits: 1)
        guard let scheme = parts.first, scheme.lowercased() == "basic" else { return nil }
        guard parts.count == 2, let decoded = Data(base64Encoded: String(parts[1])) else {
            throw OAuthError(
                .invalidClient, "Authorization: Basic must hold the base64 of the id, a colon and the secret")
        }
        let halves = [UInt8](decoded).split(
            separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        // Both parts are form-encoded (section 2.3.1). Ids and secrets of this gateway need no escapes, so
        // clients may omit the encoding.
        guard halves.count == 2, let id = OAuthForm.decode(halves[0]),
            let secret = OAuthForm.decode(halves[1])
        else {
            throw OAuthError(
                .invalidClient, "Authorization: Basic must hold the base64 of the id, a colon and the secret")
        }
        return (id, secret.isEmpty ? nil : secret)
    }

    private func caller(assertion: String, clientID: String?) throws(OAuthError) -> Caller {
        let jws: CompactJWS
        do throws(JOSEError) {
            jws = try CompactJWS(parsing: assertion)
        } catch {
            throw OAuthError(.invalidClient, "the assertion cannot be read: \(error.reason)")
        }
        // Unverified: used only to choose the key.
        guard let id = Self.text("iss", of: jws.payload) else {
            throw OAuthError(
                .invalidClient,
                "the assertion's payload is not a JSON object without duplicate members, or has no iss")
        }
        guard clientID?.utf8.elementsEqual(id.utf8) ?? true else {
            throw OAuthError(.invalidClient, "client_id is another client than the assertion's iss")
        }
        // The assertion of an unknown client is verified too, so that the response does not reveal which clients exist.
        let client = apps.client(id: id)
        let key = client?.publicKey.map { KeyRing.Entry(id: "client", text: $0, algorithm: .rs256) }
        let verifier = TokenVerifier(
            keys: KeyRing(entries: key.map { [$0] } ?? []),
            policy: ClaimsPolicy(
                leeway: Self.leeway, maximumLifetime: Self.longestAssertion, issuers: [id],
                requiresIssuer: true)
        )
        let report = verifier.inspect(assertion, at: now)
        guard report.isAccepted, let claims = report.claims, let client else {
            throw OAuthError(.invalidClient, Self.rejection(report.faults.first))
        }
        guard claims.subject.utf8.elementsEqual(id.utf8) else {
            throw OAuthError(.invalidClient, "the assertion's sub differs from its iss")
        }
        guard claims.audience.contains(where: { $0.utf8.count <= 2_048 && audiences.contains($0) }) else {
            throw OAuthError(
                .invalidClient, "the assertion's aud is not this server; see the issuer in its metadata")
        }
        guard let assertionID = Self.text("jti", of: claims.json), (1...256).contains(assertionID.utf8.count)
        else {
            throw OAuthError(.invalidClient, "the assertion needs a jti of 1 to 256 bytes")
        }
        let forgetAt = claims.expiresAt + Self.leeway + 1
        return .client(
            client,
            SpentAssertion(
                clientID: id, id: assertionID,
                expiresMilliseconds: Milliseconds(seconds: min(forgetAt, now + 2 * Self.longestAssertion))
                    .count))
    }

    /// Claims are checked after the signature, so only the client itself learns about their faults.
    private static func rejection(_ fault: VerificationReport.Fault?) -> String {
        guard let fault, fault.code != .noMatchingPublicKeys, fault.code != .publicKeyError else {
            return
                "no client's key verifies the assertion: its iss must be the id of a client that was created "
                + "with a public key, and its signature that key's"
        }
        return "the assertion is invalid: \(fault.code.reason): \(fault.detail)"
    }

    private static func text(_ name: StaticString, of json: [UInt8]) -> String? {
        let text = try? StrictJSONParser(maximumBytes: CompactJWS.maximumBytes).parse(bytes: json) {
            $0[name]?.string
        }
        return text ?? nil
    }
}
