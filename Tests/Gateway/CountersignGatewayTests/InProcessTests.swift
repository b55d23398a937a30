import CountersignGatewayTesting
import Foundation
import GatewayTestSupport
import Testing

@testable import CountersignGateway

/// Requests without a connection get the same answers as over a connection.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct InProcessTests {
    /// Fields that depend on the connection or differ in every response.
    private static let ownFields: Set = [
        "date", "connection", "x-request-id", "transfer-encoding", "content-length",
    ]

    private func answer(
        _ transport: TestTransport, _ method: String, _ target: String, _ headers: [String: String],
        _ body: [UInt8]?
    ) throws -> TestAnswer {
        let fixture = try GatewayFixture(transport, enforcement: .disabled) { $0.limits.bodyBytes = 200_000 }
        var headers = headers
        if let key = headers["X-Write-Key"], key.isEmpty { headers["X-Write-Key"] = fixture.writeKey }
        headers["X-Request-Id"] = "r-1"
        let answer = try #require(fixture.client().send(method, target, headers, body))
        #expect(answer.headers["x-request-id"] == "r-1")
        return answer
    }

    private func expectSameAnswers(
        _ method: String, _ target: String, _ headers: [String: String] = [:], _ body: [UInt8]? = nil,
        status: Int
    ) throws {
        let live = try answer(.live, method, target, headers, body)
        let routed = try answer(.router, method, target, headers, body)
        #expect(live.status == status, "\(live.body)")
        #expect(routed.status == status)
        #expect(routed.body == live.body)
        #expect(
            routed.headers.filter { !Self.ownFields.contains($0.key) }
                == live.headers.filter { !Self.ownFields.contains($0.key) })
    }

    @Test(
        arguments: [
            ("GET", "/livez", [:], nil, 200), ("GET", "/nowhere", [:], nil, 404),
            ("GET", "/v1/batch", [:], nil, 405),
            ("GET", "/livez", ["Content-Encoding": "gzip"], nil, 200),
            ("OPTIONS", "*", [:], nil, 204), ("GET", "http://localhost/livez", [:], nil, 200),
            ("GET", "/%00", [:], nil, 400), ("GET", "/livez", ["Host": "a b"], nil, 400),
            ("POST", "/v1/batch", ["X-Write-Key": ""], batch(trackEvent("m-1")), 200),
            ("POST", "/v1/batch", ["X-Write-Key": ""], "{", 400), ("POST", "/v1/batch", [:], batch(), 401),
            ("POST", "/v1/batch", ["Content-Encoding": "br"], "{}", 415),
            ("POST", "/v1/batch", ["Content-Encoding": "gzip"], "{}", 400),
            ("GET", "/admin/api/apps", [:], nil, 401), ("GET", "/metrics", ["Via": "1.1 proxy"], nil, 403),
        ] as [(String, String, [String: String], String?, Int)])
    func inProcessResponsesEqualResponsesOverTCP(
        method: String, target: String, headers: [String: String], body: String?, status: Int
    ) throws {
        try expectSameAnswers(method, target, headers, body.map { Array($0.utf8) }, status: status)
    }

    @Test func inProcessResponsesToLargeAndCompressedBodiesEqualThoseOverTCP() throws {
        // Random text: a body that compresses too well is rejected as a decompression bomb.
        let noise = (0..<100_000).map { _ in "abcdefghijklmnop".randomElement() ?? "a" }
        let large = Array(batch(trackEvent("m-1", extra: #","a":"\#(String(noise))""#)).utf8)
        try expectSameAnswers("POST", "/v1/batch", ["X-Write-Key": ""], large, status: 200)
        let packed = try gzip(large)
        let headers = ["X-Write-Key": "", "Content-Encoding": "gzip"]
        try expectSameAnswers("POST", "/v1/batch", headers, packed, status: 200)
        let tooLarge = [UInt8](repeating: 0x20, count: 200_001)
        try expectSameAnswers("POST", "/v1/batch", headers, try gzip(tooLarge), status: 413)
        let routed = try answer(.router, "POST", "/v1/batch", [:], tooLarge)
        #expect(routed.status == 413)
    }

    @Test(arguments: TestTransport.allCases)
    func aRequestIsCountedOverEveryTransport(transport: TestTransport) throws {
        let fixture = try GatewayFixture(transport)
        let client = try fixture.client()
        _ = client.get("/nowhere")
        let metrics = try #require(client.get("/metrics")?.body)
        #expect(metrics.contains(#"countersign_requests_total{app="",route="unmatched",status="4xx"} 1"#))
    }
}
