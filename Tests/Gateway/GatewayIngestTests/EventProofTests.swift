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
        (.optional, false, ["warned", "10", "0", "optional", "native", nil, "1"]),
        (.disabled, true, ["not_judged", nil, "0", "disabled", "native", nil, "1"]),
    ])
    func anEventSaysHowItsTokenWasJudged(
        enforcement: Enforcement, hasToken: Bool, row: [String?]
    ) throws {
        let fixture = try GatewayFixture(.standard, enforcement: enforcement)
        let answer = try native(fixture, trackEvent("m-1"), token: hasToken ? try token(fixture) : nil)
        #expect(answer.status == 200)
        var row = row
        if row[0] == "warned" {
            let code = (answer.json["auth_warning"] as? [String: Any])?["error_code"] as? Int
            row[1] = code.map(String.init)
            #expect(code != nil)
        }
        #expect(try rows(fixture) == [row])
    }

    @Test func aTokenThatIsNotValidLeavesItsCodeAndNothingThatItSays() throws {
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

    @Test func everyDialectSaysIt() throws {
        let fixture = try GatewayFixture(.standard)
        let project = "0aef3a96-3804-11e8-b710-141877340e97"
        try fixture.apps.setProjectToken(project, for: fixture.appID)
        try fixture.gateway.refreshApps()
        let token = try token(fixture)
        let access = try fixture.signingKey.sign(claims: [
            "sub": "user-1", "aud": "shop", "jti": "t-1",
            "exp": .integer(Int64(Date().timeIntervalSince1970 + 600)),
        ])
        let client = try fixture.client()
        let requests: [(path: String, headers: [String: String], body: String)] = [
            (
                "/api/v3/data",
                [
                    "X-Braze-Api-Key": fixture.writeKey, "X-Braze-DataRequest": "true",
                    "X-Braze-Auth-Signature": token,
                ],
                """
                {"api_key":null,"time":1795249800,"device_id":"d","sdk_version":"13.0.0","events":[
                {"name":"ce","data":{"n":"Order"},"time":1795249790.5,"user_id":"user-1","session_id":"s"}]}
                """
            ),
            (
                "/track/v2/projects/\(project)/customers/events",
                ["Authorization": "Token \(fixture.writeKey)", "X-Countersign-Signature": token],
                #"{"customer_ids":{"registered":"user-1"},"event_type":"order"}"#
            ),
            (
                "/api/locations/\(project)", ["Authorization": "Bearer " + access],
                #"{"location":{"uuid":"u-1","timestamp":"2015-05-05T04:31:54.123Z","coords":{"latitude":45.5,"longitude":-73.5}}}"#
            ),
        ]
        for request in requests {
            let answer = client.post(request.body, path: request.path, headers: request.headers)
            #expect((200..<300).contains(answer?.status ?? 0), "\(request.path): \(answer?.body ?? "none")")
        }
        let rows = try rows(fixture)
        #expect(rows.map { $0[4] } == ["braze", "bloomreach", "geolocation"])
        for row in rows {
            #expect(
                [row[0], row[1], row[2], row[5], row[6]] == ["verified", nil, "1", "t-1", "1"], "\(row)")
        }
    }
}
