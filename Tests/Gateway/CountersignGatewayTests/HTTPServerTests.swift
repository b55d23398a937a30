import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import TestSupport
import Testing

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct HTTPServerTests {
    private func withGateway(_ body: (GatewayFixture) throws -> Void) throws {
        try body(try GatewayFixture(enforcement: .disabled))
    }

    @Test func livenessAndReadinessAreAnswered() throws {
        try withGateway { fixture in
            let connection = try RawConnection(port: fixture.gateway.port)
            #expect(connection.get("/livez")?.body == "ok\n")
            #expect(connection.get("/readyz")?.body == "ready\n")
            #expect(connection.get("/nowhere")?.status == 404)
            let answer = connection.get("/v1/batch")
            #expect(answer?.status == 405)
            #expect(answer?.headers["allow"] == "POST")
        }
    }

    /// `HeadParserTests` covers other malformed heads.
    @Test(arguments: [
        "Content-Length: 2", "Host: a\r\nHost: b\r\nContent-Length: 2",
        "Host: a\r\nX-A: b\0c\r\nContent-Length: 2", "Host: a\r\nTransfer-Encoding: gzip, chunked",
        "Host: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 0",
        "Host: a\r\nContent-Length: 99999999999999999999",
        "Host: a\r\n" + String(repeating: "A: b\r\n", count: 101) + "Content-Length: 2",
    ])
    func aRejectedHeadClosesTheConnection(head: String) throws {
        try withGateway { fixture in
            let connection = try RawConnection(port: fixture.gateway.port)
            connection.send(
                "POST /v1/batch HTTP/1.1\r\n\(head)\r\n\r\n{}GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
            let answer = try #require(connection.answer())
            #expect([400, 413, 431, 501].contains(answer.status))
            #expect(connection.answer() == nil)
            #expect(try RawConnection(port: fixture.gateway.port).get("/livez")?.status == 200)
        }
    }

    @Test func aChunkedBodyIsRead() throws {
        try withGateway { fixture in
            let connection = try RawConnection(port: fixture.gateway.port)
            let body = batch(trackEvent("m-1"))
            connection.send(
                "POST /v1/batch HTTP/1.1\r\nHost: a\r\nX-Write-Key: \(fixture.writeKey)\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            for character in body.utf8 { connection.send([0x31, 0x0D, 0x0A, character, 0x0D, 0x0A]) }
            connection.send("0\r\n\r\n")
            #expect(connection.answer()?.json["accepted"] as? Int == 1)
        }
    }

    @Test func gzipBodiesAreUnpackedAndInvalidOrLargeOnesRejected() throws {
        try withGateway { fixture in
            let connection = try RawConnection(port: fixture.gateway.port)
            var headers = ["X-Write-Key": fixture.writeKey, "Content-Encoding": "gzip"]
            let good = try gzip(Array(batch(trackEvent("m-1")).utf8))
            #expect(connection.post(bytes: good, headers: headers)?.json["accepted"] as? Int == 1)
            #expect(
                connection.post(bytes: good.dropLast(4) + [], headers: headers)?.json["code"] as? String
                    == "invalid_encoding")
            #expect(
                connection.post(bytes: good + [0], headers: headers)?.json["code"] as? String
                    == "invalid_encoding")
            // A second gzip member of the same size. Its events would be lost silently.
            let other = try gzip(Array(batch(trackEvent("m-2")).utf8))
            #expect(
                connection.post(bytes: good + other, headers: headers)?.json["code"] as? String
                    == "invalid_encoding")
            let bomb = try gzip([UInt8](repeating: 0x20, count: 3_000_000))
            #expect(connection.post(bytes: bomb, headers: headers)?.status == 413)
            headers["Content-Encoding"] = "br"
            #expect(connection.post(bytes: good, headers: headers)?.status == 415)
        }
    }

    @Test func stoppingAnswersRequestsThatHaveBegun() throws {
        let fixture = try GatewayFixture(enforcement: .disabled) { $0.stopGraceSeconds = 60 }
        let connection = try RawConnection(port: fixture.gateway.port)
        let body = batch(trackEvent("m-1"))
        connection.send(
            "POST /v1/batch HTTP/1.1\r\nHost: a\r\nX-Write-Key: \(fixture.writeKey)\r\nContent-Length: \(body.utf8.count)\r\n"
                + "Expect: 100-continue\r\n\r\n")
        // The interim response shows that the server has begun this request.
        #expect(connection.answer()?.status == 100)
        let stopped = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            fixture.gateway.stop()
            stopped.signal()
        }
        connection.send(body)
        let answer = connection.answer()
        #expect(answer?.json["accepted"] as? Int == 1)
        try stopped.waitForSignal()
        #expect(throws: (any Error).self) { try RawConnection(port: fixture.gateway.port) }
    }

    @Test func aDrainingGatewayIsUnreadyAndStillStoresEvents() throws {
        let fixture = try GatewayFixture(enforcement: .disabled) { $0.drainSeconds = 10 }
        let connection = try RawConnection(port: fixture.gateway.port)
        #expect(connection.get("/readyz")?.status == 200)
        let stopped = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            fixture.gateway.stop()
            stopped.signal()
        }
        // Waits until the other thread has begun to stop the gateway.
        var ready = 200
        while ready == 200, !connection.isOverdue { ready = try #require(connection.get("/readyz")).status }
        #expect(ready == 503)
        let body = batch(trackEvent("m-1"))
        let late = try RawConnection(port: fixture.gateway.port)
        late.send(
            "POST /v1/batch HTTP/1.1\r\nHost: a\r\nX-Write-Key: \(fixture.writeKey)\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
        #expect(late.answer()?.json["accepted"] as? Int == 1)
        try stopped.waitForSignal()
        #expect(throws: (any Error).self) { try RawConnection(port: fixture.gateway.port) }
    }

    @Test func aSafeRequestIDIsKeptAndAnUnsafeOneReplaced() throws {
        try withGateway { fixture in
            let connection = try RawConnection(port: fixture.gateway.port)
            connection.send("GET /livez HTTP/1.1\r\nHost: a\r\nX-Request-Id: abc-123\r\n\r\n")
            #expect(connection.answer()?.headers["x-request-id"] == "abc-123")
            connection.send("GET /livez HTTP/1.1\r\nHost: a\r\nX-Request-Id: <script>\r\n\r\n")
            let other = connection.answer()?.headers["x-request-id"]
            #expect(other?.count == 36)
        }
    }
}
