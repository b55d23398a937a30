import CountersignCrypto
import CountersignGateway
import CountersignGatewayTesting
import CountersignJSON
import Foundation
import GatewayIngest
import GatewayModel
import GatewayTestSupport
import Testing

/// Registration, upload and refresh by devices with Transistorsoft's SDKs.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct DeviceTokenTests {
    private let fixture: GatewayFixture
    private let connection: RawConnection

    init() throws {
        fixture = try GatewayFixture(enforcement: .required)
        connection = try RawConnection(port: fixture.gateway.port)
        try fixture.edit { try $0.setTokenRules(rules, for: "shop") }
    }

    private var rules: TokenRules {
        var rules = TokenRules()
        rules.allowsRegistration = true
        return rules
    }

    // The members that the vendor's wrappers send.
    private static let device =
        #"{"org":"shop","uuid":"u-1","model":"iPhone","manufacturer":"Apple","version":"18.0","platform":"iOS","framework":"swift"}"#

    private func register() throws -> (access: String, refresh: String) {
        let answer = try #require(connection.post(Self.device, path: "/api/register"))
        #expect(answer.status == 200, "\(answer.body)")
        return try pair(answer)
    }

    private func pair(_ answer: TestAnswer) throws -> (access: String, refresh: String) {
        (
            try #require(answer.json["accessToken"] as? String),
            try #require(answer.json["refreshToken"] as? String)
        )
    }

    private func refresh(
        _ body: String, type: String = "application/x-www-form-urlencoded", access: String = "x"
    ) -> TestAnswer? {
        connection.post(
            body, path: "/api/refresh_token",
            headers: ["Content-Type": type, "Authorization": "Bearer " + access])
    }

    private func upload(_ access: String, uuid: String) -> TestAnswer? {
        connection.post(
            #"{"location":{"uuid":"\#(uuid)","coords":{"latitude":1,"longitude":2}}}"#,
            path: "/api/locations",
            headers: ["Authorization": "Bearer " + access])
    }

    private static let boundary = "------------------------d74496d66958873e"

    /// The body that `curl -F name=value …` sends.
    private static func multipart(_ fields: [(name: String, value: String)], isWhole: Bool = true) -> String {
        fields.map { field in
            "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(field.name)\"\r\n\r\n\(field.value)\r\n"
        }.joined() + (isWhole ? "--\(boundary)--\r\n" : "")
    }

    @Test func aMultipartFormIsAcceptedForARefresh() throws {
        let first = try register()
        let type = "multipart/form-data; boundary=" + Self.boundary
        let answer = try #require(
            refresh(
                Self.multipart([
                    ("refresh_token", first.refresh), ("grant_type", "refresh_token"), ("foo", "another one"),
                ]), type: type))
        #expect(answer.status == 200, "\(answer.body)")
        #expect(try pair(answer).refresh != first.refresh)
    }

    @Test(arguments: [
        "twice", "too many", "too long", "a file", "cut short", "without a boundary", "a long name",
        "control characters",
        "nothing",
    ])
    func anInvalidFormIsRejected(fault: String) throws {
        let refresh = try register().refresh
        var type = "multipart/form-data; boundary=" + Self.boundary
        var body = Self.multipart([("refresh_token", refresh)])
        switch fault {
        case "twice": body = Self.multipart([("refresh_token", refresh), ("refresh_token", refresh)])
        case "too many":
            body = Self.multipart([("refresh_token", refresh)] + (0..<64).map { ("f\($0)", "x") })
        case "too long":
            body = Self.multipart([("refresh_token", refresh), ("x", String(repeating: "x", count: 65_536))])
        case "a file":
            body = body.replacingOccurrences(
                of: #"name="refresh_token""#, with: #"name="refresh_token"; filename="token.txt""#)
        case "cut short": body = Self.multipart([("refresh_token", refresh)], isWhole: false)
        case "without a boundary": type = "multipart/form-data"
        case "a long name":
            body = Self.multipart([
                ("refresh_token", refresh), (String(repeating: "n", count: 129), "x"),
            ])
        case "control characters": body = Self.multipart([("refresh_token", refresh + "\u{1}")])
        default: body = ""
        }
        let answer = try #require(self.refresh(body, type: type))
        #expect(answer.status == 400, "\(answer.body)")
        #expect(answer.json["error"] as? String == "invalid_request")
        #expect(!answer.body.contains(refresh))
        // The refresh token was not consumed.
        #expect(self.refresh("refresh_token=" + refresh)?.status == 200)
    }

    /// The instant's 999.7 milliseconds are rounded up to the next second.
    @Test func aTokenIsValidInTheMillisecondOfItsIssue() throws {
        let fixture = try GatewayFixture(.live, now: { Date(timeIntervalSince1970: 1_800_000_000.9997) })
        try fixture.edit { try $0.setTokenRules(rules, for: "shop") }
        let connection = try RawConnection(port: fixture.gateway.port)
        let pair = try self.pair(try #require(connection.post(Self.device, path: "/api/register")))
        let answer = connection.post(
            #"{"location":{"uuid":"l-1","coords":{"latitude":1,"longitude":2}}}"#, path: "/api/locations",
            headers: ["Authorization": "Bearer " + pair.access])
        #expect(answer?.status == 200, "\(answer?.body ?? "")")
    }

    @Test func aDeviceRegistersUploadsAndRefreshes() throws {
        let first = try register()
        #expect(upload(first.access, uuid: "l-1")?.status == 200)
        let answer = try #require(refresh("refresh_token=" + first.refresh, access: first.access))
        #expect(answer.status == 200)
        #expect(answer.headers["cache-control"] == "no-store")
        let expires = try #require(answer.json["expires"] as? Int)
        #expect(abs(Double(expires) - Date().timeIntervalSince1970 - 3_600) < 60)
        let second = try pair(answer)
        #expect(second.refresh != first.refresh)
        #expect(upload(second.access, uuid: "l-2")?.status == 200)
        // The client crashed before it stored the response.
        let again = try #require(refresh(#"{"refresh_token":"\#(first.refresh)"}"#, type: "application/json"))
        #expect(try pair(again).refresh == second.refresh)
        #expect(try fixture.rows("user_id") == [["device:u-1"], ["device:u-1"]])
    }

    @Test func aDeviceTokenIsValidForItsDeviceOnly() throws {
        let access = try register().access
        func send(_ user: String) -> Int? {
            connection.post(
                #"{"batch":[{"type":"track","messageId":"m-\#(user)","event":"e","userId":"\#(user)"}]}"#,
                path: "/v1/batch",
                headers: ["X-Write-Key": fixture.writeKey, "Authorization": "Bearer " + access])?.status
        }
        #expect(send("device:u-1") == 200)
        #expect(send("u-1") == 401)
        #expect(send("user-1") == 401)
    }

    @Test func aTokenIsForOneApp() throws {
        try fixture.edit { _ = try $0.createApp(id: "other") }
        let access = try register().access
        let answer = connection.post(
            #"{"coords":{"latitude":1,"longitude":2}}"#, path: "/api/locations/other",
            headers: ["Authorization": "Bearer " + access])
        #expect(answer?.status == 401)
        #expect((answer?.json["auth_error"] as? [String: Any])?["reason"] as? String == "AUDIENCE_MISMATCH")
    }

    @Test func devicesRegisterByAppIDOrProjectToken() throws {
        try fixture.edit { try $0.setProjectToken("shop-project", for: "shop") }
        for org in ["shop", "shop-project"] {
            let answer = connection.post(#"{"org":"\#(org)","uuid":"u-1"}"#, path: "/api/register")
            #expect(answer?.status == 200)
        }
    }

    @Test func closedRegistrationRejectsDevices() throws {
        let token = try register().refresh
        try fixture.edit { try $0.setTokenRules(TokenRules(), for: "shop") }
        for org in ["shop", "none-such"] {
            let answer = connection.post(#"{"org":"\#(org)","uuid":"u-2"}"#, path: "/api/register")
            #expect(answer?.status == 403)
            #expect(answer?.json["error"] as? String == "access_denied")
        }
        #expect(refresh("refresh_token=" + token)?.status == 200)
    }

    @Test(arguments: [
        "", "[]", "{", #"{"uuid":"u"}"#, #"{"org":"shop"}"#, #"{"org":"shop","uuid":5}"#,
        #"{"org":"shop","uuid":""}"#, #"{"org":"shop","uuid":"\#(String(repeating: "x", count: 129))"}"#,
        #"{"org":"shop","org":"shop","uuid":"u"}"#,
    ])
    func invalidRegistrationsAreRejectedWithACode(body: String) throws {
        let answer = try #require(connection.post(body, path: "/api/register"))
        #expect(answer.status == 400)
        #expect(answer.json["error"] as? String == "invalid_request")
    }

    @Test(arguments: [
        ("", "application/x-www-form-urlencoded", "invalid_request"),
        ("refresh_token=", "application/x-www-form-urlencoded", "invalid_request"),
        ("refresh_token=a&refresh_token=a", "application/x-www-form-urlencoded", "invalid_request"),
        ("refresh_token=a", "multipart/form-data; boundary=x", "invalid_request"),
        (#"{"refresh_token":5}"#, "application/json", "invalid_request"),
        ("refresh_token=nonsense", "application/x-www-form-urlencoded", "invalid_grant"),
    ])
    func invalidRefreshesAreRejectedWithACode(body: String, type: String, error: String) throws {
        let answer = try #require(refresh(body, type: type))
        #expect(answer.status == 400)
        #expect(answer.json["error"] as? String == error)
        #expect(answer.headers["cache-control"] == "no-store")
    }

    @Test func frequentRefreshesAreRateLimited() throws {
        var limits = GatewayLimits()
        limits.tokenRequestsPerSecond = 1
        let fixture = try GatewayFixture(limits: limits)
        let connection = try RawConnection(port: fixture.gateway.port)
        let token = try TokenFamilyDirectory(fixture.place)
            .open(for: "user-1", of: "shop").refreshToken
        // The burst is five requests. All are sent before the first response, so that timing does not matter.
        let body = "refresh_token=" + token
        let request = """
            POST /api/refresh_token HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r
            Content-Type: application/x-www-form-urlencoded\r\n\r\n\(body)
            """
        connection.send(String(repeating: request, count: 30))
        let answers = (0..<30).compactMap { _ in connection.answer() }
        let limited = try #require(answers.first { $0.status == 429 })
        #expect(answers.first?.status == 200)
        #expect(limited.headers["retry-after"] == "1")
        #expect(limited.json["error"] as? String == "temporarily_unavailable")
    }

    @Test func anAccessTokenEndsWithTheAbsoluteLifetimeOfItsSession() throws {
        var rules = TokenRules()
        rules.allowsRegistration = true
        rules.absoluteSeconds = 600
        try fixture.edit { try $0.setTokenRules(rules, for: "shop") }
        let opened = Date().timeIntervalSince1970
        let answer = try #require(connection.post(Self.device, path: "/api/register"))
        let refreshed = try #require(refresh("refresh_token=" + (try pair(answer)).refresh))
        for answer in [answer, refreshed] {
            let expires = try #require(answer.json["expires"] as? Int)
            #expect((1...660).contains(Double(expires) - opened))
            let parts = try pair(answer).access.split(separator: ".")
            let claims = try StrictJSONParser(maximumBytes: 4_096).parse(
                bytes: try #require(Base64URL.decode(String(parts[1])))
            ) { $0["exp"]?.int64 }
            #expect(claims == Int64(expires))
        }
    }

    /// The peer is this machine but the client is not, as with a local proxy.
    @Test(arguments: ["192.0.2.1", "unknown"])
    func registrationsOfOneAddressAreLimitedBehindAProxyToo(client: String) throws {
        var limits = GatewayLimits()
        limits.tokenRequestsPerSecond = 1
        let fixture = try GatewayFixture(limits: limits) { $0.trustedProxies = AddressRange.loopback }
        let connection = try RawConnection(port: fixture.gateway.port)
        let request = """
            POST /api/register HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r
            X-Forwarded-For: \(client)\r\n\r\n{}
            """
        connection.send(String(repeating: request, count: 30))
        let answers = (0..<30).compactMap { _ in connection.answer() }
        #expect(answers.first?.status == 400)
        #expect(answers.contains { $0.status == 429 })
    }
}
