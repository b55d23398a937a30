import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import GatewayTestSupport
import Testing

/// Rejected admin requests: invalid or misleading values, and bodies that are not JSON.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct AdminRejectionTests {
    private let bench: AdminBench

    init() throws { bench = try AdminBench() }

    @Test(arguments: [
        ("PUT", "apps/shop/policy", #"{"required":["aud"]}"#),
        ("PUT", "apps/shop/policy", #"{"required":["iss"],"audience":"shop"}"#),
        ("PUT", "apps/shop/policy", #"{"required":["aud"],"audience":""}"#),
        ("PUT", "apps/shop/enforcement", #"{"state":"optional","ramp_percent":10}"#),
        (
            "PUT", "apps/shop/enforcement",
            #"{"state":"optional","scheduled":{"state":"disabled","at_ms":4102444800000,"ramp_percent":10}}"#
        ),
        ("POST", "users", #"{"name":"token:ci","role":"viewer","password":"correct horse battery"}"#),
        ("POST", "users", #"{"name":"gateway","role":"viewer","password":"correct horse battery"}"#),
        (
            "POST", "users",
            "{\"name\":\"an\u{200B}n\",\"role\":\"viewer\",\"password\":\"correct horse battery\"}"
        ),
        ("POST", "apps", "{\"id\":\"other\",\"name\":\"\\u0000\u{202E}evil\"}"),
        ("POST", "apps", #"{"id":"other","name":""}"#),
        ("GET", "apps/shop/events?from_ms=9&to_ms=3", nil),
        ("GET", "apps/shop/analytics?from_ms=9&to_ms=9", nil),
        ("GET", "apps/shop/events?limit=5&limit=5", nil), ("GET", "apps/shop/events?user=%ff", nil),
        ("GET", "apps/shop/events?user=a%00b", nil),
        ("GET", "apps/shop/events?user=" + String(repeating: "u", count: 5_000), nil),
        ("GET", "apps/shop/analytics?bucket=" + String(repeating: "m", count: 65), nil),
        (
            "PUT", "apps/shop/enforcement",
            #"{"state":"optional","scheduled":{"state":"required","at_ms":1000}}"#
        ),
    ])
    func invalidBodiesAndQueriesGet422(method: String, path: String, body: String?) throws {
        let headers = try bench.token("admin").merging(["If-Match": "*"]) { $1 }
        let answer = try bench.ask(method, path, body, headers)
        #expect(answer.status == 422, "\(answer.body)")
    }

    @Test func aRequestWithTwoKeysIsRejected() throws {
        let keys = [try SharedKeys.app(), try SharedKeys.stranger()].map {
            $0.publicKey.pem.replacing("\n", with: #"\n"#)
        }
        let headers = try bench.token("admin")
        let two = try bench.ask("POST", "apps/shop/keys", #"{"text":"\#(keys.joined())"}"#, headers)
        #expect(two.status == 422)
        #expect(try bench.ask("POST", "apps/shop/keys", #"{"text":"\#(keys[1])"}"#, headers).status == 201)
    }

    @Test(arguments: [
        ("key-source", #"{"url":"https://HOST/jwks.json","allow_private":true}"#),
        (
            "project",
            #"{"token":"shop","customer_tokens":"off","webhook":{"url":"https://HOST/","allow_private":true}}"#
        ), ("webhook", #"{"url":"https://HOST/","allow_private":true}"#),
    ])
    func onlyAnOwnerMayAllowPrivateAddresses(resource: String, template: String) throws {
        let any = ["If-Match": "*"]
        let owner = try bench.token("admin").merging(any) { $1 }
        let author = try bench.token("write").merging(any) { $1 }
        func put(_ host: String, _ headers: [String: String], _ allows: Bool = true) throws -> Int {
            try bench.ask(
                "PUT", "apps/shop/" + resource,
                template.replacing("HOST", with: host).replacing("true", with: "\(allows)"), headers
            ).status
        }
        #expect(try put("inner.example", author) == 403)
        #expect(try put("inner.example", author, false) == 200)
        #expect(try put("inner.example", author) == 403)
        #expect(try put("inner.example", owner) == 200)
        #expect(try put("inner.example", author) == 200)
        #expect(try put("other.example", author) == 403)
        #expect(try put("other.example", author, false) == 200)
    }

    @Test func anAlertWebhookOnLoopbackIsRejectedByDefault() throws {
        let headers = try bench.token("write").merging(["If-Match": "*"]) { $1 }
        for host in ["127.0.0.1", "localhost", "[::1]"] {
            let answer = try bench.ask("PUT", "apps/shop/webhook", #"{"url":"http://\#(host):1/"}"#, headers)
            #expect(answer.status == 422)
        }
    }

    /// Method, path, body and the member that the error names.
    private static let addresses = [
        ("POST", "webhooks", #"{"url":"URL","allow_private":PRIVATE}"#, "/url"),
        ("PUT", "webhook", #"{"url":"URL","allow_private":PRIVATE}"#, "/url"),
        ("PUT", "key-source", #"{"url":"URL","allow_private":PRIVATE}"#, "/url"),
        (
            "PUT", "project",
            #"{"token":"shop","customer_tokens":"off","webhook":{"url":"URL","allow_private":PRIVATE}}"#,
            "/webhook/url"
        ),
    ]

    @Test(arguments: addresses)
    func aForbiddenURLIsRejectedWhenItIsSet(
        _ method: String, _ resource: String, _ template: String, _ pointer: String
    ) throws {
        let owner = try bench.token("admin").merging(["If-Match": "*"]) { $1 }
        func send(_ url: String, isPrivate: Bool) throws -> AdminBench.Answer {
            let body = template.replacing("URL", with: url).replacing("PRIVATE", with: "\(isPrivate)")
            return try bench.ask(method, "apps/shop/" + resource, body, owner)
        }
        for host in [
            "127.0.0.1", "[::1]", "localhost", "LocalHost.", "a.localhost", "10.1.2.3", "[fd00::1]",
            "[::ffff:10.0.0.1]", "shop.example:99999", "shop.example:99999999999999999999", "8.8.8.8:22",
            "2130706433", "0x7f.1", "017700000001", "127.1", "%31%32%37.1", "2852039166",
            "169.254.169.254", "[fe80::1]", "u@shop.example", "shop.example/#a", "", "shop.example/in ",
            "shop.example/a b", "shop.example:22", "b\u{FC}cher.example",
        ] {
            let answer = try send("https://\(host)", isPrivate: false)
            #expect(answer.status == 422, "\(host)")
            let errors = answer.json["errors"] as? [[String: String]]
            #expect(errors?.map { $0["pointer"] } == [pointer], "\(answer.body)")
        }
        for url in [
            "http://shop.example/", "http://10.1.2.3/", "ftp://127.0.0.1/", "https://169.254.169.254/",
            "https://[fd00:ec2::254]/", "https://127.0.0.1:0/", "https://2852039166/",
            "https://127.0.0.1/in ",
        ] { #expect(try send(url, isPrivate: true).status == 422, "\(url)") }
        #expect(try send("https://127.0.0.1:22/", isPrivate: true).status < 300)
        #expect(try send("https://xn--bcher-kva.example/a%20b", isPrivate: false).status < 300)
        #expect(try send("https://shop.example:8443/in?a=b", isPrivate: false).status < 300)
        #expect(try send("http://localhost:1/", isPrivate: true).status < 300 || resource == "key-source")
    }

    @Test(arguments: [
        ("POST", "apps/shop/webhooks", #"{"url":"https://shop.example/X"}"#),
        ("PUT", "apps/shop/webhook", #"{"url":"https://shop.example/X"}"#),
        ("PUT", "apps/shop/policy", #"{"audience":"shopX"}"#),
        ("PUT", "apps/shop/policy", #"{"issuer":"Xshop"}"#),
        ("POST", "apps/shop/write-keys", #"{"description":"aX"}"#),
        ("POST", "apps/shop/clients", #"{"name":"aX"}"#), ("POST", "apps/shop/sessions", #"{"user":"aX"}"#),
        ("POST", "tokens", #"{"name":"aX","scopes":["read"]}"#),
        (
            "POST", "apps/shop/streams",
            #"{"name":"a","servers":"tls://nats.example","stream":"A","ca_file":"/a/X"}"#
        ), ("PATCH", "apps/shop", #"{"origins":["https://shop.exampleX"]}"#),
        ("GET", "apps/shop/events?name=X", nil), ("GET", "audit?actor=aX", nil),
    ])
    func textWithControlCharactersIsRejected(method: String, path: String, template: String?) throws {
        let headers = try bench.token("admin").merging(["If-Match": "*"]) { $1 }
        func status(_ text: String, _ code: String) throws -> Int {
            try bench.ask(
                method, path.replacing("X", with: "%" + code), template?.replacing("X", with: text), headers
            ).status
        }
        for code in ["00", "0a", "1b", "1f", "7f"] {
            #expect(try status("\\u00" + code, code) == 422, "\(code)")
        }
        #expect(try status("", "41") < 300)
    }

    @Test func anInvalidOriginIsReportedWithAPointer() throws {
        let headers = try bench.token("admin").merging(["If-Match": "*"]) { $1 }
        let answer = try bench.ask("PATCH", "apps/shop", #"{"origins":["HTTPS://x"]}"#, headers)
        #expect(answer.status == 422 && answer.body.contains(#""pointer":"/origins""#), "\(answer.body)")
    }

    @Test(arguments: [
        "apps/shop/events?user=", "apps/shop/events/export?after=", "apps/shop/events/export?type=track&user",
        "apps/shop/sessions?user=", "audit?app=", "apps/shop/samples?code=", "apps/shop/events?limit=",
    ])
    func anEmptyParameterIsRejected(path: String) throws {
        let answer = try bench.ask("GET", path, nil, bench.token("admin"))
        #expect(answer.status == 422 && answer.body.contains("is empty; leave it out"), "\(answer.body)")
    }

    @Test func aPEMKeyMayContainLineBreaks() throws {
        let headers = try bench.token("admin")
        let pem = try SigningKey.generate(.es256).publicKey.pem
        #expect(pem.contains("\n"))
        let text = pem.replacing("\n", with: #"\r\n"#)
        #expect(try bench.ask("POST", "apps/shop/keys", #"{"text":"\#(text)"}"#, headers).status == 201)
    }

    @Test(arguments: [
        ("GET", "apps/shop/events?type=foo", nil), ("GET", "apps/shop/events/export?type=foo", nil),
        ("POST", "apps/shop/consumers", #"{"name":"a","filter":{"type":"foo"}}"#),
        ("POST", "apps/shop/webhooks", #"{"url":"https://shop.example","type":"foo"}"#),
    ])
    func anUnknownEventTypeIsRejected(method: String, path: String, body: String?) throws {
        let headers = try bench.token("admin")
        #expect(try bench.ask(method, path, body, headers).status == 422)
        let known = try bench.ask(
            method, path.replacing("foo", with: "location"), body?.replacing("foo", with: "location"), headers
        )
        #expect(known.status < 300, "\(known.body)")
    }

    /// On the live stream, a client would wait forever for an app that does not exist.
    @Test(arguments: [
        "live?app=nope", "apps/nope/project/items/inbox-message", "apps/nope/events/export",
        "apps/shop/project/items/nope", "apps/nope/customers/ada",
    ])
    func missingResourcesAreReportedAndNotAudited(path: String) throws {
        let before = try bench.apps.auditLog.entries(limit: 500).count
        #expect(try bench.ask("GET", path, nil, bench.token("admin")).status == 404)
        // Creating the token adds the only entry.
        #expect(try bench.apps.auditLog.entries(limit: 500).count == before + 1)
    }

    @Test(arguments: ["apps/%00", "apps/shop/customers/a%zz", "apps/shop%2"])
    func aMalformedPathGetsProblemDetails(path: String) throws {
        let answer = try bench.ask("GET", path, nil, bench.token("read"))
        #expect(answer.status == 400)
        #expect(answer.headers["content-type"] == "application/problem+json")
        #expect(answer.json["code"] as? String == "invalid_target")
        #expect((answer.json["request_id"] as? String)?.isEmpty == false)
    }

    @Test(
        .onSQLite("backups copy its folder; PostgreSQL has its own tools"),
        arguments: [("{", 400), ("[1,", 400), (#"{"to":"/elsewhere"}"#, 422), ("{}", 201), ("", 201)])
    func aBodyForARouteWithoutOneIsRejected(body: String, status: Int) throws {
        let answer = try bench.ask("POST", "backups", body.isEmpty ? nil : body, bench.token("admin"))
        #expect(answer.status == status, "\(answer.body)")
    }

    @Test func aPolicyMayRequireAClaimThatItAlsoCompares() throws {
        let headers = try bench.token("admin").merging(["If-Match": "*"]) { $1 }
        let answer = try bench.ask(
            "PUT", "apps/shop/policy", #"{"audience":"shop","required":["aud"]}"#, headers)
        #expect(answer.status == 200, "\(answer.body)")
    }

    @Test func aBodyOfAnotherContentTypeIsRejected() throws {
        let body = #"{"id":"other"}"#
        for (type, status) in [("text/plain", 415), ("application/json; charset=utf-8", 201)] {
            let connection = try bench.client()
            let answer = try #require(
                connection.post(
                    body, path: "/admin/api/apps",
                    headers: try bench.token("admin").merging(["Content-Type": type]) { $1 }))
            #expect(answer.status == status, "\(answer.body)")
        }
    }

    @Test func aResponse401NamesTheBearerScheme() throws {
        let answer = try bench.ask("GET", "apps")
        #expect(answer.status == 401)
        #expect(answer.headers["www-authenticate"]?.hasPrefix("Bearer ") == true)
    }

    /// RFC 9110, section 9.3.2.
    @Test func headIsGetWithoutABody() throws {
        let bench = try AdminBench(.live)
        let authorization = try #require(bench.token("read")["Authorization"])
        let connection = try RawConnection(port: bench.gateway.port)
        connection.send(
            "HEAD /admin/api/apps/shop/policy HTTP/1.1\r\nHost: localhost\r\nAuthorization: \(authorization)\r\n"
                + "Connection: close\r\n\r\n")
        var lines: [String] = []
        while let line = connection.line() { lines.append(line) }
        #expect(lines.first == "HTTP/1.1 200 OK")
        #expect(lines.contains { $0.lowercased().hasPrefix("etag: ") })
        #expect(lines.last == "", "something follows the fields: \(lines)")
        // Fails if a body without a line end precedes the close.
        #expect(connection.isClosedByServer())
    }

    @Test func requestsWithoutAChangeAreNotAudited() throws {
        let headers = try bench.token("admin").merging(["If-Match": "*"]) { $1 }
        func put() throws {
            for (path, body) in [
                ("enforcement", #"{"state":"optional"}"#), ("policy", #"{"audience":"shop"}"#),
            ] {
                let answer = try bench.ask("PUT", "apps/shop/\(path)", body, headers)
                #expect(answer.status == 200)
            }
        }
        try put()
        let entries = try bench.apps.auditLog.entries(limit: 500).count
        try put()
        #expect(try bench.apps.auditLog.entries(limit: 500).count == entries)
    }

    @Test func changingThePasswordNeedsTheCurrentOne() throws {
        let visitor = try bench.visitor(.viewer, "vi")
        let elsewhere = AdminBench.visitor(try bench.signIn("vi"))
        func change(_ current: String, _ headers: [String: String]) throws -> AdminBench.Answer {
            try bench.ask(
                "PUT", "session/password",
                #"{"current_password":"\#(current)","password":"another long password"}"#, headers)
        }
        let wrong = try change("not the password", visitor.headers)
        #expect(wrong.status == 422 && wrong.body.contains(#""pointer":"/current_password""#))
        #expect(try change(AdminBench.password, bench.token("admin")).status == 409)
        #expect(try change(AdminBench.password, visitor.headers).status == 204)
        #expect(try bench.ask("GET", "session", nil, visitor.headers).status == 200)
        #expect(try bench.ask("GET", "session", nil, elsewhere.headers).status == 401)
        #expect(try bench.signIn("vi").status == 401)
        #expect(try bench.signIn("vi", "another long password").status == 200)
    }

    /// A stolen cookie alone must not allow password guesses without an audit entry.
    @Test func guessingTheCurrentPasswordIsThrottledAndAudited() throws {
        let visitor = try bench.visitor(.viewer, "vi")
        let statuses = try (0..<6).map { number in
            try bench.ask(
                "PUT", "session/password",
                #"{"current_password":"guess number \#(number)","password":"another long password"}"#,
                visitor.headers
            ).status
        }
        #expect(statuses == [422, 422, 422, 422, 422, 429])
        let entry = try bench.apps.auditLog.entries(limit: 1).first
        #expect(entry?.action == "session.blocked" && entry?.target == "vi")
    }
}
