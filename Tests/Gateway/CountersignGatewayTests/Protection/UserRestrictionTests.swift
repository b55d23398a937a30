import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import CountersignTesting
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayIngest
@testable import GatewayModel
@testable import GatewayStorage

/// Blocked, limited and revoked users, over a gateway with a simulated clock.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct UserRestrictionTests {
    private let clock = ManualClock(now: Date())
    private let fixture: GatewayFixture
    private let connection: any TestClient

    init() throws {
        let clock = clock
        fixture = try GatewayFixture(.standard, now: { clock.now })
        connection = try fixture.client()
    }

    private var now: Int64 { Milliseconds(clock.now).count }

    private func token(_ user: String, issued: Int64? = nil) throws -> String {
        var claims: JSONObject = ["sub": .string(user), "exp": .integer(now / 1_000 + 7_200)]
        if let issued { claims["iat"] = .integer(issued / 1_000) }
        return try fixture.signingKey.sign(claims: claims)
    }

    /// Sends an event with this token: of a user or, if `user` is nil, of the device `a-1`.
    private func send(_ token: String?, of user: String? = nil) throws -> TestAnswer {
        var headers = ["X-Write-Key": fixture.writeKey]
        if let token { headers["Authorization"] = "Bearer " + token }
        return try #require(connection.post(batch(trackEvent("", user: user)), headers: headers))
    }

    private func put(
        _ action: UserRestriction.Action, _ id: String, _ subject: UserRestriction.Subject = .user,
        rate: Int? = nil, seconds: Int64? = nil
    ) throws {
        try fixture.apps.restrictions.put(
            UserRestriction(
                key: "\(action) \(id)", subject: subject, id: id, action: action, requestsPerMinute: rate,
                reason: "", sinceMilliseconds: now, untilMilliseconds: seconds.map { now + $0 * 1_000 }),
            in: "shop")
        try fixture.gateway.refreshApps()
    }

    @Test func blockedUserIsRejectedUntilTheBlockEndsOrIsLifted() throws {
        try put(.block, "ada", seconds: 3_600)
        let rejected = try send(token("ada"), of: "ada")
        #expect(rejected.status == 403 && rejected.json["code"] as? String == "user_blocked")
        #expect(rejected.headers["retry-after"] == "3600")
        #expect(try send(token("bob"), of: "bob").status == 200)
        #expect(try fixture.rows("user_id") == [["bob"]])
        clock.advance(by: 3_601)
        #expect(try send(token("ada"), of: "ada").status == 200)
        try put(.block, "ada")
        #expect(try send(token("ada"), of: "ada").status == 403)
        try fixture.apps.restrictions.remove("block ada", from: "shop")
        try fixture.gateway.refreshApps()
        #expect(try send(token("ada"), of: "ada").status == 200)
    }

    @Test(arguments: WireShape.all)
    func blockedUserIsRejectedInEveryDialect(shape: WireShape) throws {
        // Locations name no user: their user is the subject of the token.
        try put(.block, "user-1")
        let body = shape.body(shape.event("m-1"))
        let rejected = try shape.send(body, to: fixture, connection, user: "user-1")
        let isBloomreach = shape.dialect.name == "bloomreach"
        #expect(rejected.status == (isBloomreach ? 503 : 403), "\(rejected.body)")
        #expect(!isBloomreach || rejected.headers["retry-after"] == "3600")
        #expect(try fixture.rows("user_id").isEmpty)
        #expect(try !#require(connection.get("/metrics")).body.contains(#"result="accepted""#))
        try fixture.apps.restrictions.remove("block user-1", from: "shop")
        try fixture.gateway.refreshApps()
        #expect(try shape.send(body, to: fixture, connection, user: "user-1").status / 100 == 2)
    }

    /// With a token of another user, the answer does not show whether the event's user is blocked.
    @Test func invalidTokenOfABlockedUserIsRejectedForTheToken() throws {
        try put(.block, "ada")
        #expect(try send(token("bob"), of: "ada").status == 401)
    }

    @Test func idsAreComparedByTheirBytes() throws {
        try put(.block, "caf\u{E9}")
        #expect(try send(token("caf\u{E9}"), of: "caf\u{E9}").status == 403)
        #expect(try send(token("cafe\u{301}"), of: "cafe\u{301}").status == 200)
    }

    @Test func blockedDeviceIsRejectedWithAndWithoutAUser() throws {
        try put(.block, "a-1", .device, seconds: 60)
        let rejected = try send(nil)
        #expect(rejected.status == 403 && rejected.json["code"] as? String == "device_blocked")
        #expect(rejected.headers["retry-after"] == "60")
        let both = trackEvent("m-1", user: "ada", extra: #","anonymousId":"a-1""#)
        let headers = ["X-Write-Key": fixture.writeKey, "Authorization": "Bearer " + (try token("ada"))]
        #expect(connection.post(batch(both), headers: headers)?.status == 403)
        #expect(try fixture.rows("user_id").isEmpty)
        #expect(try send(token("a-1"), of: "a-1").status == 200)
    }

    @Test func limitedUserGetsItsRateAndThenRetryAfter() throws {
        try put(.limit, "ada", rate: 2)
        for _ in 0..<2 { #expect(try send(token("ada"), of: "ada").status == 200) }
        let rejected = try send(token("ada"), of: "ada")
        #expect(rejected.status == 429 && rejected.json["code"] as? String == "user_rate_limited")
        #expect(rejected.headers["retry-after"] == "30")
        // A restriction of another user does not refill the bucket.
        try put(.block, "bob")
        #expect(try send(token("ada"), of: "ada").status == 429)
        clock.advance(by: 30)
        #expect(try send(token("ada"), of: "ada").status == 200)
        #expect(try send(token("ada"), of: "ada").status == 429)
    }

    /// Also for a token that the gateway has verified before.
    @Test func tokensIssuedBeforeARevocationAreRejected() throws {
        let old = try token("ada", issued: now - 5_000)
        let undated = try token("ada")
        #expect(try send(old, of: "ada").status == 200)
        try put(.revoke, "ada")
        for token in [old, undated] {
            let rejected = try send(token, of: "ada")
            let error = rejected.json["auth_error"] as? [String: Any]
            #expect(rejected.status == 401 && error?["error_code"] as? Int == 36)
        }
        clock.advance(by: 1)
        #expect(try send(token("ada", issued: now), of: "ada").status == 200)
        #expect(try send(token("bob", issued: now - 5_000), of: "bob").status == 200)
    }

    @Test func revocationSurvivesARestartAndHoldsOnOtherGateways() throws {
        try put(.revoke, "ada")
        let (other, instant) = (try fixture.place.openControl(), clock.now)
        let registry = AppRegistry(directory: other, now: { instant })
        try registry.refresh()
        let app = try #require(registry.app(id: "shop"))
        let request = AdmissionRequest(
            credential: Credential(.userToken, try token("ada", issued: now - 5_000)), userIDs: ["ada"])
        #expect(app.report(on: request, at: instant.timeIntervalSince1970).code == .userRevoked)
    }

    /// Otherwise each block would make the gateway verify every token again.
    @Test func aRestrictionKeepsTheCacheOfVerifiedTokens() throws {
        let cache = VerifiedTokenCache()
        let instant = clock.now
        let registry = AppRegistry(directory: try fixture.place.openControl(), cache: cache, now: { instant })
        try registry.refresh()
        let token = try token("ada", issued: now)
        func verify() throws {
            let app = try #require(registry.app(id: "shop"))
            _ = app.verifier.verify(token, userID: "ada", at: instant.timeIntervalSince1970)
        }
        try verify()
        try put(.block, "bob")
        try registry.refresh()
        #expect(registry.app(id: "shop")?.restrictions != nil)
        try verify()
        #expect(cache.hits == 1 && cache.count == 1)
        try fixture.apps.restrictions.remove("block bob", from: "shop")
        try registry.refresh()
        #expect(registry.app(id: "shop")?.restrictions == nil)
    }

    @Test func aRestrictionReplacesTheEarlierOneOfItsKind() throws {
        try put(.block, "ada", seconds: 10)
        try put(.limit, "ada", rate: 5)
        try put(.block, "ada")
        let found = try fixture.apps.restrictions.all(of: "shop")
        #expect(found.map(\.action) == [.block, .limit] || found.map(\.action) == [.limit, .block])
        #expect(found.allSatisfy { $0.untilMilliseconds == nil })
        let entries = try fixture.apps.auditLog.entries(limit: 3)
        #expect(entries.map(\.action) == ["restriction.block", "restriction.limit", "restriction.block"])
        #expect(entries.map(\.target) == ["ada", "ada", "ada"] && entries[0].before != nil)
        #expect(throws: GatewayError.self) { try fixture.apps.restrictions.remove("unknown", from: "shop") }
    }

    // MARK: Admin API

    @Test func revocationEndsSessionsAndLastsAsLongAsTokensDo() throws {
        let bench = try AdminBench()
        let write = try bench.token("write")
        func add(_ body: String) throws -> TestAnswer {
            try bench.ask("POST", "apps/shop/restrictions", body, write)
        }
        for maximum in [nil, 1e16, 1e300] {
            try bench.apps.setPolicy(ClaimsPolicy(maximumLifetime: maximum), for: "shop")
            #expect(try add(#"{"action":"revoke","target":"ada"}"#).json["until_ms"] is NSNull)
        }
        try bench.apps.setPolicy(ClaimsPolicy(leeway: 30, maximumLifetime: 90_000), for: "shop")
        _ = try bench.ask("POST", "apps/shop/sessions", #"{"user":"ada"}"#, write)
        let made = try add(#"{"action":"revoke","target":"ada","reason":"phone stolen"}"#)
        #expect(made.status == 201)
        #expect(made.json["until_ms"] as? Int64 == bench.now + 90_031_000)
        let sessions = try bench.ask("GET", "apps/shop/sessions?user=ada", nil, write)
        #expect(sessions.body.contains(#""state":"revoked""#))
        for bad in [
            #"{"action":"revoke","target":"a-1","subject":"device"}"#, #"{"action":"block","target":""}"#,
            #"{"action":"revoke","target":"ada","seconds":5}"#, #"{"action":"limit","target":"ada"}"#,
            #"{"action":"ban","target":"ada"}"#,
        ] { #expect(try add(bad).status == 422, "\(bad)") }
        let viewed = try bench.ask("GET", "apps/shop/restrictions", nil, bench.token("read")).body
        #expect(!viewed.contains(#""ada""#) && viewed.contains("phone stolen"))
        let id = try #require(made.json["id"] as? String)
        #expect(try bench.ask("DELETE", "apps/shop/restrictions/\(id)", nil, write).status == 204)
        #expect(try bench.ask("DELETE", "apps/shop/restrictions/\(id)", nil, write).status == 404)
    }
}
