import CountersignGatewayTesting
import Testing

@testable import CountersignGateway
@testable import GatewayAdmin

/// What makes no sense, would mislead whoever reads it later, or comes as something else than JSON.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct AdminRefusalTests {
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
    ])
    func isNotValid(method: String, path: String, body: String?) throws {
        let headers = try bench.token("admin").merging(["If-Match": "*"]) { $1 }
        let answer = try bench.ask(method, path, body, headers)
        #expect(answer.status == 422, "\(answer.body)")
    }

    @Test(arguments: [
        ("key-source", #"{"url":"https://HOST/jwks.json","allow_private":true}"#),
        (
            "project",
            #"{"token":"shop","customer_tokens":"off","webhook":{"url":"https://HOST/","allow_private":true}}"#
        ), ("webhook", #"{"url":"https://HOST/","allow_private":true}"#),
    ])
    func onlyAnOwnerSendsTheGatewayIntoThePrivateNetwork(resource: String, template: String) throws {
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

    @Test func anAlertDoesNotGoToThisMachineByItself() throws {
        let headers = try bench.token("write").merging(["If-Match": "*"]) { $1 }
        for host in ["127.0.0.1", "localhost", "[::1]"] {
            let answer = try bench.ask("PUT", "apps/shop/webhook", #"{"url":"http://\#(host):1/"}"#, headers)
            #expect(answer.status == 422)
        }
    }

    @Test func aClaimThatIsComparedMayBeRequired() throws {
        let headers = try bench.token("admin").merging(["If-Match": "*"]) { $1 }
        let answer = try bench.ask(
            "PUT", "apps/shop/policy", #"{"audience":"shop","required":["aud"]}"#, headers)
        #expect(answer.status == 200, "\(answer.body)")
    }

    @Test func aBodyThatIsSaidToBeSomethingElseIsNotRead() throws {
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

    @Test func aRefusalNamesTheScheme() throws {
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
        #expect(lines.last == "", "there is something behind the fields: \(lines)")
        // A body would have no line end.
        #expect(connection.isClosedByServer())
    }

    @Test func whatChangesNothingIsNoChange() throws {
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

    @Test func onesOwnPasswordIsChangedWithTheOldOne() throws {
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

    /// Who has only the cookie does not get to try passwords without a trace.
    @Test func guessingTheOldPasswordIsStoppedAndWrittenDown() throws {
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

    /// A quote with a combining mark behind it is one character, and must be doubled all the same (RFC 4180).
    @Test func everyQuoteInACellIsDoubled() {
        var row: [UInt8] = []
        Export.write(["a\"\u{301},=HYPERLINK(1)", "-1", "=1+1", "x\r\n"], to: &row)
        #expect(
            row == Array("\"a\"\"\u{301},=HYPERLINK(1)\",-1,'=1+1,\"x\r\n\"\r\n".utf8),
            "\(String(decoding: row, as: UTF8.self))")
    }
}
