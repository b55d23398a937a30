import CountersignGateway
import CountersignGatewayTesting
import GatewayModel
import Testing

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct CORSTests {
    private func withPages(_ origins: [String], _ body: (GatewayFixture, any TestClient) throws -> Void)
        throws
    {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        var rules = AppRules()
        rules.origins = origins
        try fixture.apps.setRules(rules, of: fixture.appID)
        try fixture.gateway.refreshApps()
        try body(fixture, fixture.client())
    }

    private func preflight(_ connection: any TestClient, origin: String, path: String = "/v1/batch")
        -> TestAnswer?
    {
        connection.send(
            "OPTIONS", path, ["Origin": origin, "Access-Control-Request-Method": "POST"], nil)
    }

    @Test func aPageThatAnAppAllowsMayAskAndRead() throws {
        try withPages(["https://shop.example"]) { fixture, connection in
            let asked = preflight(connection, origin: "https://shop.example")
            #expect(asked?.status == 204)
            #expect(asked?.headers["access-control-allow-origin"] == "https://shop.example")
            #expect(asked?.headers["access-control-allow-methods"] == "POST")
            #expect(asked?.headers["access-control-allow-headers"]?.contains("X-Write-Key") == true)
            let headers = ["X-Write-Key": fixture.writeKey, "Origin": "https://shop.example"]
            let answer = connection.post(batch(trackEvent("m-1")), headers: headers)
            #expect(answer?.json["accepted"] as? Int == 1)
            #expect(answer?.headers["access-control-allow-origin"] == "https://shop.example")
            #expect(answer?.headers["vary"] == "Origin")
        }
    }

    @Test func anyOtherPageMayNot() throws {
        try withPages(["https://shop.example"]) { fixture, connection in
            #expect(preflight(connection, origin: "https://evil.example")?.status == 403)
            #expect(preflight(connection, origin: "https://shop.example", path: "/nowhere")?.status == 404)
            let headers = ["X-Write-Key": fixture.writeKey, "Origin": "https://evil.example"]
            let answer = connection.post(batch(trackEvent("m-1")), headers: headers)
            #expect(answer?.headers["access-control-allow-origin"] == nil)
            #expect(answer?.headers["vary"] == "Origin")
        }
    }

    @Test(arguments: ["https://shop.example", "https://evil.example"])
    func noPageMayAskTheAdministrationOrReadIt(origin: String) throws {
        try withPages([origin, "*"]) { _, connection in
            for path in ["/admin/api/session", "/admin/api/apps"] {
                let asked = preflight(connection, origin: origin, path: path)
                #expect(asked?.status == 405)
                let answer = connection.send("GET", path, ["Origin": origin], nil)
                #expect(answer?.status == 401)
                for answer in [asked, answer] {
                    #expect(answer?.headers["access-control-allow-origin"] == nil)
                    #expect(answer?.headers["access-control-allow-methods"] == nil)
                }
            }
        }
    }

    /// What apps do not call is not for their pages.
    @Test(arguments: [
        "/metrics", "/readyz", "/livez", "/openapi.json", "/.well-known/jwks.json",
        "/.well-known/oauth-authorization-server", "/v1/apps/shop/events", "/v1/apps/shop/consumers",
        "/v1/apps/shop/consumers/x/poll", "/nowhere", "/docs/", "/",
    ])
    func noPageReadsWhatAppsDoNotCall(path: String) throws {
        try withPages(["https://shop.example", "*"]) { _, connection in
            for method in ["GET", "POST"] {
                let answer = connection.send(method, path, ["Origin": "https://shop.example"], nil)
                #expect(answer != nil)
                #expect(answer?.headers["access-control-allow-origin"] == nil, "\(method)")
            }
            let asked = preflight(connection, origin: "https://shop.example", path: path)
            #expect(asked?.status != 204)
            #expect(asked?.headers["access-control-allow-origin"] == nil)
        }
    }

    /// Rejections too: a page has to know why.
    @Test(arguments: [
        "/v1/batch", "/v1/track", "/v1/b", "/api/v3/data", "/api/locations", "/api/register", "/oauth/token",
        "/track/v2/projects/shop/customers", "/batch",
    ])
    func aPageReadsWhyItsAppIsRejected(path: String) throws {
        try withPages(["https://shop.example"]) { _, connection in
            let answer = connection.send(
                "POST", path, ["Origin": "https://shop.example", "Content-Type": "application/json"],
                Array("{".utf8))
            #expect((answer?.status ?? 0) >= 400)
            #expect(answer?.headers["access-control-allow-origin"] == "https://shop.example")
            #expect(preflight(connection, origin: "https://shop.example", path: path)?.status == 204)
        }
    }

    @Test func aPageOfAnotherAppDoesNotReadTheAnswersOfThisOne() throws {
        try withPages(["https://shop.example"]) { fixture, connection in
            _ = try fixture.apps.createApp(id: "blog")
            var rules = AppRules()
            rules.origins = ["https://blog.example"]
            try fixture.apps.setRules(rules, of: "blog")
            try fixture.gateway.refreshApps()
            let headers = ["X-Write-Key": fixture.writeKey, "Origin": "https://blog.example"]
            let answer = connection.post(batch(trackEvent("m-1")), headers: headers)
            #expect(answer?.status == 200)
            #expect(answer?.headers["access-control-allow-origin"] == nil)
        }
    }

    @Test func noPageIsAllowedByDefaultAndAStarAllowsAll() throws {
        try withPages([]) { _, connection in
            #expect(preflight(connection, origin: "https://shop.example")?.status == 403)
        }
        try withPages(["*"]) { _, connection in
            #expect(
                preflight(connection, origin: "https://any.example")?.headers["access-control-allow-origin"]
                    == "*")
        }
    }

    @Test(arguments: [
        "shop.example", "https://shop.example/", "https://Shop.example", "ftp://a", "https://a b",
    ])
    func whatIsNoOriginIsRefused(origin: String) throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        var rules = AppRules()
        rules.origins = [origin]
        #expect(throws: GatewayError.self) { try fixture.apps.setRules(rules, of: fixture.appID) }
    }

    /// Braze's Web SDK and analytics.js name these in their preflights; one that is missing stops every request.
    @Test func theHeadersOfShippedWebClientsAreAllowed() throws {
        try withPages(["https://shop.example"]) { _, connection in
            let asked = preflight(connection, origin: "https://shop.example", path: "/api/v3/data/")
            #expect(asked?.status == 204)
            let allowed = Set(
                (asked?.headers["access-control-allow-headers"] ?? "").lowercased()
                    .split(separator: ", ").map(String.init))
            #expect(
                allowed.isSuperset(of: [
                    "content-type", "x-requested-with", "x-retry-count", "braze-sync-retry-count",
                    "x-braze-api-key", "x-braze-auth-signature", "x-braze-contentcardsrequest",
                    "x-braze-datarequest", "x-braze-featureflagsrequest", "x-braze-last-req-ms-ago",
                    "x-braze-req-attempt", "x-braze-req-tokens-remaining", "x-braze-request-initiated-by",
                    "x-braze-triggersrequest",
                ]))
        }
    }
}
