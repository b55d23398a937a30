import CountersignCore
import CountersignGatewayTesting
import CountersignJOSE
import CountersignSQLite
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayHTTP
@testable import GatewayIngest
@testable import GatewayModel
@testable import GatewayStorage

/// Tokens of identity providers, with published documents and a simulated clock.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct IdentityProviderTests {
    /// A token in the form of a provider's documentation, and the operator's settings for it.
    struct Sample: Sendable, CustomTestStringConvertible {
        let provider: String
        let tenant: String
        var audience: String?
        let issuer: String
        var type: String? = "JWT"
        var user = "user-1"
        let claims: JSONObject

        var testDescription: String { "\(provider) \(type ?? "without typ")" }
    }

    static let samples = [
        Sample(
            provider: "auth0", tenant: "example.eu.auth0.com", audience: "https://api.example.com",
            issuer: "https://example.eu.auth0.com/", user: "auth0|123456",
            claims: [
                "sub": "auth0|123456", "azp": "my_client_id", "scope": "openid profile",
                "aud": ["https://api.example.com", "https://example.eu.auth0.com/userinfo"],
            ]),
        Sample(
            provider: "auth0", tenant: "example.eu.auth0.com", audience: "https://api.example.com",
            issuer: "https://example.eu.auth0.com/", type: "at+jwt", user: "auth0|123456",
            claims: ["sub": "auth0|123456", "client_id": "my_client_id", "aud": "https://api.example.com"]),
        Sample(
            provider: "cognito", tenant: "eu-west-1_AbCdEfGhI",
            issuer: "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_AbCdEfGhI", type: nil,
            claims: ["sub": "user-1", "token_use": "access", "client_id": "app-client", "username": "ada"]),
        Sample(
            provider: "cognito", tenant: "eu-west-1_AbCdEfGhI", audience: "app-client",
            issuer: "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_AbCdEfGhI", type: nil,
            claims: ["sub": "user-1", "token_use": "id", "aud": "app-client", "cognito:username": "ada"]),
        Sample(
            provider: "firebase", tenant: "my-project", issuer: "https://securetoken.google.com/my-project",
            claims: [
                "sub": "user-1", "user_id": "user-1", "aud": "my-project", "auth_time": 900,
                "firebase": ["sign_in_provider": "password"],
            ]),
        Sample(
            provider: "supabase", tenant: "abcdefghijklmnopqrst",
            issuer: "https://abcdefghijklmnopqrst.supabase.co/auth/v1",
            claims: ["sub": "user-1", "aud": "authenticated", "role": "authenticated", "aal": "aal1"]),
        Sample(
            provider: "clerk", tenant: "clerk.example.com", issuer: "https://clerk.example.com",
            claims: ["sub": "user-1", "azp": "https://example.com", "sid": "sess_1", "v": 2]),
        Sample(
            provider: "okta", tenant: "example.okta.com/oauth2/default", audience: "api://default",
            issuer: "https://example.okta.com/oauth2/default", type: nil, user: "00uid4BxXw6I6TV4m0g3",
            claims: [
                "sub": "ada@example.com", "uid": "00uid4BxXw6I6TV4m0g3", "aud": "api://default", "ver": 1,
            ]),
        Sample(
            provider: "entra", tenant: "aaaabbbb-0000-cccc-1111-dddd2222eeee", audience: "api-client-id",
            issuer: "https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0",
            user: "00000000-0000-0000-66f3-3332eca7ea81",
            claims: [
                "sub": "pairwise", "oid": "00000000-0000-0000-66f3-3332eca7ea81", "aud": "api-client-id",
                "ver": "2.0", "tid": "aaaabbbb-0000-cccc-1111-dddd2222eeee",
            ]),
        Sample(
            provider: "keycloak", tenant: "id.example.com/realms/shop", audience: "account",
            issuer: "https://id.example.com/realms/shop",
            claims: ["sub": "user-1", "aud": "account", "typ": "Bearer", "azp": "web"]),
    ]

    private let place: TestStorage

    init() throws { place = try TestStorage() }

    /// The app with the keys that its sources publish in `documents`, by URL. `asked` receives the URLs.
    private func app(
        _ policy: ClaimsPolicy, _ sources: [String], _ documents: [String: String],
        asked: Lock<[String]> = Lock([])
    ) throws -> (AdmittedApp, AppRegistry) {
        let directory = try place.openControl()
        let writeKey = try directory.createApp(id: "shop").writeKey
        try directory.setPolicy(policy, for: "shop")
        try directory.setEnforcement(.required, for: "shop")
        try directory.setKeySources(
            KeySources(sources.map { KeySource(url: $0, allowsPrivateAddresses: false) }), of: "shop")
        let registry = AppRegistry(
            directory: directory, now: { Date(timeIntervalSince1970: 1_000) },
            fetch: { source throws(OutboundRequest.Failure) in
                asked.withLock { $0.append(source.url) }
                guard let document = documents[source.url] else {
                    throw OutboundRequest.Failure(reason: "it answered 404")
                }
                return Array(document.utf8)
            }, run: { $0() })
        try registry.refresh()
        registry.refreshPublished()
        try registry.refresh()
        return (try #require(registry.app(writeKey: writeKey)), registry)
    }

    private func code(_ app: AdmittedApp, _ token: String, _ user: String) -> Int? {
        app.report(
            on: AdmissionRequest(credential: Credential(.userToken, token), userIDs: [user]), at: 1_000
        ).code?.rawValue
    }

    private static func metadata(_ issuer: String, _ keys: String) -> String {
        #"{"issuer":"\#(issuer)","jwks_uri":"\#(keys)","response_types_supported":["code"]}"#
    }

    private func set(_ signers: SigningKey...) -> String { JWKSet(keys: signers.map(\.publicKey)).json }

    @Test(arguments: samples)
    func presetAcceptsTokensOfItsTenantOnly(sample: Sample) throws {
        let provider = try #require(IdentityProvider.all.first { $0.id == sample.provider })
        var policy = ClaimsPolicy()
        let source = try provider.fill(&policy, tenant: sample.tenant, audience: sample.audience)
        let signer = try SharedKeys.stranger()
        var documents = ["https://keys.example/jwks": set(signer)]
        documents[source.url] =
            source.issuer == nil
            ? set(signer) : Self.metadata(sample.issuer, "https://keys.example/jwks")
        let (app, _) = try app(policy, [source.url], documents)
        func code(_ type: String?, _ changed: JSONObject) throws -> Int? {
            let usual: JSONObject = ["iss": .string(sample.issuer), "iat": 990, "exp": 2_000]
            let claims = sample.claims.merging(usual) { $1 }.merging(changed) { $1 }
            return self.code(app, try signer.sign(claims: claims, type: type), sample.user)
        }
        #expect(try code(sample.type, [:]) == nil)
        #expect(try code(sample.type, ["iss": "https://other.example"]) == 34)
        if !policy.audiences.isEmpty {
            #expect(try code(sample.type, ["aud": "other"]) == 33)
            #expect(try code(sample.type, ["aud": .null]) != nil)
        }
        #expect(try code(sample.type, [policy.userClaim: "user-2"]) == 21)
        #expect(try code("secevent+jwt", [:]) == 20)
        if !policy.types.contains("at+jwt") { #expect(try code("at+jwt", [:]) == 20) }
    }

    @Test(arguments: [
        ("auth0", "https://example.eu.auth0.com", "a"), ("auth0", "a/b", "a"), ("auth0", "", "a"),
        ("auth0", "example.eu.auth0.com", nil), ("firebase", "a#b", nil), ("okta", "a@b/c", "a"),
        ("okta", "https://example.okta.com/oauth2/default", "a"), ("okta", "example.okta.com", "a"),
        ("entra", "common", "a"), ("cognito", "AbCdEfGhI", nil), ("auth0", "example", "a"),
        ("keycloak", "id.example.com", "a"), ("keycloak", "id.example.com/realms/shop/", "a"),
        ("supabase", "abcdefghijklmnopqrst.supabase.co", nil), ("cognito", "_AbCdEfGhI", nil),
        ("entra", "my-shop.onmicrosoft.com", "a"), ("firebase", "my-project.firebaseapp.com", nil),
        ("auth0", "example..com", "a"), ("okta", "/oauth2/default", "a"), ("entra", "-", "a"),
        ("keycloak", "id.example.com/../realms/shop", "a"), ("keycloak", "id.example.com:/realms/shop", "a"),
    ])
    func presetRejectsInvalidTenants(provider: String, tenant: String, audience: String?) throws {
        let provider = try #require(IdentityProvider.all.first { $0.id == provider })
        var policy = ClaimsPolicy()
        #expect(throws: GatewayError.self) {
            try provider.fill(&policy, tenant: tenant, audience: audience)
        }
    }

    @Test(arguments: [("firebase", "example.com:shop"), ("keycloak", "id.example.com:8443/auth/realms/shop")])
    func presetAcceptsATenantWithAColon(provider: String, tenant: String) throws {
        let provider = try #require(IdentityProvider.all.first { $0.id == provider })
        var policy = ClaimsPolicy()
        #expect(try provider.fill(&policy, tenant: tenant, audience: "a").url.contains(tenant))
    }

    /// A provider must not be able to sign tokens in the name of another provider.
    @Test func aProvidersKeyVerifiesOnlyItsOwnTokens() throws {
        let (one, two) = (try SharedKeys.stranger(), try SigningKey.generate(.rs256))
        var policy = ClaimsPolicy(issuers: ["https://a.example", "https://b.example/"])
        policy.requiresIssuer = true
        let sources = ["a", "b"].map { "https://\($0).example/.well-known/openid-configuration" }
        let (app, registry) = try app(
            policy, sources,
            [
                sources[0]: Self.metadata("https://a.example", "https://a.example/keys"),
                sources[1]: Self.metadata("https://b.example/", "https://b.example/keys"),
                "https://a.example/keys": set(one), "https://b.example/keys": set(one, two),
            ])
        #expect(registry.publishedKeys(of: "shop").map(\.problem) == [nil, nil])
        func code(_ signer: SigningKey, _ issuer: JSONValue) throws -> Int? {
            let claims: JSONObject = ["sub": "ada", "exp": 2_000, "iss": issuer]
            return self.code(app, try signer.sign(claims: claims), "ada")
        }
        #expect(try code(two, "https://b.example/") == nil)
        #expect(try code(two, "https://a.example") == 34)
        // A key of both providers verifies the tokens of both.
        #expect(try code(one, "https://a.example") == nil)
        #expect(try code(one, "https://b.example/") == nil)
    }

    @Test(arguments: [
        metadata("https://other.example", "https://id.example/keys"), metadata("", "https://id.example/keys"),
        metadata("https://id.example//", "https://id.example/keys"),
        metadata("https://id.example", "http://id.example/keys"),
        metadata("https://id.example", "https://127.0.0.1/keys"),
        metadata("https://id.example", "https://169.254.169.254/keys"),
        metadata("https://id.example", "https://id.example:22/keys"), #"{"issuer":"https://id.example"}"#,
        "<html>",
    ])
    func invalidMetadataAndMetadataOfAnotherIssuerAreNotFollowed(document: String) throws {
        let url = "https://id.example/.well-known/openid-configuration"
        let asked = Lock<[String]>([])
        let (_, registry) = try app(
            ClaimsPolicy(), [url],
            [url: document, "https://id.example/keys": set(try SharedKeys.stranger())], asked: asked)
        let keys = try #require(registry.publishedKeys(of: "shop").first)
        #expect(keys.keys.isEmpty && keys.problem != nil)
        #expect(asked.withLock { $0 } == [url])
    }

    @Test func settingsOfEarlierVersionsAreReadAndASingleValueKeepsTheirFormat() throws {
        let apps = try place.openControl()
        _ = try apps.createApp(id: "shop")
        let connection = try place.connection(to: "control")
        let policy = #"{"audience":"braze","issuer":null,"algorithms":["RS256"]}"#
        let source = #"{"url":"https://keys.example/jwks.json","allow_private":true}"#
        for (name, body) in [("policy", policy), ("key_source", source)] {
            try connection.run(
                "INSERT INTO app_setting (app_id, name, body) VALUES ('shop', ?1, ?2)", .text(name),
                .text(body))
        }
        var read = try apps.setting(ClaimsPolicy.self, of: "shop")
        #expect(read.audiences == ["braze"] && read.issuers.isEmpty && read.types == ["JWT"])
        #expect(read.userClaim == "sub" && read.kept.members?["audience"] == "braze")
        read.audiences.append("shop")
        #expect(read.kept.members?["audience"] == ["braze", "shop"])
        let sources = try apps.setting(KeySources.self, of: "shop")
        #expect(
            sources.all == [KeySource(url: "https://keys.example/jwks.json", allowsPrivateAddresses: true)])
        #expect(sources.kept.members?["url"] == "https://keys.example/jwks.json")
    }

    @Test func anAppFollowsFourSourcesAtMostAndEachOnce() throws {
        let apps = try place.openControl()
        _ = try apps.createApp(id: "shop")
        func follow(_ hosts: String...) throws {
            try apps.setKeySources(
                KeySources(hosts.map { KeySource(url: "https://\($0)/", allowsPrivateAddresses: false) }),
                of: "shop")
        }
        try follow("a.example", "b.example", "c.example", "d.example")
        #expect(throws: GatewayError.self) {
            try follow("a.example", "b.example", "c.example", "d.example", "e.example")
        }
        #expect(throws: GatewayError.self) { try follow("a.example", "a.example") }
    }
}
