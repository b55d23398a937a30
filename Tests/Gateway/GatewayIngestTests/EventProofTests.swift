import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

/// The authentication data that a stored event keeps from its request.
@Suite(.timeLimit(.minutes(5)))
struct EventProofTests {
    private func token(_ fixture: GatewayFixture, lifetime: Double = 600) throws -> String {
        try fixture.signingKey.sign(claims: [
            "sub": "user-1", "jti": "t-1", "exp": .integer(Int64(Date().timeIntervalSince1970 + lifetime)),
        ])
    }

    private func rows(_ fixture: GatewayFixture) throws -> [[String?]] {
        try fixture.rows(
            "verdict", "code", "CASE WHEN key_id IS NULL THEN 0 ELSE 1 END", "enforcement", "dialect",
            "token_id", "CASE WHEN length(request_id) > 0 THEN 1 ELSE 0 END")
    }

    private func native(_ fixture: GatewayFixture, _ event: String, token: String?) throws -> TestAnswer {
        var headers = ["X-Write-Key": fixture.writeKey]
        headers["Authorization"] = token.map { "Bearer " + $0 }
        return try #require(try fixture.client().post(batch(event), headers: headers))
    }

    @Test(arguments: [
        (Enforcement.required, true, ["verified", nil, "1", "required", "native", "t-1", "1"]),
        (.optional, true, ["verified", nil, "1", "optional", "native", "t-1", "1"]),
        (.optional, false, ["warned", "26", "0", "optional", "native", nil, "1"]),
        (.disabled, true, ["not_judged", nil, "0", "disabled", "native", nil, "1"]),
    ])
    func anEventIsStoredWithTheVerdictOfItsToken(
        enforcement: Enforcement, hasToken: Bool, row: [String?]
    ) throws {
        let fixture = try GatewayFixture(.standard, enforcement: enforcement)
        let answer = try native(fixture, trackEvent("m-1"), token: hasToken ? try token(fixture) : nil)
        #expect(answer.status == 200)
        #expect(try rows(fixture) == [row])
    }

    @Test func anInvalidTokenLeavesItsCodeAndNoClaims() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .optional)
        _ = try native(fixture, trackEvent("m-1"), token: try token(fixture, lifetime: -600))
        #expect(try rows(fixture) == [["warned", "22", "0", "optional", "native", nil, "1"]])
    }

    @Test func aRequestWithoutAUserIsAnonymous() throws {
        let fixture = try GatewayFixture(.standard)
        let event = #"{"type":"track","messageId":"m-1","anonymousId":"d-1","event":"Opened"}"#
        #expect(try native(fixture, event, token: nil).status == 200)
        #expect(try rows(fixture) == [["anonymous", nil, "0", "required", "native", nil, "1"]])
    }

    @Test(arguments: WireShape.all)
    func everyDialectStoresTheVerdict(shape: WireShape) throws {
        let fixture = try GatewayFixture(.standard)
        let client = try fixture.client()
        for (number, path) in shape.paths.enumerated() {
            let body = shape.body(shape.event("m-\(number)"))
            let answer = try shape.send(body, to: fixture, client, at: path, user: "user-1")
            #expect((200...201).contains(answer.status), "\(path): \(answer.body)")
        }
        let row = ["verified", nil, "1", "required", shape.dialect.name, "t-1", "1"]
        #expect(try rows(fixture) == Array(repeating: row, count: shape.paths.count))
    }

    private func keepClaims(_ fixture: GatewayFixture) throws {
        var policy = ClaimsPolicy()
        policy.keptClaims = ["tenant", "level", "vip", "long", "large", "list", "https://example.com/plan"]
        try fixture.edit { try $0.setPolicy(policy, for: fixture.appID) }
    }

    private func tokenWithClaims(_ fixture: GatewayFixture, lifetime: Double = 600) throws -> String {
        try fixture.signingKey.sign(claims: [
            "sub": "user-1", "aud": .string(fixture.appID), "tenant": "acme", "level": 3, "vip": true,
            "long": .string(String(repeating: "x", count: 257)), "list": ["a"], "large": .number(1e19),
            "https://example.com/plan": .string(String(repeating: "é", count: 128)), "email": "a@x.com",
            "exp": .integer(Int64(Date().timeIntervalSince1970 + lifetime)),
        ])
    }

    /// The second request finds the token in the cache.
    @Test(arguments: WireShape.all)
    func chosenClaimsAreKeptInEveryDialect(shape: WireShape) throws {
        let fixture = try GatewayFixture(.standard)
        try keepClaims(fixture)
        let client = try fixture.client()
        let token = try tokenWithClaims(fixture)
        let target = WireShape.target(try #require(shape.paths.last))
        for id in ["m-1", "m-2"] {
            let answer = try #require(
                client.send(
                    "POST", target, shape.headers(fixture, token: token), shape.body(shape.event(id))))
            #expect((200...201).contains(answer.status), "\(answer.body)")
        }
        let plan = String(repeating: "é", count: 128)
        let kept = #"{"https://example.com/plan":"\#(plan)","level":3,"tenant":"acme","vip":true}"#
        #expect(try fixture.rows("claims") == [[kept], [kept]])
    }

    @Test(arguments: [(Enforcement.optional, -600.0), (.disabled, 600)])
    func claimsOfAnUnverifiedTokenAreNotKept(enforcement: Enforcement, lifetime: Double) throws {
        let fixture = try GatewayFixture(.standard, enforcement: enforcement)
        try keepClaims(fixture)
        _ = try native(fixture, trackEvent("m-1"), token: try tokenWithClaims(fixture, lifetime: lifetime))
        #expect(try fixture.rows("message_id", "claims") == [["m-1", nil]])
    }
}
