import CountersignGateway
import CountersignGatewayTesting
import GatewayModel
import GatewayTestSupport
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
        connection.send("OPTIONS", path, ["Origin": origin, "Access-Control-Request-Method": "POST"], nil)
    }

    @Test func anAllowedOriginPassesThePreflightAndReadsResponses() throws {
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

    @Test func otherOriginsFailThePreflightAndReadNothing() throws {
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
    func adminEndpointsHaveNoCORSHeadersAndRejectPreflights(origin: String) throws {
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

    @Test(arguments: [
        "/metrics", "/readyz", "/livez", "/openapi.json", "/.well-known/jwks.json",
        "/.well-known/oauth-authorization-server", "/v1/apps/shop/events", "/v1/apps/shop/consumers",
        "/v1/apps/shop/consumers/x/poll", "/nowhere", "/docs/", "/",
    ])
    func endpointsThatAppsDoNotCallHaveNoCORSHeaders(path: String) throws {
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

    /// Pages can read why a request was rejected.
    @Test(
        arguments: Set(WireShape.all.flatMap(\.paths)).map { WireShape.target($0) }
            + ["/api/register", "/oauth/token", "/batch"])
    func anAllowedOriginReadsRejectionsOfEveryEventEndpoint(path: String) throws {
        try withPages(["https://shop.example"]) { _, connection in
            let answer = connection.send(
                "POST", path, ["Origin": "https://shop.example", "Content-Type": "application/json"],
                Array("{".utf8))
            #expect((answer?.status ?? 0) >= 400)
            #expect(answer?.headers["access-control-allow-origin"] == "https://shop.example")
            #expect(preflight(connection, origin: "https://shop.example", path: path)?.status == 204)
        }
    }

    @Test func anOriginOfAnotherAppCannotReadResponses() throws {
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

    @Test func noOriginIsAllowedByDefaultAndAStarAllowsAll() throws {
        try withPages([]) { _, connection in
            #expect(preflight(connection, origin: "https://shop.example")?.status == 403)
        }
        try withPages(["*"]) { _, connection in
            #expect(
                preflight(connection, origin: "https://any.example")?.headers["access-control-allow-origin"]
                    == "*")
        }
    }

    /// A page cannot read an error code without CORS headers. After `body_too_large` it must send smaller requests.
    @Test(
        arguments: [
            ("POST", "/v1/batch", ["Content-Length": "99999999"], nil, 413, "body_too_large"),
            ("POST", "/v1/batch", ["Content-Encoding": "br"], "{}", 415, "unsupported_encoding"),
            ("POST", "/v1/batch", ["Content-Encoding": "gzip"], "not gzip", 400, "invalid_encoding"),
            (
                "POST", "/v1/batch", ["X": String(repeating: "x", count: 17_000)], "{}", 431,
                "header_too_large"
            ),
            ("POST", "/v1/batch", ["Host": "a b"], "{}", 400, "invalid_host"),
            ("PUT", "/v1/batch", [:], "{}", 405, "method_not_allowed"),
            ("POST", "/v1/batch", [:], "{", 400, "invalid_json"),
        ] as [(String, String, [String: String], String?, Int, String)])
    func rejectionsHaveCORSHeadersForAllowedOriginsOnly(
        method: String, path: String, headers: [String: String], body: String?, status: Int, code: String
    ) throws {
        for (origin, allowed) in [
            ("https://shop.example", "https://shop.example"), ("https://evil.example", nil),
        ] {
            // Each origin gets its own connection, because some rejections close it.
            try withPages(["https://shop.example"]) { _, connection in
                let answer = connection.send(
                    method, path, headers.merging(["Origin": origin]) { $1 }, body.map { Array($0.utf8) })
                #expect(answer?.status == status)
                #expect(answer?.json["code"] as? String == code)
                #expect(answer?.headers["access-control-allow-origin"] == allowed)
                #expect(answer?.headers["vary"] == "Origin")
            }
        }
    }

    @Test func rejectionsOfAdminRequestsHaveNoCORSHeaders() throws {
        try withPages(["*"]) { _, connection in
            let answer = connection.send(
                "POST", "/admin/api/apps", ["Origin": "https://a.example", "Content-Encoding": "br"], [])
            #expect(answer?.status == 415)
            #expect(answer?.headers["access-control-allow-origin"] == nil)
        }
    }

    @Test(arguments: [
        "capacitor://localhost", "ionic://localhost", "tauri://localhost", "app://bundle", "app://.",
        "chrome-extension://abcdefghijklmnopabcdefghijklmnop",
        "moz-extension://0d2a6e2c-5b4c-4d0c-9b1d-6a2f4c9d1a11",
        "safari-web-extension://0d2a6e2c-5b4c-4d0c-9b1d-6a2f4c9d1a11", "https://a_b.example",
        "http://[::1]:8080", "http://127.0.0.1:3000", "https://xn--bcher-kva.example", "http://localhost",
        "https://shop.example:8443", "https://shop.example.", "https://xn--a-0fa.a--b.example",
        "https://1a.example", "https://a.0xg", "https://1.2.3.example",
        "https://\(String(repeating: "a", count: 63)).example",
        "https://\(String(repeating: "a.", count: 126))b",
    ])
    func originsOfAppsAndBrowsersAreValid(origin: String) throws {
        var rules = AppRules()
        rules.origins = [origin]
        try rules.checkOrigins(besides: [])
        try withPages([origin]) { _, connection in
            #expect(preflight(connection, origin: origin)?.headers["access-control-allow-origin"] == origin)
        }
    }

    @Test(arguments: [
        "shop.example", "https://*.a.example", "ftp://a", "https://*.example.com", "*.example.com",
        "https://*", "https://a..b", "https://.a", "https://a/", "https://a/b", "https://a?b", "https://a#b",
        "https://u@a", "https://A.example", "HTTPS://a", "https://a:443", "http://a:80", "https://a:0",
        "https://a:08", "https://a:99999", "https://a:", "https://", "null", "file://", "data://a", "ws://a",
        "https://a b", "https://b\u{fc}cher.example", "http://127.1", "http://256.1.1.1", "http://0x7f.0.0.1",
        "http://[0:0::1]", "http://[::1", "https:a", "app://", "capacitor://localhost/", "1app://x", "", " ",
        "capacitor://LOCALHOST", "Capacitor://localhost",
        "safari-web-extension://0D2A6E2C-5B4C-4D0C-9B1D-6A2F4C9D1A11", "https://-a.com", "https://a-.com",
        "https://a.-b.com", "https://a.b-", "capacitor://-a", "ionic://a-", "https://a..", "app://..",
        "https://\(String(repeating: "a", count: 64)).com", "app://\(String(repeating: "a", count: 64))",
        "https://\(String(repeating: "a.", count: 126))bb", "app://\(String(repeating: "a.", count: 126))bb",
        "https://1.2.3", "https://1.2.3.4.", "https://1.2.3.4.5", "https://01.2.3.4", "https://0x7f000001",
        "https://2130706433", "https://a.1", "https://a.0x", "https://a.0x1f.", "https://a.1.", "https://0x",
        "https://1.2.3.0x4", "https://1.2.3.08", "https://+1.2.3.4",
    ])
    func malformedOriginsAreRejected(origin: String) {
        var rules = AppRules()
        rules.origins = [origin]
        #expect(throws: GatewayError.self) { try rules.checkOrigins(besides: []) }
    }

    @Test func invalidOriginsAreNotStored() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        var rules = AppRules()
        rules.origins = ["https://shop.example/"]
        #expect(throws: GatewayError.self) { try fixture.apps.setRules(rules, of: fixture.appID) }
    }

    @Test func thePreflightAllowsTheKeyAndTokenHeadersOfEveryDialect() throws {
        try withPages(["https://shop.example"]) { _, connection in
            let asked = preflight(connection, origin: "https://shop.example")
            let fields = asked?.headers["access-control-allow-headers"] ?? ""
            let allowed = fields.split(separator: ", ").map(String.init)
            for dialect in WireShape.all.map(\.dialect) {
                #expect(dialect.key.map { allowed.contains($0.field) } ?? true, "\(dialect.name)")
                #expect(allowed.contains(dialect.token.field), "\(dialect.name)")
            }
        }
    }

    /// Headers in the preflights of Braze's Web SDK and analytics.js. A missing header blocks every request.
    @Test func thePreflightAllowsTheHeadersOfBrazeAndSegmentWebClients() throws {
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
