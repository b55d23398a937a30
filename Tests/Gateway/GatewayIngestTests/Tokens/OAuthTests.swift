import CountersignCore
import CountersignCrypto
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import GatewayIngest
import GatewayModel
import GatewayTestSupport
import Testing

/// The `/oauth/…` endpoints (RFC 6749, 7009, 7523, 8414).
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct OAuthTests {
    private let fixture: GatewayFixture
    private let connection: any TestClient
    private let families: TokenFamilyDirectory
    private let client: OAuthClient
    private let secret: String
    /// Signs the client assertions of `keyed`.
    private let key: SigningKey
    private let keyed: OAuthClient

    init() throws {
        fixture = try GatewayFixture(.standard, enforcement: .required)
        connection = try fixture.client()
        families = try TokenFamilyDirectory(fixture.place)
        key = try SharedKeys.stranger()
        let made = try fixture.apps.clients.create(of: "shop", name: "warehouse")
        client = made.client
        secret = try #require(made.secret)
        keyed =
            try fixture.apps.clients.create(
                of: "shop", name: "segment", publicKey: key.publicKey.pem, grants: [.clientCredentials]
            ).client
        try fixture.gateway.refreshApps()
    }

    private func post(
        _ body: String, path: String = "/oauth/token", type: String? = "application/x-www-form-urlencoded",
        basic: (String, String)? = nil
    ) throws -> TestAnswer {
        var headers: [String: String] = [:]
        headers["Content-Type"] = type
        headers["Authorization"] = basic.map {
            "Basic " + Data("\($0.0):\($0.1)".utf8).base64EncodedString()
        }
        return try #require(connection.post(body, path: path, headers: headers))
    }

    private func error(_ answer: TestAnswer) -> String {
        "\(answer.status) \(answer.json["error"] as? String ?? answer.body)"
    }

    private var url: String { "http://127.0.0.1:\(fixture.gateway.port)" }

    private func assertion(
        _ changes: JSONObject = [:], by signer: SigningKey? = nil
    ) throws -> String {
        let now = Int64(Date().timeIntervalSince1970)
        let claims: JSONObject = [
            "iss": .string(keyed.id), "sub": .string(keyed.id), "aud": .string(url + "/oauth/token"),
            "iat": .integer(now - 5), "exp": .integer(now + 55), "jti": .string(UUID().uuidString),
        ]
        return try (signer ?? key).sign(
            claims: claims.merging(changes) { _, new in new }.filter { $0.value != .null }, keyID: "key-1")
    }

    private func postAssertion(_ assertion: String, extra: String = "") throws -> TestAnswer {
        try post(
            "grant_type=client_credentials&client_assertion_type="
                + "urn:ietf:params:oauth:client-assertion-type:jwt-bearer&client_assertion=\(assertion)"
                + "&scope=tracking_api:write" + extra)
    }

    private func upload(_ access: String, user: String, id: String = UUID().uuidString) throws -> Int {
        try #require(
            connection.post(
                batch(trackEvent(id, user: user)),
                headers: ["X-Write-Key": fixture.writeKey, "Authorization": "Bearer " + access])
        ).status
    }

    // MARK: client_credentials

    @Test func aClientCredentialsTokenMaySendEventsOfAllUsers() throws {
        let inBody = "&client_id=\(client.id)&client_secret=\(secret)"
        for answer in [
            try post("grant_type=client_credentials", basic: (client.id, secret)),
            try post("grant_type=client_credentials" + inBody), try postAssertion(assertion()),
        ] {
            #expect(answer.status == 200, "\(answer.body)")
            #expect(answer.headers["cache-control"] == "no-store")
            #expect(answer.headers["pragma"] == "no-cache")
            #expect(answer.json["token_type"] as? String == "Bearer")
            #expect(answer.json["expires_in"] as? Int == 3_600)
            #expect(answer.json["scope"] as? String == "tracking_api:write")
            #expect(answer.json["refresh_token"] == nil)
            let access = try #require(answer.json["access_token"] as? String)
            #expect(try upload(access, user: "user-1") == 200)
            #expect(try upload(access, user: "user-2") == 200)
        }
    }

    @Test func eventsOfAClientCredentialsTokenHaveTheServerVerdict() throws {
        let answer = try post("grant_type=client_credentials", basic: (client.id, secret))
        let access = try #require(answer.json["access_token"] as? String)
        #expect(try upload(access, user: "user-1", id: "m-1") == 200)
        let rows = try fixture.rows("verdict", "code", "key_id", "token_id", "user_id")
        #expect(rows.map { [$0[0], $0[1], $0[4]] } == [["server", nil, "user-1"]])
        #expect(rows.allSatisfy { $0[2] != nil && $0[3] != nil })
    }

    @Test func aDeletedClientsTokensAreRejected() throws {
        let answer = try post("grant_type=client_credentials", basic: (client.id, secret))
        let access = try #require(answer.json["access_token"] as? String)
        let opened = try families.open(for: "user-1", of: "shop", clientID: client.id)
        let refreshed = try refresh(opened.refreshToken, basic: (client.id, secret))
        let users = try #require(refreshed.json["access_token"] as? String)
        try fixture.edit { try $0.clients.delete(id: client.id) }
        #expect(try upload(access, user: "user-1") == 401)
        #expect(try upload(users, user: "user-1") == 401)
        #expect(
            error(try post("grant_type=client_credentials", basic: (client.id, secret)))
                == "401 invalid_client")
    }

    @Test func theErrorsAreThoseOfTheRFC() throws {
        let grant = "grant_type=client_credentials"
        let inBody = "&client_id=\(client.id)&client_secret=\(secret)"
        let good = (client.id, secret)
        let cases: [(String, (String, String)?, String)] = [
            ("", good, "400 invalid_request"), ("grant_type=", good, "400 invalid_request"),
            ("\(grant)&\(grant)", good, "400 invalid_request"),
            ("grant_type=%zz", good, "400 invalid_request"),
            ("grant_type=%ff", good, "400 invalid_request"),
            ("grant_type=a%00b", good, "400 invalid_request"),
            (grant + inBody, good, "400 invalid_request"),
            (grant + "&client_id=client_other", good, "400 invalid_request"),
            ("grant_type=password&username=a&password=b", good, "400 unsupported_grant_type"),
            ("grant_type=authorization_code&code=a", nil, "400 unsupported_grant_type"),
            (grant, nil, "401 invalid_client"), (grant, (client.id, "wrong"), "401 invalid_client"),
            (grant, ("client_none", secret), "401 invalid_client"), (grant, ("", ""), "401 invalid_client"),
            (grant + "&client_id=\(client.id)", nil, "401 invalid_client"),
            (grant + "&client_id=\(keyed.id)&client_secret=x", nil, "401 invalid_client"),
            (grant + "&client_id=shop", nil, "400 unauthorized_client"),
            (grant + "&scope=admin", good, "400 invalid_scope"),
            (grant + "&scope=tracking_api:write+admin", good, "400 invalid_scope"),
            ("grant_type=refresh_token", good, "400 invalid_request"),
            ("grant_type=refresh_token&refresh_token=nonsense", good, "400 invalid_grant"),
            (grant + "&x=" + String(repeating: "x", count: 70_000), good, "400 invalid_request"),
            (grant + (1...64).map { "&p\($0)=x" }.joined(), good, "400 invalid_request"),
            (grant + "&\(String(repeating: "p", count: 129))=x", good, "400 invalid_request"),
        ]
        for (body, basic, expected) in cases {
            let answer = try post(body, basic: basic)
            #expect(error(answer) == expected, "\(body.prefix(80))")
            #expect(answer.headers["cache-control"] == "no-store")
            #expect((answer.json["error_description"] as? String)?.isEmpty == false)
            #expect((answer.headers["www-authenticate"] != nil) == (answer.status == 401))
        }
        for type in ["application/json", "text/plain", nil] {
            #expect(error(try post(grant, type: type, basic: good)) == "400 invalid_request")
        }
        // Malformed Basic gets 401. A Bearer token, which an SDK may want to replace, is ignored.
        for authorization in ["Basic", "Basic !", "Basic \(Data("no colon".utf8).base64EncodedString())"] {
            let answer = try #require(
                connection.post(
                    grant, path: "/oauth/token",
                    headers: [
                        "Content-Type": "application/x-www-form-urlencoded", "Authorization": authorization,
                    ]))
            #expect(error(answer) == "401 invalid_client", "\(authorization)")
        }
        let replaced = connection.post(
            grant + inBody, path: "/oauth/token",
            headers: [
                "Content-Type": "application/x-www-form-urlencoded", "Authorization": "Bearer expired",
            ])
        #expect(replaced?.status == 200)
        #expect(try post(grant + (1...63).map { "&p\($0)=x" }.joined(), basic: good).status == 200)
        let unknown = try post(
            grant + "&foo=bar", type: "application/x-www-form-urlencoded; charset=UTF-8", basic: good)
        #expect(unknown.status == 200)
        let huge = try post(
            String(repeating: String(repeating: "x", count: 5_000), count: 1_000), basic: good)
        #expect(huge.status == 413)
    }

    @Test func theQueryIsIgnored() throws {
        let answer = try post(
            "",
            path: "/oauth/token?grant_type=client_credentials&client_id=\(client.id)&client_secret=\(secret)")
        #expect(error(answer) == "400 invalid_request")
    }

    // MARK: private_key_jwt

    @Test func aClientAssertionIsAcceptedOnceAlsoAfterARestart() throws {
        let assertion = try assertion()
        #expect(try postAssertion(assertion).status == 200)
        let again = try postAssertion(assertion)
        #expect(error(again) == "401 invalid_client")
        // Restarts the gateway: used assertions must be stored on disk.
        fixture.gateway.stop()
        var configuration = fixture.place.configuration
        configuration.port = 0
        // Keeps the public URL, which is the audience of the assertion. The port changes.
        configuration.publicURL = url
        let restarted = try Gateway(configuration: configuration)
        try TestTransport.standard.start(restarted)
        defer { restarted.stop() }
        let body =
            "grant_type=client_credentials&client_assertion_type=\(ClientAssertion.type)&client_assertion=\(assertion)"
        let answer = try TestTransport.standard.client(of: restarted).post(
            body, path: "/oauth/token", headers: ["Content-Type": "application/x-www-form-urlencoded"])
        #expect(answer?.status == 401)
        #expect((answer?.json["error_description"] as? String)?.contains("used before") == true)
    }

    @Test func allURLsOfTheTokenServerAreAcceptedAsAudience() throws {
        let port = fixture.gateway.port
        for audience: JSONValue in [
            .string(url), .string(url + "/oauth"), .string("http://localhost:\(port)/oauth/token"),
            ["https://other.example", .string(url)],
        ] {
            #expect(try postAssertion(assertion(["aud": audience])).status == 200)
        }
    }

    @Test func invalidAssertionsAreRejected() throws {
        let now = Int64(Date().timeIntervalSince1970)
        let changes: [JSONObject] = [
            ["aud": "https://other.example/token"], ["aud": .null],
            ["aud": "http://evil.example/oauth/token"],
            ["exp": .integer(now - 120)], ["exp": .null], ["exp": .integer(now + 7_200)],
            ["nbf": .integer(now + 120)], ["iat": .integer(now + 120)], ["jti": .null], ["jti": ""],
            ["jti": .string(String(repeating: "x", count: 257))], ["sub": "someone"], ["sub": .null],
            ["iss": .string(client.id), "sub": .string(client.id)], ["iss": "client_none"], ["iss": .null],
        ]
        for change in changes {
            #expect(error(try postAssertion(assertion(change))) == "401 invalid_client", "\(change)")
        }
        let other = fixture.signingKey
        #expect(error(try postAssertion(assertion(by: other))) == "401 invalid_client")
        let pss = try SigningKey(pem: key.privatePEM, algorithm: .ps256)
        #expect(error(try postAssertion(assertion(by: pss))) == "401 invalid_client")
        #expect(error(try postAssertion("nonsense")) == "401 invalid_client")
        #expect(
            error(try postAssertion(assertion(), extra: "&client_id=\(client.id)")) == "401 invalid_client")
        #expect(
            error(try post("grant_type=client_credentials&client_assertion=\(assertion())"))
                == "400 invalid_request")
        #expect(
            error(try postAssertion(assertion(), extra: "&client_secret=\(secret)")) == "400 invalid_request")
    }

    /// Returns an assertion of the client `id` with this header and an invalid signature.
    private func assertion(header: JSONValue, payload: String? = nil, of id: String) throws -> String {
        let now = Int64(Date().timeIntervalSince1970)
        let claims: JSONValue = [
            "iss": .string(id), "sub": .string(id), "aud": .string(url + "/oauth/token"),
            "exp": .integer(now + 55), "jti": .string(UUID().uuidString),
        ]
        let input = [header.bytes, payload.map { Array($0.utf8) } ?? claims.bytes].map {
            Base64URL.encode($0)
        }
        .joined(separator: ".")
        return input + "." + Base64URL.encode([UInt8](repeating: 1, count: 256))
    }

    @Test func faultsOfAnAssertionAreReported() throws {
        func said(_ assertion: String, extra: String = "") throws -> String {
            let answer = try postAssertion(assertion, extra: extra)
            #expect(error(answer) == "401 invalid_client")
            return answer.json["error_description"] as? String ?? answer.body
        }
        let now = Int64(Date().timeIntervalSince1970)
        #expect(try said(assertion(["exp": .integer(now - 120)])).contains("EXPIRED: exp passed"))
        #expect(try said(assertion(["nbf": .integer(now + 120)])).contains("nbf lies"))
        #expect(try said(assertion(["exp": .null])).contains("exp is absent"))
        #expect(try said(assertion(["iss": .null])).contains("no iss"))
        #expect(try said("nonsense").contains("three parts"))
        #expect(
            try said(assertion(), extra: "&client_id=\(client.id)").contains("client_id is another client"))
        // The errors are equal for a client with a key, a client without a key and an unknown client.
        for id in [keyed.id, client.id, "client_none"] {
            let good: JSONValue = ["alg": "RS256", "typ": "JWT"]
            let header: [(JSONValue, String)] = [
                (["alg": "RS256", "crit": ["b64"], "b64": true], "crit"),
                (["alg": "RS256", "typ": "dpop+jwt"], "typ"), (["alg": "RS256", "typ": "at+jwt"], "typ"),
                (["alg": "none"], "alg is missing"), (["alg": "HS256"], "alg is missing"),
                (good, "no client's key verifies"),
            ]
            for (header, reason) in header {
                #expect(try said(assertion(header: header, of: id)).contains(reason), "\(id) \(header)")
            }
            let twice = #"{"iss":"\#(id)","iss":"\#(id)"}"#
            #expect(try said(assertion(header: good, payload: twice, of: id)).contains("duplicate"))
        }
    }

    @Test func aClientMayUseItsGrantsOnly() throws {
        #expect(throws: GatewayError.self) {
            try families.open(for: "user-1", of: "shop", clientID: keyed.id)
        }
        let body =
            "grant_type=refresh_token&refresh_token=x&client_assertion_type=\(ClientAssertion.type)"
            + "&client_assertion=\(try assertion())"
        #expect(error(try post(body)) == "400 unauthorized_client")
    }

    // MARK: refresh_token

    private func refresh(_ token: String, extra: String = "", basic: (String, String)? = nil) throws
        -> TestAnswer
    {
        try post("grant_type=refresh_token&refresh_token=\(token)" + extra, basic: basic)
    }

    @Test func aClientsSessionIsRefreshedByThatClientOnly() throws {
        let token = try families.open(for: "user-1", of: "shop", clientID: client.id).refreshToken
        #expect(error(try refresh(token)) == "400 invalid_grant")
        #expect(error(try refresh(token, extra: "&client_id=shop")) == "400 invalid_grant")
        let answer = try refresh(token, basic: (client.id, secret))
        #expect(answer.status == 200)
        let access = try #require(answer.json["access_token"] as? String)
        #expect(try upload(access, user: "user-1") == 200)
        #expect(try upload(access, user: "user-2") == 401)
        let next = try #require(answer.json["refresh_token"] as? String)
        #expect(next != token)
        #expect(try refresh(next, basic: (client.id, secret)).status == 200)
    }

    @Test func deviceSessionsUseTheAppsIDAsPublicClient() throws {
        try fixture.edit { _ = try $0.createApp(id: "other") }
        let token = try families.open(for: "user-1", of: "shop").refreshToken
        #expect(error(try refresh(token, extra: "&client_id=other")) == "400 invalid_grant")
        #expect(error(try refresh(token, basic: (client.id, secret))) == "400 invalid_grant")
        #expect(try refresh(token, extra: "&client_id=shop").status == 200)
        #expect(try refresh(token, basic: ("shop", "")).status == 200)
        #expect(try refresh(token).status == 200)
    }

    @Test func aReusedRefreshTokenEndsTheSessionAndItsAccessTokens() throws {
        var rules = TokenRules()
        rules.reuseSeconds = 0
        try fixture.edit { try $0.setTokenRules(rules, for: "shop") }
        let first = try families.open(for: "user-1", of: "shop")
        let second = try #require(try refresh(first.refreshToken).json["refresh_token"] as? String)
        let third = try refresh(second)
        let access = try #require(third.json["access_token"] as? String)
        #expect(try upload(access, user: "user-1") == 200)
        #expect(error(try refresh(first.refreshToken)) == "400 invalid_grant")
        #expect(
            error(try refresh(try #require(third.json["refresh_token"] as? String))) == "400 invalid_grant")
        #expect(try upload(access, user: "user-1") == 401)
        #expect(try families.families(of: "shop").map(\.revocation) == [.reuse])
    }

    @Test func anOperatorEndsSessions() throws {
        let opened = try families.open(for: "user-1", of: "shop")
        let access = try #require(try refresh(opened.refreshToken).json["access_token"] as? String)
        #expect(try families.revokeAll(of: "user-1", in: "shop") == 1)
        #expect(try families.revokeAll(of: "user-1", in: "shop") == 0)
        try fixture.gateway.refreshApps()
        #expect(error(try refresh(opened.refreshToken)) == "400 invalid_grant")
        #expect(try upload(access, user: "user-1") == 401)
    }

    @Test func tokensSurviveAKeyRotationUnlessItEndsTheOldKeys() throws {
        let opened = try families.open(for: "user-1", of: "shop")
        let access = try #require(try refresh(opened.refreshToken).json["access_token"] as? String)
        _ = try families.rotateSigningKey()
        try fixture.gateway.refreshApps()
        #expect(try upload(access, user: "user-1") == 200)
        let keys = connection.get("/.well-known/jwks.json")?.json["keys"] as? [Any]
        #expect(keys?.count == 2)
        _ = try families.rotateSigningKey(endsOthers: true)
        try fixture.gateway.refreshApps()
        #expect(try upload(access, user: "user-1") == 401)
        let report = connection.post(
            batch(trackEvent("m-1", user: "user-1")),
            headers: ["Authorization": "Bearer " + access, "X-Write-Key": fixture.writeKey])
        #expect((report?.json["auth_error"] as? [String: Any])?["error_code"] as? Int == 27)
        let fresh = try #require(try refresh(opened.refreshToken).json["access_token"] as? String)
        #expect(try upload(fresh, user: "user-1") == 200)
    }

    // MARK: Revocation

    @Test func revocationEndsTokens() throws {
        let opened = try families.open(for: "user-1", of: "shop")
        let answer = try refresh(opened.refreshToken)
        let access = try #require(answer.json["access_token"] as? String)
        let token = try #require(answer.json["refresh_token"] as? String)
        for unknown in ["nonsense", "csr_AAAA", "a.b.c"] {
            let answer = try post("token=\(unknown)", path: "/oauth/revoke")
            #expect(answer.status == 200)
            #expect(answer.headers["cache-control"] == "no-store")
        }
        #expect(try post("token=\(access)&token_type_hint=access_token", path: "/oauth/revoke").status == 200)
        #expect(try upload(access, user: "user-1") == 401)
        let other = try #require(try refresh(token).json["access_token"] as? String)
        #expect(try upload(other, user: "user-1") == 200)
        #expect(try post("token=\(token)&token_type_hint=access_token", path: "/oauth/revoke").status == 200)
        #expect(try upload(other, user: "user-1") == 401)
        #expect(error(try refresh(token)) == "400 invalid_grant")
        #expect(try post("token=\(token)", path: "/oauth/revoke").status == 200)
        #expect(error(try post("", path: "/oauth/revoke")) == "400 invalid_request")
        #expect(error(try post("token=a&token=b", path: "/oauth/revoke")) == "400 invalid_request")
        #expect(
            error(try post("token=a", path: "/oauth/revoke", basic: (client.id, "wrong")))
                == "401 invalid_client")
    }

    @Test func aClientCannotRevokeAnotherClientsTokens() throws {
        let token = try families.open(for: "user-1", of: "shop", clientID: client.id).refreshToken
        let access = try #require(
            try post("grant_type=client_credentials", basic: (client.id, secret)).json["access_token"]
                as? String)
        for token in [token, access] {
            #expect(error(try post("token=\(token)", path: "/oauth/revoke")) == "400 invalid_grant")
        }
        #expect(try upload(access, user: "user-1") == 200)
        for token in [token, access] {
            #expect(
                try post("token=\(token)", path: "/oauth/revoke", basic: (client.id, secret)).status == 200)
        }
        #expect(try upload(access, user: "user-1") == 401)
        #expect(error(try refresh(token, basic: (client.id, secret))) == "400 invalid_grant")
    }

    // MARK: Published keys and metadata

    @Test func issuedAccessTokensVerifyWithThePublishedKeys() throws {
        let answer = try post("grant_type=client_credentials", basic: (client.id, secret))
        let token = try CompactJWS(parsing: try #require(answer.json["access_token"] as? String))
        #expect(token.type == "at+jwt")
        let set = try JWKSet(json: try #require(connection.get("/.well-known/jwks.json")).body)
        #expect(set.keys.map(\.kid) == [token.keyID])
        let claims = try #require(JSONSerialization.jsonObject(with: Data(token.payload)) as? [String: Any])
        #expect(claims["iss"] as? String == url)
        #expect(claims["sub"] as? String == client.id)
        #expect(claims["client_id"] as? String == client.id)
        #expect(claims["aud"] as? String == "shop")
        #expect(claims["scope"] as? String == "tracking_api:write")
        #expect(claims["jti"] is String)
        let lifetime = (claims["exp"] as? Int ?? 0) - (claims["iat"] as? Int ?? 0)
        #expect((3_600...3_601).contains(lifetime))
    }

    @Test func theMetadataListsTheEndpoints() throws {
        let answer = try #require(connection.get("/.well-known/oauth-authorization-server"))
        #expect(answer.headers["content-type"] == "application/json")
        #expect(answer.json["issuer"] as? String == url)
        #expect(answer.json["token_endpoint"] as? String == url + "/oauth/token")
        #expect(answer.json["revocation_endpoint"] as? String == url + "/oauth/revoke")
        #expect(answer.json["jwks_uri"] as? String == url + "/.well-known/jwks.json")
        #expect(answer.json["grant_types_supported"] as? [String] == ["client_credentials", "refresh_token"])
        #expect(
            answer.json["token_endpoint_auth_methods_supported"] as? [String]
                == ["client_secret_basic", "client_secret_post", "private_key_jwt", "none"])
        #expect(answer.json["token_endpoint_auth_signing_alg_values_supported"] as? [String] == ["RS256"])
        #expect((answer.json["response_types_supported"] as? [String])?.isEmpty == false)
        #expect(answer.json["scopes_supported"] as? [String] == ["tracking_api:write"])
    }
}

private enum ClientAssertion {
    static let type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
}
