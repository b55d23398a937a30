internal import CountersignCore
internal import CountersignJOSE
package import GatewayHTTP
internal import GatewayModel

/// The token service's endpoints (RFC 6749, 7009, 7517 and 8414).
package struct OAuthEndpoints: Dialect {
    let service: TokenService

    package init(service: TokenService) {
        self.service = service
    }

    package var endpoints: [Endpoint] {
        [
            Endpoint(method: "POST", path: "/oauth/token") { request, _ in
                service.answering { () throws(OAuthError) in try token(request) }
            }.described(Self.tokenOperation).forPages,
            Endpoint(method: "POST", path: "/oauth/revoke") { request, _ in
                service.answering { () throws(OAuthError) in try revoke(request) }
            }.described(Self.revokeOperation).forPages,
            Endpoint(method: "GET", path: "/.well-known/jwks.json") { request, _ in .answer(keys(request)) }
                .described(
                    APIOperation(
                        summary: "Publish the keys that verify access tokens",
                        answer: ["type": "object", "required": ["keys"]])),
            Endpoint(method: "GET", path: "/.well-known/oauth-authorization-server") { _, _ in
                .answer(.json(200, metadata.bytes).with("Cache-Control", "public, max-age=600"))
            }.described(
                APIOperation(
                    summary: "Describe the token service",
                    answer: ["type": "object", "required": ["issuer", "token_endpoint"]])),
        ]
    }

    // MARK: /oauth/token

    private func token(_ request: HTTPRequest) throws(OAuthError) -> HTTPOutcome {
        let form = try OAuthForm(request)
        guard let grantType = form["grant_type"] else {
            throw OAuthError(.invalidRequest, "grant_type is missing")
        }
        guard let grant = OAuthClient.Grant(rawValue: grantType) else {
            let known = OAuthClient.Grant.allCases.map(\.rawValue).joined(separator: " and ")
            throw OAuthError(.unsupportedGrantType, "the grant types are \(known)")
        }
        let caller = try service.caller(request, form)
        if case .client(let client, _) = caller {
            request.context.appID = client.appID
            guard client.grants.contains(grant) else {
                throw OAuthError(.unauthorizedClient, "this client may not use the grant type \(grantType)")
            }
        }
        if let scope = form["scope"], !TokenScope.contains(TokenScope.all, scope) {
            throw OAuthError(.invalidScope, "the only scope is \(TokenScope.all)")
        }
        switch grant {
        case .clientCredentials: return try clientCredentials(caller, form)
        case .refreshToken:
            guard let text = form["refresh_token"] else {
                throw OAuthError(.invalidRequest, "refresh_token is missing")
            }
            return try service.exchange(
                text, caller, scope: form["scope"], for: request, finish: Self.response)
        }
    }

    private func clientCredentials(
        _ caller: ClientAuthentication.Caller, _ form: OAuthForm
    ) throws(OAuthError) -> HTTPOutcome {
        switch caller {
        case .anonymous:
            throw OAuthError(.invalidClient, "the client must authenticate with a secret or an assertion")
        case .device:
            throw OAuthError(.unauthorizedClient, "an app's devices may not use this grant type")
        case .client(let client, let assertion):
            try service.limit("client " + client.id)
            return service.issue(
                to: client, spending: assertion, scope: form["scope"] ?? TokenScope.all, finish: Self.response
            )
        }
    }

    /// RFC 6749, section 5.1.
    private static func response(_ pair: IssuedPair) -> HTTPResponse {
        var members: JSONObject = [
            "access_token": .string(pair.accessToken), "token_type": "Bearer",
            "expires_in": .integer(Int64(pair.expiresIn)), "scope": .string(pair.scope),
        ]
        members["refresh_token"] = pair.refreshToken.map { .string($0) }
        return .json(200, JSONValue.object(members).bytes)
    }

    // MARK: /oauth/revoke

    /// A refresh token revokes its token family, an access token only itself. Unknown tokens are ignored (RFC
    /// 7009, section 2.2).
    private func revoke(_ request: HTTPRequest) throws(OAuthError) -> HTTPOutcome {
        let form = try OAuthForm(request)
        guard let token = form["token"] else { throw OAuthError(.invalidRequest, "token is missing") }
        let caller = try service.caller(request, form)
        return service.revoke(token, caller, for: request) { .json(200, Array("{}".utf8)) }
    }

    // MARK: Keys and metadata

    private func keys(_ request: HTTPRequest) -> HTTPResponse {
        do {
            let keys = try service.publishedKeys().map(\.key.publicKey)
            return HTTPResponse.json(200, Array(JWKSet(keys: keys).json.utf8)).with(
                "Cache-Control", "public, max-age=600")
        } catch {
            return StoreFailure(reason: .failed, detail: error.reason).response(request)
        }
    }

    /// RFC 8414, section 2.
    private var metadata: JSONValue {
        let issuer = service.issuer
        let methods: JSONValue = ["client_secret_basic", "client_secret_post", "private_key_jwt", "none"]
        return [
            "issuer": .string(issuer), "token_endpoint": .string(issuer + "/oauth/token"),
            "revocation_endpoint": .string(issuer + "/oauth/revoke"),
            "jwks_uri": .string(issuer + "/.well-known/jwks.json"),
            "grant_types_supported": .array(OAuthClient.Grant.allCases.map { .string($0.rawValue) }),
            // Required and not empty (section 3.2), although there is no authorization endpoint.
            "response_types_supported": ["none"],
            "scopes_supported": [.string(TokenScope.all)],
            "token_endpoint_auth_methods_supported": methods,
            "token_endpoint_auth_signing_alg_values_supported": ["RS256"],
            "revocation_endpoint_auth_methods_supported": methods,
            "revocation_endpoint_auth_signing_alg_values_supported": ["RS256"],
        ]
    }

    private static let client: JSONObject = [
        "client_id": ["type": "string"], "client_secret": ["type": "string"],
        "client_assertion": ["type": "string"],
        "client_assertion_type": ["const": .string(ClientAuthentication.assertionType)],
    ]

    private static let tokenOperation = APIOperation(
        summary: "Issue an access token",
        body: [
            "type": "object", "required": ["grant_type"],
            "properties": .object(
                client.merging([
                    "grant_type": ["enum": .array(OAuthClient.Grant.allCases.map { .string($0.rawValue) })],
                    "refresh_token": ["type": "string"], "scope": ["type": "string"],
                ]) { own, _ in own }),
        ], bodyTypes: ["application/x-www-form-urlencoded"], answer: APIOperation.schema("OAuthTokens"),
        rejections: [401], failure: "OAuthFailure")

    private static let revokeOperation = APIOperation(
        summary: "Revoke a token",
        body: [
            "type": "object", "required": ["token"],
            "properties": .object(
                client.merging(["token": ["type": "string"], "token_type_hint": ["type": "string"]]) {
                    own, _ in
                    own
                }),
        ], bodyTypes: ["application/x-www-form-urlencoded"], answer: ["type": "object"], rejections: [401],
        failure: "OAuthFailure")
}
