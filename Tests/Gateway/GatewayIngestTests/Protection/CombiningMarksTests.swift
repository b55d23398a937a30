import CountersignCore
import CountersignGatewayTesting
import CountersignJOSE
import GatewayModel
import GatewayTestSupport
import Testing

/// Requests without a credential that contain runs of combining marks. `scripts/text-lint.py` ensures that they are
/// cheap; these tests check that each gets its response.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct CombiningMarksTests {
    private static let marks = String(repeating: "\u{301}\u{316}", count: 4_000)
    private static let short = String(repeating: "\u{301}\u{316}", count: 60)

    private let fixture: GatewayFixture
    private let client: any TestClient

    init() throws {
        fixture = try GatewayFixture(.standard)
        client = try fixture.client()
    }

    private func status(
        _ method: String, _ target: String, _ headers: [String: String] = [:], _ body: String? = nil
    ) throws -> Int {
        try #require(client.send(method, target, headers, body.map { Array($0.utf8) })).status
    }

    /// Credentials may be in the body, so it is parsed.
    @Test(arguments: WireShape.all)
    func anEventOfCombiningMarksIsAnswered(shape: WireShape) throws {
        let value = "\"\(Self.marks)\""
        for name in shape.dialect.names + [Self.marks] {
            let body = String(decoding: shape.body(shape.event("m", [name: value])), as: UTF8.self)
            for path in shape.paths { #expect(try status("POST", WireShape.target(path), [:], body) == 401) }
        }
    }

    @Test(arguments: [
        ("/v1/track", #"{"\#(marks)":1,"writeKey":"\#(marks)"}"#, 401),
        ("/v1/apps/shop/consumers/x/poll", #"{"\#(marks)":1}"#, 401),
        ("/admin/api/session", #"{"name":"\#(marks)","password":"\#(marks)"}"#, 422),
        ("/admin/api/session", #"{"\#(marks)":1}"#, 400),
    ])
    func aBodyOfCombiningMarksIsAnswered(path: String, body: String, expected: Int) throws {
        let found = try status("POST", path, ["Content-Type": "application/json"], body)
        #expect(found == expected, "\(path)")
    }

    @Test(
        arguments: Set(
            WireShape.all.flatMap { [$0.dialect.key?.field, $0.dialect.token.field] }.compactMap(\.self)
        )
        .union([
            "Cookie", "Content-Type", "Origin", "Accept-Encoding", "Accept", "If-Match", "Idempotency-Key",
            "X-CSRF-Token", "User-Agent", "X-Forwarded-For", "X-Request-Id", "traceparent", "Last-Event-ID",
        ]).sorted())
    func aHeaderFieldOfCombiningMarksIsAnswered(name: String) throws {
        let paths = WireShape.all.map { WireShape.target($0.paths[0]) }
        for path in paths + ["/v1/apps/shop/consumers/x/poll", "/admin/api/session", "/oauth/token"] {
            let found = try status("POST", path, [name: Self.marks], #"{"batch":[]}"#)
            #expect((400..<500).contains(found), "\(path): \(found)")
        }
    }

    @Test(arguments: [
        "/admin/api/events?\(short)=1", "/v1/apps/\(short)/events?\(short)", "/\(short)/\(short)",
    ])
    func aTargetOfCombiningMarksIsAnswered(target: String) throws {
        #expect((400..<500).contains(try status("GET", target)))
    }

    @Test func twoFormsOfAUserIDAreTwoUsers() throws {
        let (composed, decomposed) = ("ana\u{EF}s", "anai\u{308}s")
        func event(_ user: String) -> String {
            #"{"batch":[{"type":"track","event":"E","messageId":"m-\#(user)","userId":"\#(user)"}]}"#
        }
        let headers = [
            "X-Write-Key": fixture.writeKey, "X-Countersign-Signature": try fixture.token(for: composed),
        ]
        #expect(client.post(event(composed), headers: headers)?.status == 200)
        #expect(client.post(event(decomposed), headers: headers)?.status == 401)
        #expect(try fixture.rows("user_id").compactMap(\.[0]) == [composed])
    }

    @Test func aPEMLabelOfCombiningMarksIsNotAKey() {
        let text = "-----BEGIN \(Self.marks)-----\nAAAA\n-----END \(Self.marks)-----"
        #expect(throws: JOSEError.self) { try PublicKey(text: text) }
    }
}
