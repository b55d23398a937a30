import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

/// Hostile clients over real sockets. The gateway must still answer other clients.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct AbuseTests {
    private func limits(ofSeconds seconds: Int) -> GatewayLimits {
        var limits = GatewayLimits()
        limits.headerSeconds = seconds
        limits.bodySeconds = seconds
        limits.idleSeconds = seconds
        // All clients share one address.
        limits.connectionsPerAddress = 1_000
        return limits
    }

    private func withShortTimeouts(_ body: (GatewayFixture) throws -> Void) throws {
        let fixture = try GatewayFixture(enforcement: .disabled, limits: limits(ofSeconds: 1))
        try body(fixture)
    }

    private func expectAlive(_ fixture: GatewayFixture) throws {
        #expect(try RawConnection(port: fixture.gateway.port).get("/livez")?.status == 200)
    }

    /// Each connection uses two file descriptors of this process, so these tests run one at a time.
    @Suite(.serialized) struct HalfOpen {
        private let abuse = AbuseTests()

        private func halfOpenConnections(_ fixture: GatewayFixture) throws -> [RawConnection] {
            let beginnings = [
                "", "POST", "POST /v1/batch HTTP/1.1\r\nHost: a\r\nX-A: ",
                "POST /v1/batch HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{",
                "POST /v1/batch HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
            ]
            return try (0..<500).map { number in
                let connection = try RawConnection(port: fixture.gateway.port)
                connection.send(beginnings[number % beginnings.count])
                return connection
            }
        }

        @Test func fiveHundredHalfOpenConnectionsDelayNoRequest() throws {
            let fixture = try GatewayFixture(enforcement: .disabled, limits: abuse.limits(ofSeconds: 3_600))
            let connections = try halfOpenConnections(fixture)
            try abuse.expectAlive(fixture)
            for connection in connections { connection.close() }
        }

        @Test func fiveHundredHalfOpenConnectionsAreClosed() throws {
            try abuse.withShortTimeouts { fixture in
                for connection in try halfOpenConnections(fixture) {
                    // An answer such as 408 may precede the close.
                    while connection.answer() != nil {}
                    #expect(connection.isClosedByServer())
                }
                try abuse.expectAlive(fixture)
            }
        }
    }

    @Test(arguments: [
        "GET /livez HTTP/1.1\r\nHost: a\r\nX-Slow: ",
        "POST /v1/batch HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n",
        "POST /v1/batch HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nFFFF\r\n",
    ])
    func aRequestThatNeverEndsIsCutOff(beginning: String) throws {
        try withShortTimeouts { fixture in
            let connection = try RawConnection(port: fixture.gateway.port)
            connection.send(beginning)
            // Resetting the time-out at each byte would keep this connection open forever.
            #expect(connection.isClosedWhileDripping(count: 400, everyMilliseconds: 50))
            try expectAlive(fixture)
        }
    }

    private func peakMegabytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        return try #require(status.firstMatch(of: #/VmHWM:\s*(\d+) kB/#).flatMap { Int($0.output.1) }) / 1_000
    }

    @Test(.enabled(if: FileManager.default.isWritableFile(atPath: "/proc/self/clear_refs")))
    func aGzipBombIsRejectedWithoutUnpackingItInMemory() throws {
        try withShortTimeouts { fixture in
            let bomb = try gzip([UInt8](repeating: 0x20, count: 1_000_000), times: 500)
            // Resets the peak memory of this process, which runs the gateway too.
            try Data("5".utf8).write(to: URL(fileURLWithPath: "/proc/self/clear_refs"))
            let before = try peakMegabytes()
            let connection = try RawConnection(port: fixture.gateway.port)
            let headers = ["X-Write-Key": fixture.writeKey, "Content-Encoding": "gzip"]
            for _ in 0..<5 { #expect(connection.post(bytes: bomb, headers: headers)?.status == 413) }
            // The unpacked bomb has 500 MB. Tests that run at the same time use some memory.
            #expect(try peakMegabytes() - before < 300)
            try expectAlive(fixture)
        }
    }

    @Test(arguments: [
        (String(repeating: "[", count: 10_000), "invalid_json"),
        (String(repeating: #"{"a":"#, count: 10_000), "invalid_json"),
        (
            #"{"batch":"# + String(repeating: "[", count: 10_000) + String(repeating: "]", count: 10_000)
                + "}", "all_events_rejected"
        ),
    ])
    func tenThousandNestingLevelsAreRejected(body: String, code: String) throws {
        try withShortTimeouts { fixture in
            let connection = try RawConnection(port: fixture.gateway.port)
            let answer = connection.post(body, headers: ["X-Write-Key": fixture.writeKey])
            #expect(answer?.status == 400)
            #expect(answer?.json["code"] as? String == code)
            try expectAlive(fixture)
        }
    }

    @Test func aHundredPipelinedRequestsAreAnsweredInOrder() throws {
        let fixture = try GatewayFixture(enforcement: .disabled)
        let connection = try RawConnection(port: fixture.gateway.port)
        let requests = (0..<100).map { number -> String in
            let body = batch(trackEvent("m-\(number / 2)"))
            return "POST /v1/batch HTTP/1.1\r\nHost: a\r\nX-Request-Id: r-\(number)\r\n"
                + "X-Write-Key: \(fixture.writeKey)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        }
        connection.send(requests.joined())
        for number in 0..<100 {
            let answer = connection.answer()
            #expect(answer?.headers["x-request-id"] == "r-\(number)")
            // Each event is sent twice.
            #expect(answer?.json["duplicates"] as? Int == number % 2)
        }
    }

    private func chunked(_ count: Int, of bytes: Int) -> String {
        let chunk = String(bytes, radix: 16) + "\r\n" + String(repeating: " ", count: bytes) + "\r\n"
        return "POST /v1/batch HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            + String(repeating: chunk, count: count)
    }

    @Test func tooManyTinyChunksCloseTheConnection() throws {
        let fixture = try GatewayFixture(enforcement: .disabled)
        for bytes in [1, 31] {
            let connection = try RawConnection(port: fixture.gateway.port)
            connection.send(chunked(501, of: bytes))
            #expect(connection.isClosedByServer(), "\(bytes)")
        }
        try expectAlive(fixture)
    }
}
