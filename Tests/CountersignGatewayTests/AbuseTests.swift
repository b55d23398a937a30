import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayModel
import Testing

/// Hostile clients over real sockets. Meanwhile the gateway answers others.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct AbuseTests {
    private func limits(ofSeconds seconds: Int) -> GatewayLimits {
        var limits = GatewayLimits()
        limits.headerSeconds = seconds
        limits.bodySeconds = seconds
        limits.idleSeconds = seconds
        // All of them have one address.
        limits.connectionsPerAddress = 1_000
        return limits
    }

    private func withImpatientGateway(_ body: (GatewayFixture) throws -> Void) throws {
        let fixture = try GatewayFixture(enforcement: .disabled, limits: limits(ofSeconds: 1))
        try body(fixture)
    }

    private func expectAlive(_ fixture: GatewayFixture) throws {
        #expect(try RawConnection(port: fixture.gateway.port).get("/livez")?.status == 200)
    }

    /// Both ends of all connections are files of this process: one test at a time.
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

        @Test func fiveHundredHalfOpenConnectionsHoldNobodyUp() throws {
            let fixture = try GatewayFixture(enforcement: .disabled, limits: abuse.limits(ofSeconds: 3_600))
            let connections = try halfOpenConnections(fixture)
            try abuse.expectAlive(fixture)
            for connection in connections { connection.close() }
        }

        @Test func fiveHundredHalfOpenConnectionsAreClosed() throws {
            try abuse.withImpatientGateway { fixture in
                for connection in try halfOpenConnections(fixture) {
                    // An answer such as 408 may come first; then the connection ends.
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
    func aDripThatNeverEndsIsCutOff(beginning: String) throws {
        try withImpatientGateway { fixture in
            let connection = try RawConnection(port: fixture.gateway.port)
            connection.send(beginning)
            // A byte every 50 ms would keep a time-out that counts from the last byte from ever running out.
            #expect(connection.isClosedWhileDripping(count: 400, everyMilliseconds: 50))
            try expectAlive(fixture)
        }
    }

    private func peakMegabytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        return try #require(status.firstMatch(of: #/VmHWM:\s*(\d+) kB/#).flatMap { Int($0.output.1) }) / 1_000
    }

    @Test(.enabled(if: FileManager.default.isWritableFile(atPath: "/proc/self/clear_refs")))
    func aBombIsRefusedWithoutItsWeight() throws {
        try withImpatientGateway { fixture in
            let bomb = try gzip([UInt8](repeating: 0x20, count: 1_000_000), times: 500)
            // The most memory that this process, and so the gateway in it, has held counts from here on.
            try Data("5".utf8).write(to: URL(fileURLWithPath: "/proc/self/clear_refs"))
            let before = try peakMegabytes()
            let connection = try RawConnection(port: fixture.gateway.port)
            let headers = ["X-Write-Key": fixture.writeKey, "Content-Encoding": "gzip"]
            for _ in 0..<5 { #expect(connection.post(bytes: bomb, headers: headers)?.status == 413) }
            // Unpacked the bomb has 500; some are for the tests beside this one.
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
    func tenThousandLevelsAreRefused(body: String, code: String) throws {
        try withImpatientGateway { fixture in
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

    // A second request hides behind each; none of them may be answered as one.
    @Test(arguments: [
        "Content-Length: 4\r\nTransfer-Encoding: chunked", "Transfer-Encoding: xchunked",
        "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding : chunked", "Transfer-Encoding: \u{B}chunked",
        "Content-Length: 4\r\nContent-Length: 4",
        "Content-Length: 4, 4", "Content-Length: 0x4", "Content-Length: -1", "Content-Length: 4 4",
        "Content-Length: 99999999999999999999", "Transfer-Encoding: chunked\r\nContent-Length: 0",
    ])
    func nothingIsSmuggled(fields: String) throws {
        try withImpatientGateway { fixture in
            let connection = try RawConnection(port: fixture.gateway.port)
            connection.send(
                "POST /v1/batch HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n0\r\n\r\n"
                    + "GET /livez HTTP/1.1\r\nHost: a\r\nX-Request-Id: smuggled\r\n\r\n")
            var answers = 0
            while let answer = connection.answer() {
                answers += 1
                #expect((400..<600).contains(answer.status))
                #expect(answer.headers["x-request-id"] != "smuggled")
            }
            #expect(answers <= 1)
            try expectAlive(fixture)
        }
    }

    @Test(arguments: ["zz\r\n", "-1\r\n", "5;" + String(repeating: "x", count: 50_000) + "\r\n", "5\nab"])
    func aChunkThatIsNoneEndsTheConnection(chunk: String) throws {
        try withImpatientGateway { fixture in
            let connection = try RawConnection(port: fixture.gateway.port)
            connection.send(
                "POST /v1/batch HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\(chunk)")
            while let answer = connection.answer() { #expect(answer.status >= 400) }
            #expect(connection.isClosedByServer())
            try expectAlive(fixture)
        }
    }

    private func chunked(_ count: Int, of bytes: Int) -> String {
        let chunk = String(bytes, radix: 16) + "\r\n" + String(repeating: " ", count: bytes) + "\r\n"
        return "POST /v1/batch HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            + String(repeating: chunk, count: count)
    }

    @Test func manyChunksOfNextToNothingEndTheConnectionBeforeTheBodyEnds() throws {
        let fixture = try GatewayFixture(enforcement: .disabled)
        for bytes in [1, 31] {
            let connection = try RawConnection(port: fixture.gateway.port)
            connection.send(chunked(501, of: bytes))
            #expect(connection.isClosedByServer(), "\(bytes)")
        }
        try expectAlive(fixture)
    }

    @Test(arguments: [(500, 1), (5_000, 64)])
    func fewSmallChunksAndManyOfSomeSizeAreRead(count: Int, bytes: Int) throws {
        let fixture = try GatewayFixture(enforcement: .disabled)
        let connection = try RawConnection(port: fixture.gateway.port)
        connection.send(chunked(count, of: bytes) + "0\r\n\r\n")
        // Spaces alone are no JSON.
        #expect(connection.answer()?.json["code"] as? String == "invalid_json")
    }
}
