import CountersignCore
import CountersignGatewayTesting
import Foundation
import GatewayTestSupport
import TestSupport
import Testing

@testable import GatewayHTTP
@testable import GatewayModel

/// Connections of the HTTP server: persistence, pipelining, interim responses and early responses.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
final class ConnectionTests {
    private let server: HTTPServer
    private let port: UInt16

    init() throws {
        var limits = GatewayLimits()
        limits.bodyBytes = 100_000
        server = HTTPServer(limits: limits, observer: RequestRecorder()) { request in
            let answer = HTTPResponse.text(200, "\(request.path) \(request.body.count)")
            guard request.path.hasPrefix("/later") else { return .answer(answer) }
            return .waiting(
                {
                    let done = $0; DispatchQueue.global().async { done(()) }
                }, finish: { answer })
        }
        port = try server.start(host: "127.0.0.1", port: 0)
    }

    deinit { server.stop(graceSeconds: 0) }

    private func answers(_ text: String, count: Int) throws -> [TestAnswer?] {
        let connection = try RawConnection(port: port)
        connection.send(text)
        return (0..<count).map { _ in connection.answer() }
    }

    @Test(arguments: ["/now", "/later"]) func aThousandPipelinedRequestsAreAnsweredInOrder(path: String)
        throws
    {
        let text = (0..<1_000).map {
            "POST \(path)/\($0) HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
        }.joined()
        let bodies = try answers(text, count: 1_000).map { $0?.body }
        #expect(bodies == (0..<1_000).map { "\(path)/\($0) 3" })
    }

    @Test func requestsThatArriveByteByByteAreRead() throws {
        let connection = try RawConnection(port: port)
        for byte in Array(
            ("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
                + "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nT: t\r\n\r\n")
                .utf8)
        {
            connection.send([byte])
        }
        #expect(connection.answer()?.body == "/a 3")
        #expect(connection.answer()?.body == "/b 3")
    }

    /// The end of a chunked body, a whole request and the beginning of a third request arrive together.
    @Test func inputBehindAChunkedBodyBelongsToTheNextRequest() throws {
        let connection = try RawConnection(port: port)
        let chunk = "2000\r\n" + String(repeating: "x", count: 0x2000) + "\r\n"
        connection.send(
            "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\(chunk)\(chunk)0\r\n\r\n"
                + "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /c HTTP/1.1\r\nHo")
        #expect(connection.answer()?.body == "/a 16384")
        #expect(connection.answer()?.body == "/b 3")
        connection.send("st: a\r\n\r\n")
        #expect(connection.answer()?.body == "/c 0")
    }

    @Test(arguments: [
        ("HTTP/1.1", "", nil), ("HTTP/1.1", "Connection: close\r\n", "close"), ("HTTP/1.0", "", "close"),
        ("HTTP/1.0", "Connection: keep-alive\r\n", "keep-alive"),
    ])
    func keepAliveFollowsVersionAndConnectionField(version: String, field: String, option: String?) throws {
        let connection = try RawConnection(port: port)
        connection.send("GET / \(version)\r\nHost: a\r\n\(field)\r\n")
        let answer = try #require(connection.answer())
        #expect(answer.headers["connection"] == option)
        #expect(answer.headers["date"]?.hasSuffix(" GMT") == true)
        if option == "close" {
            #expect(connection.isClosedByServer())
        } else {
            #expect(connection.get("/next")?.body == "/next 0")
        }
    }

    @Test func theAnswerToHEADHasALengthAndNoBody() throws {
        let connection = try RawConnection(port: port)
        connection.send("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n")
        var lines: [String] = []
        while let line = connection.line(), !line.isEmpty { lines.append(line) }
        #expect(lines.contains("Content-Length: 4"))
        #expect(connection.answer()?.body == "/b 0")
    }

    /// A server that closes a connection early must not pass tests that check only the status.
    @Test func theTestClientRejectsATruncatedBody() throws {
        let server = try RawServer { _ in "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc" }
        defer { server.stop() }
        let connection = try RawConnection(port: server.port)
        connection.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        connection.endSending()
        #expect(connection.answer() == nil)
    }

    @Test func anInterimResponseIsSentOnlyToAClientThatWaits() throws {
        let head = "POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n"
        let connection = try RawConnection(port: port)
        connection.send(head)
        #expect(connection.answer()?.status == 100)
        connection.send("abc")
        #expect(connection.answer()?.status == 200)
        #expect(try answers(head + "abc", count: 1).first??.status == 200)
        let old = head.replacingOccurrences(of: "HTTP/1.1", with: "HTTP/1.0")
        #expect(try answers(old + "abc", count: 1).first??.status == 200)
    }

    /// A client that sends everything before it reads must see why its request was rejected.
    @Test(arguments: [
        "Content-Length: 2000000", "Transfer-Encoding: chunked",
        "Content-Length: 2000000\r\nContent-Length: 1",
    ])
    func theAnswerToARejectedRequestSurvivesTheRestOfItsBody(field: String) throws {
        let connection = try RawConnection(port: port)
        connection.send("POST /a HTTP/1.1\r\nHost: a\r\n\(field)\r\n\r\n")
        let chunk = Array("4000\r\n".utf8) + [UInt8](repeating: 0x20, count: 0x4000) + Array("\r\n".utf8)
        for _ in 0..<20 { connection.send(chunk) }
        let answer = try #require(connection.answer())
        #expect(answer.status == (field.hasSuffix(": 1") ? 400 : 413))
        #expect(answer.headers["connection"] == "close")
        connection.endSending()
        #expect(connection.isClosedByServer())
    }

    @Test func aClientThatEndsItsRequestsIsAnsweredAndClosed() throws {
        let connection = try RawConnection(port: port)
        connection.send("GET /later HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\nGET /c HT")
        connection.endSending()
        #expect(connection.answer()?.body == "/later 0")
        #expect(connection.answer()?.body == "/b 0")
        #expect(connection.isClosedByServer())
    }

    private func stream(
        _ limits: GatewayLimits = GatewayLimits(), _ pull: @escaping @Sendable () -> ResponseStream.Piece
    ) -> HTTPServer {
        HTTPServer(limits: limits, observer: RequestRecorder(), loopCount: 1) { _ in
            var response = HTTPResponse.text(200, "")
            response.stream = ResponseStream(pull: pull, page: { nil })
            return .answer(response)
        }
    }

    private func expectNoAnswer(_ server: HTTPServer, _ pulled: DispatchSemaphore) throws {
        let connection = try RawConnection(port: server.start(host: "127.0.0.1", port: 0))
        connection.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        try pulled.waitForSignal()
        server.stop(graceSeconds: 0)
        #expect(connection.answer() == nil)
    }

    /// A client must notice that a stop cut the list.
    @Test func stoppingEndsAListWithoutItsFinalChunk() throws {
        let pulled = DispatchSemaphore(value: 0)
        let server = stream {
            pulled.signal()
            return .nothing
        }
        try expectNoAnswer(server, pulled)
    }

    /// If the server closed the connection, a client that still sends its body would lose the early response.
    @Test func stopWaitsForAClientStillSendingAfterAnEarlyResponse() throws {
        let sending = try RawConnection(port: port)
        sending.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n")
        #expect(sending.answer()?.status == 413)
        let idle = try RawConnection(port: port)
        #expect(idle.get("/")?.status == 200)
        let hasStopped = DispatchSemaphore(value: 0)
        Thread.detachNewThread { [server] in
            server.stop(graceSeconds: 60)
            hasStopped.signal()
        }
        #expect(idle.answer() == nil)
        let part = [UInt8](repeating: 0x20, count: 10_000)
        let isOpen = (0..<10).allSatisfy { _ in sending.send(part) }
        #expect(isOpen)
        sending.close()
        try hasStopped.waitForSignal()
    }

    /// Without a limit of its own, the stop would wait for the deadline of the response.
    @Test func stopDoesNotWaitForAClientThatDoesNotRead() throws {
        var limits = GatewayLimits()
        limits.bodySeconds = 3_600
        let pulled = DispatchSemaphore(value: 0)
        let server = stream(limits) {
            pulled.signal()
            return .bytes([UInt8](repeating: 0x20, count: 1 << 16))
        }
        try expectNoAnswer(server, pulled)
    }
}
