import CountersignGatewayTesting
import GatewayModel
import GatewayTestSupport
import Testing

/// Rules of every dialect.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct WireShapeTests {
    /// The beginnings of the paths of other endpoints that take a body.
    private static let others = [
        "/admin/", "/oauth/", "/v1/apps/", "/api/register", "/api/refresh_token", "/data/v2/", "/webxp/",
        "/campaigns/",
    ]

    @Test func everyEventEndpointHasAWireShape() throws {
        let client = try GatewayFixture(.standard).client()
        let document = try #require(client.get("/openapi.json")?.json["paths"] as? [String: [String: Any]])
        let endpoints = document.filter { path, operations in
            operations["post"] != nil && !Self.others.contains { path.hasPrefix($0) }
        }
        #expect(Set(endpoints.keys) == Set(WireShape.all.flatMap(\.paths)))
    }

    @Test(arguments: WireShape.all)
    func anInvalidTokenIsRejectedWithItsCode(shape: WireShape) throws {
        // A token that is the only credential must be valid even if the app requires no tokens.
        let isOnlyCredential = shape.dialect.key == nil
        let fixture = try GatewayFixture(.standard, enforcement: isOnlyCredential ? .disabled : .required)
        let client = try fixture.client()
        // The last path for locations includes the app.
        let target = WireShape.target(try #require(shape.paths.last))
        var tokens: [(String?, Int)] = [
            (nil, 26), ("nonsense", 20), (try fixture.token(for: "user-1", lifetime: -60), 22),
            (try fixture.token(for: "user-1", key: SharedKeys.stranger()), 27),
        ]
        if !isOnlyCredential { tokens.append((try fixture.token(for: "user-2"), 21)) }
        let body = shape.body(shape.event("m"))
        for (token, code) in tokens {
            let answer = try #require(client.send("POST", target, shape.headers(fixture, token: token), body))
            #expect(answer.status == 401)
            #expect(answer.authErrorCode == code)
            if let token { #expect(!answer.body.contains(token)) }
        }
        #expect(try fixture.rows("message_id").isEmpty)
    }

    @Test(arguments: WireShape.all)
    func anEventIsStoredOnceByItsID(shape: WireShape) throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        for time in ["1795249800", "1795249801"] {
            let body = shape.body(shape.event("m", [shape.dialect.time: time]))
            #expect(try shape.send(body, to: fixture, fixture.client()).status < 300)
        }
        #expect(try fixture.rows("message_id") == [["m"]])
    }
}
