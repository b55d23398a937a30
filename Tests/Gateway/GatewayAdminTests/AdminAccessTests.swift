internal import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import GatewayIngest
import GatewayModel
import GatewayTestSupport
import Testing

/// Permissions of the admin API by role, credential and origin.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct AdminAccessTests {
    /// The path of an operation on the app `shop`. Its other ids do not exist.
    private func path(_ template: String) -> String {
        "/admin/api"
            + template.replacing("{app}", with: "shop").replacing("{kind}", with: "in-app-message")
            .replacing("{id}", with: "none").replacing("{name}", with: "none")
    }

    /// Every operation of the API and its role; nil if it needs no credential.
    static let roles: [(String, AdminRole?)] = [
        ("GET /setup", nil), ("POST /setup", nil), ("POST /session", nil), ("GET /session", .viewer),
        ("DELETE /session", .viewer), ("GET /overview", .viewer), ("GET /openapi.json", .viewer),
        ("GET /live", .viewer), ("GET /settings", .owner), ("GET /audit", .viewer),
        ("GET /audit/verify", .viewer), ("GET /users", .owner), ("POST /users", .owner),
        ("GET /users/{name}", .owner), ("PATCH /users/{name}", .owner), ("DELETE /users/{name}", .owner),
        ("GET /tokens", .owner), ("POST /tokens", .owner), ("GET /tokens/{id}", .owner),
        ("DELETE /tokens/{id}", .owner), ("GET /backups", .owner), ("POST /backups", .owner),
        ("POST /backups/{name}/verify", .owner), ("GET /signing-keys", .owner),
        ("POST /signing-keys", .owner), ("GET /apps", .viewer), ("POST /apps", .operator),
        ("GET /apps/{app}", .viewer), ("PATCH /apps/{app}", .operator),
        ("GET /apps/{app}/write-keys", .viewer), ("POST /apps/{app}/write-keys", .operator),
        ("GET /apps/{app}/write-keys/{id}", .viewer), ("DELETE /apps/{app}/write-keys/{id}", .operator),
        ("GET /apps/{app}/keys", .viewer), ("POST /apps/{app}/keys", .operator),
        ("POST /apps/{app}/keys/preview", .operator), ("GET /apps/{app}/keys/{id}", .viewer),
        ("PATCH /apps/{app}/keys/{id}", .operator), ("DELETE /apps/{app}/keys/{id}", .operator),
        ("GET /apps/{app}/key-source", .viewer), ("PUT /apps/{app}/key-source", .operator),
        ("DELETE /apps/{app}/key-source", .operator), ("GET /apps/{app}/enforcement", .viewer),
        ("PUT /apps/{app}/enforcement", .operator), ("GET /apps/{app}/enforcement/preview", .viewer),
        ("GET /apps/{app}/restrictions", .viewer), ("POST /apps/{app}/restrictions", .operator),
        ("DELETE /apps/{app}/restrictions/{id}", .operator), ("GET /apps/{app}/policy", .viewer),
        ("PUT /apps/{app}/policy", .operator), ("GET /apps/{app}/webhook", .viewer),
        ("PUT /apps/{app}/webhook", .operator), ("GET /apps/{app}/webhooks", .viewer),
        ("POST /apps/{app}/webhooks", .operator), ("GET /apps/{app}/webhooks/{id}", .viewer),
        ("PATCH /apps/{app}/webhooks/{id}", .operator), ("DELETE /apps/{app}/webhooks/{id}", .operator),
        ("POST /apps/{app}/webhooks/{id}/pause", .operator),
        ("POST /apps/{app}/webhooks/{id}/resume", .operator),
        ("POST /apps/{app}/webhooks/{id}/rotate", .operator),
        ("POST /apps/{app}/webhooks/{id}/test", .operator),
        ("POST /apps/{app}/webhooks/{id}/replay", .operator),
        ("GET /apps/{app}/webhooks/{id}/deliveries", .viewer),
        ("GET /apps/{app}/token-rules", .viewer), ("PUT /apps/{app}/token-rules", .operator),
        ("GET /apps/{app}/clients", .viewer), ("POST /apps/{app}/clients", .operator),
        ("DELETE /apps/{app}/clients/{id}", .operator), ("GET /apps/{app}/sessions", .viewer),
        ("POST /apps/{app}/sessions", .operator), ("DELETE /apps/{app}/sessions", .operator),
        ("DELETE /apps/{app}/sessions/{id}", .operator), ("GET /apps/{app}/project", .viewer),
        ("PUT /apps/{app}/project", .operator), ("POST /apps/{app}/project/private-keys", .operator),
        ("DELETE /apps/{app}/project/private-keys/{id}", .operator),
        ("GET /apps/{app}/project/items/{kind}", .viewer),
        ("GET /apps/{app}/project/items/{kind}/{id}", .viewer),
        ("PUT /apps/{app}/project/items/{kind}/{id}", .operator),
        ("DELETE /apps/{app}/project/items/{kind}/{id}", .operator), ("GET /apps/{app}/events", .viewer),
        ("GET /apps/{app}/customers/{id}", .operator), ("DELETE /apps/{app}/customers/{id}", .operator),
        ("GET /apps/{app}/events/export", .operator), ("GET /apps/{app}/events/{position}", .viewer),
        ("GET /apps/{app}/analytics", .viewer), ("GET /apps/{app}/analytics/top", .viewer),
        ("GET /apps/{app}/analytics/export", .viewer), ("GET /error-codes", .viewer),
        ("GET /identity-providers", .viewer), ("GET /identity-providers/{id}", .viewer),
        ("POST /apps/{app}/tokens/verify", .viewer), ("PUT /session/password", .viewer),
        ("GET /audit/export", .viewer), ("GET /apps/{app}/samples", .viewer),
        ("GET /apps/{app}/samples/{id}", .viewer), ("POST /apps/{app}/samples/{id}/recheck", .viewer),
        ("POST /session/second-factor", .viewer), ("POST /session/second-factor/confirm", .viewer),
        ("POST /session/second-factor/recovery-codes", .viewer),
        ("POST /session/second-factor/disable", .viewer), ("DELETE /users/{name}/second-factor", .owner),
        ("GET /sign-in-rules", .owner), ("PUT /sign-in-rules", .owner),
        ("POST /apps/{app}/keys/import", .operator), ("DELETE /apps/{app}/project/sync-tokens", .operator),
        ("DELETE /apps/{app}", .owner), ("GET /app-deletions", .viewer),
        ("GET /apps/{app}/consumers", .viewer), ("POST /apps/{app}/consumers", .operator),
        ("GET /apps/{app}/consumers/{name}", .viewer), ("DELETE /apps/{app}/consumers/{name}", .operator),
        ("POST /apps/{app}/consumers/{name}/seek", .operator), ("GET /apps/{app}/streams", .viewer),
        ("POST /apps/{app}/streams", .owner), ("GET /cluster", .viewer),
        ("GET /apps/{app}/streams/{name}", .viewer), ("DELETE /apps/{app}/streams/{name}", .operator),
        ("POST /apps/{app}/streams/{name}/pause", .operator),
        ("POST /apps/{app}/streams/{name}/resume", .operator),
        ("POST /apps/{app}/streams/{name}/seek", .operator), ("GET /apps/{app}/files", .viewer),
        ("POST /apps/{app}/files/pause", .operator), ("POST /apps/{app}/files/resume", .operator),
    ]

    /// The test repeats the roles, so that widening a role needs a change here too.
    @Test func everyRouteHasTheExpectedRole() throws {
        let bench = try AdminBench()
        let found = Set(try bench.operations().map { "\($0.method) \($0.path) \($0.role ?? "nobody")" })
        // The former path of streams, for one release.
        let former = Self.roles.map { ($0.0.replacing("/streams", with: "/sinks"), $0.1) }
        let wanted = Set((Self.roles + former).map { "\($0.0) \($0.1?.rawValue ?? "nobody")" })
        #expect(found.symmetricDifference(wanted).isEmpty)
    }

    @Test func everyRouteRejectsLowerRoles() throws {
        let bench = try AdminBench()
        let operations = try bench.operations()
        #expect(operations.count > 70)
        #expect(Set(operations.compactMap(\.role)) == ["viewer", "operator", "owner"])
        #expect(
            operations.filter { $0.role == nil }.map { "\($0.method) \($0.path)" }
                == ["POST /session", "GET /setup", "POST /setup"])
        let people: [(AdminRole?, [String: String])] = [
            (nil, [:]), (.viewer, try bench.token("read")), (.operator, try bench.token("write")),
            (.owner, try bench.token("admin")), (.viewer, try bench.visitor(.viewer, "vi").headers),
            (.operator, try bench.visitor(.operator, "op").headers),
            (.owner, try bench.visitor(.owner, "own").headers),
        ]
        for (role, headers) in people {
            for (method, template, needed) in operations {
                // Signing out would end the session of the other requests.
                if method == "DELETE", template == "/session" { continue }
                let body = method == "GET" || method == "DELETE" ? nil : "{}"
                let answer = try bench.ask(method, path(template), body, headers)
                let what =
                    "\(method) \(template) as \(role?.rawValue ?? "nobody"): \(answer.body.prefix(200))"
                #expect(answer.status != 405 && answer.status < 500, "\(what)")
                guard let needed = needed.flatMap({ AdminRole(rawValue: $0) }) else {
                    #expect(![401, 403].contains(answer.status), "\(what)")
                    continue
                }
                guard let role else {
                    #expect(answer.status == 401, "\(what)")
                    continue
                }
                #expect((answer.status == 403) == (role < needed), "\(what)")
                #expect(answer.status != 401, "\(what)")
            }
        }
    }

    @Test func aChangeByCookieNeedsTheCSRFTokenAndTheOwnOrigin() throws {
        let bench = try AdminBench()
        let visitor = try bench.visitor(.owner, "ada")
        func status(_ changes: [String: String?]) throws -> Int {
            var headers = visitor.headers
            for (name, value) in changes { headers[name] = value }
            return try bench.ask("POST", "apps/shop/write-keys", "{}", headers).status
        }
        #expect(try status([:]) == 201)
        #expect(try status(["X-CSRF-Token": nil]) == 403)
        #expect(try status(["X-CSRF-Token": "wrong"]) == 403)
        #expect(try status(["Origin": "https://evil.example"]) == 403)
        #expect(try status(["Origin": "http://localhost.evil.example"]) == 403)
        #expect(try status(["Origin": "null"]) == 403)
        // Not origins in the serialized form that browsers send (RFC 6454, section 6.2).
        for origin in [
            "http://evil@localhost", "http://evil:pw@localhost", "http://@localhost", "http://localhost/",
            "http://localhost/a", "http://localhost?", "http://localhost#", "http://localhost:",
            "http://localhost:80", "https://localhost:443", "http://localhost.", "HTTP://localhost",
            "http://LOCALHOST", "http:localhost", "http:/localhost", "http:///localhost", "//localhost",
            "localhost", "ftp://localhost", "http://localhost http://evil.example", "http://localhost\\",
            "http://%6cocalhost", "",
        ] { #expect(try status(["Origin": origin]) == 403, "\(origin)") }
        for (host, origin) in [
            ("LOCALHOST", "http://localhost"), ("localhost", "https://localhost"),
            ("localhost:80", "http://localhost"), ("localhost:443", "https://localhost"),
            ("localhost:8787", "http://localhost:8787"), ("[::1]:8787", "http://[::1]:8787"),
            ("[::1]", "http://[::1]"),
        ] { #expect(try status(["Host": host, "Origin": origin]) == 201, "\(host) \(origin)") }
        for (host, origin) in [
            ("localhost:8787", "http://localhost"), ("localhost", "http://localhost:8787"),
            ("localhost:443", "http://localhost"), ("localhost:80", "https://localhost"),
            ("evil@localhost", "http://evil@localhost"), ("localhost/", "http://localhost/"),
            ("localhost:99999", "http://localhost:99999"), ("", "http://"),
        ] {
            #expect(try ![200, 201].contains(status(["Host": host, "Origin": origin])), "\(host) \(origin)")
        }
        #expect(try status(["Origin": nil]) == 403)
        #expect(try status(["Origin": nil, "Sec-Fetch-Site": "same-origin"]) == 201)
        #expect(try status(["Origin": nil, "Sec-Fetch-Site": "cross-site"]) == 403)
        // Eve's token is not valid with Ada's cookie.
        let other = try bench.visitor(.owner, "eve")
        #expect(try status(["X-CSRF-Token": other.csrf]) == 403)
        // A GET request and a request with an API token need no `Origin` and no CSRF token.
        #expect(try bench.ask("GET", "apps", nil, ["Cookie": visitor.cookie]).status == 200)
        #expect(try bench.ask("POST", "apps/shop/write-keys", "{}", bench.token("write")).status == 201)
    }

    /// A proxy may pass on another Host than the browser's.
    @Test func aChangeFromTheOriginOfThePublicURLIsAccepted() throws {
        let bench = try AdminBench { $0.publicURL = "https://gateway.example" }
        let visitor = try bench.visitor(.owner, "ada")
        for (origin, status) in [
            ("https://gateway.example", 201), ("https://gateway.example.evil.example", 403),
        ] {
            var headers = visitor.headers
            headers["Origin"] = origin
            #expect(try bench.ask("POST", "apps/shop/write-keys", "{}", headers).status == status)
        }
    }

    /// A resource's id is not valid under another app.
    @Test func resourcesOfOneAppAreNotFoundUnderAnother() throws {
        let bench = try AdminBench()
        let headers = try bench.token("admin")
        _ = try bench.apps.createApp(id: "other")
        let family = try TokenFamilyDirectory(bench.place).open(for: "user-1", of: "shop").family.id
        let key = try bench.apps.addKey(SharedKeys.stranger().publicKey.pem, to: "shop").id
        let webhook = try bench.ask(
            "POST", "apps/shop/webhooks", #"{"url":"https://shop.example/"}"#, headers)
        let paths = [
            "sessions/\(family)", "keys/\(key)",
            "write-keys/\(try bench.apps.createWriteKey(for: "shop", description: "").entry.id)",
            "clients/\(try bench.apps.clients.create(of: "shop", name: "warehouse").client.id)",
            "webhooks/\(try #require(webhook.json["id"] as? String))",
        ]
        for path in paths {
            #expect(try bench.ask("DELETE", "apps/other/\(path)", nil, headers).status == 404, "\(path)")
        }
        for path in paths {
            #expect(
                [200, 204].contains(try bench.ask("DELETE", "apps/shop/\(path)", nil, headers).status),
                "\(path)")
        }
    }

    @Test func foreignPagesCannotSignABrowserIn() throws {
        let bench = try AdminBench()
        _ = try bench.visitor(.owner, "ada")
        let body = #"{"name":"ada","password":"\#(AdminBench.password)"}"#
        let foreign = try bench.ask("POST", "session", body, ["Origin": "https://evil.example"])
        #expect(foreign.status == 403)
        #expect(foreign.json["code"] as? String == "csrf")
        #expect(foreign.headers["set-cookie"] == nil)
        #expect(try bench.ask("POST", "session", body, ["Origin": "http://localhost"]).status == 200)
    }

    @Test func adminAndEventRoutesAreOnSeparateListeners() throws {
        let bench = try AdminBench(.live) {
            $0.adminHost = "127.0.0.1"
            $0.adminPort = 0
        }
        let token = try bench.token("admin")
        #expect(bench.gateway.port != bench.gateway.adminPort)
        for path in ["/admin/", "/admin/api/setup", "/admin/api/apps"] {
            #expect(try bench.ask("GET", path, nil, token, by: bench.client()).status == 404)
            #expect(try bench.ask("GET", path, nil, token).status == 200)
        }
        #expect(try bench.ask("POST", "/v1/batch", "{}", token).status == 404)
        #expect(try bench.ask("GET", "/metrics", nil, token).status == 404)
        #expect(try bench.ask("GET", "/readyz", nil, [:], by: bench.client()).status == 200)
    }

    @Test func rejectionsAreProblemDetails() throws {
        let bench = try AdminBench()
        let token = try bench.token("admin")
        let large = #"{"id":"big","name":""# + String(repeating: "x", count: 1 << 20) + #""}"#
        let rejections: [(String, String, String?, Int, String)] = [
            ("GET", "nothing", nil, 404, "not_found"), ("PUT", "apps", "{}", 405, "method_not_allowed"),
            ("POST", "apps", #"{"id":"#, 400, "invalid_json"),
            ("POST", "apps", #"{"id":"a","id":"b"}"#, 400, "invalid_json"),
            ("POST", "apps", "[]", 422, "invalid"), ("POST", "apps", #"{"id":7}"#, 422, "invalid"),
            ("POST", "apps", #"{"id":"a","colour":"red"}"#, 422, "invalid"),
            ("POST", "apps", large, 413, "too_large"), ("GET", "apps?limit=0", nil, 422, "invalid"),
            ("GET", "apps?form=1", nil, 422, "invalid"),
            ("GET", "apps/shop/events?user=%FF", nil, 422, "invalid"),
            ("GET", "apps/none", nil, 404, "not_found"), ("POST", "apps", #"{"id":"shop"}"#, 409, "conflict"),
        ]
        for (method, path, body, status, code) in rejections {
            let answer = try bench.ask(method, path, body, token)
            let what = "\(method) \(path): \(answer.body.prefix(300))"
            #expect(answer.status == status, "\(what)")
            #expect(answer.headers["content-type"] == "application/problem+json", "\(what)")
            #expect(answer.headers["cache-control"] == "no-store, no-transform", "\(what)")
            #expect(answer.json["status"] as? Int == status, "\(what)")
            #expect(answer.json["code"] as? String == code, "\(what)")
            #expect(answer.json["type"] as? String == "/admin/problems/\(code)", "\(what)")
            for member in ["title", "detail", "request_id"] {
                #expect((answer.json[member] as? String)?.isEmpty == false, "\(what)")
            }
        }
        let unknown = try bench.ask("POST", "apps", #"{"id":"a","co~l/r":1}"#, token).json
        #expect((unknown["errors"] as? [[String: String]])?.first?["pointer"] == "/co~0l~1r")
        #expect(try bench.ask("GET", "nothing", nil, token).body.contains("see /admin/api/openapi.json"))
        let query = try bench.ask("GET", "apps?form=1", nil, token).json
        #expect((query["errors"] as? [[String: String]])?.first?["parameter"] == "form")
    }
}
