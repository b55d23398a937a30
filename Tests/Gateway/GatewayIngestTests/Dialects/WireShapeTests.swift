import CountersignGatewayTesting
import GatewayTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct WireShapeTests {
    /// The beginnings of the paths of other endpoints that take a body.
    private static let others = [
        "/admin/", "/oauth/", "/v1/apps/", "/api/register", "/api/refresh_token", "/data/v2/", "/webxp/",
        "/campaigns/",
    ]

    @Test func everyEndpointForEventsHasAShape() throws {
        let client = try GatewayFixture(.standard).client()
        let document = try #require(client.get("/openapi.json")?.json["paths"] as? [String: [String: Any]])
        let endpoints = document.filter { path, operations in
            operations["post"] != nil && !Self.others.contains { path.hasPrefix($0) }
        }
        #expect(Set(endpoints.keys) == Set(WireShape.all.flatMap(\.paths)))
    }
}
