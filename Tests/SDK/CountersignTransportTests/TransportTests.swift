import CountersignTesting
import Foundation
import TestSupport
import Testing

@testable import CountersignTransport

/// The platform's own transport on real sockets.
@Suite(.timeLimit(.minutes(5)))
struct TransportTests {
    private func request(_ server: RawServer, timeout: TimeInterval = 60, limit: Int = 1_000) throws
        -> TransportRequest
    {
        TransportRequest(
            url: try #require(URL(string: "http://127.0.0.1:\(server.port)/v1/batch")),
            headers: [("Authorization", "Bearer a.b.c"), ("X-Empty", "x")], body: Array("{}".utf8),
            timeout: timeout, maximumResponseBytes: limit)
    }

    private func code(_ server: RawServer, timeout: TimeInterval = 60) async throws -> HTTPTransportError
        .Code?
    {
        do {
            _ = try await makeDefaultTransport().send(try request(server, timeout: timeout))
            return nil
        } catch let error as HTTPTransportError {
            return error.code
        }
    }

    @Test func aRequestAndItsResponseAreTransferredCompletely() async throws {
        let server = try RawServer { _ in
            "HTTP/1.1 201 Created\r\nDate: now\r\nX-Two:  a b \r\nContent-Length: 5\r\n\r\nhello"
        }
        defer { server.stop() }
        let transport = makeDefaultTransport()
        for _ in 0..<3 {
            let response = try await transport.send(try request(server))
            #expect(response.status == 201)
            #expect(response.header("x-two") == "a b")
            #expect(String(decoding: response.body, as: UTF8.self) == "hello")
        }
        #expect(server.requests.count == 3)
        #expect(server.connectionCount == 1, "the connection is reused")
        let head = server.requests[0]
        #expect(head.hasPrefix("POST /v1/batch HTTP/1.1"))
        #expect(head.contains("Authorization: Bearer a.b.c"))
        #expect(head.contains("Content-Length: 2"))
        #expect(head.lowercased().contains("expect:") == false)
    }

    /// A server that answers 415 gets the same body uncompressed at once, and no compressed body afterwards.
    @Test func longBodiesAreCompressedUnlessTheServerRejectsIt() async throws {
        let accepting = try RawServer { _ in "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" }
        defer { accepting.stop() }
        let rejecting = try RawServer { head in
            let status = head.contains("Content-Encoding: gzip") ? "415 No" : "200 OK"
            return "HTTP/1.1 \(status)\r\nContent-Length: 0\r\n\r\n"
        }
        defer { rejecting.stop() }
        let transport = makeDefaultTransport()
        let sent = [(accepting, 1_024), (accepting, 4_000), (rejecting, 4_000), (rejecting, 4_000)]
        for (server, bytes) in sent {
            var request = TransportRequest(
                url: try #require(URL(string: "http://127.0.0.1:\(server.port)/")), headers: [],
                body: Array(repeating: 0x61, count: bytes))
            request.isCompressible = true
            #expect(try await transport.send(request).status == 200)
        }
        func isCompressed(_ head: String) -> Bool {
            head.contains("Content-Encoding: gzip") && !head.contains("Content-Length: 4000")
        }
        #expect(accepting.requests.map(isCompressed) == [false, true])
        #expect(rejecting.requests.map(isCompressed) == [true, false, false])
        #expect(rejecting.requests.dropFirst().allSatisfy { $0.contains("Content-Length: 4000") })
    }

    @Test func redirectIsNotFollowed() async throws {
        let other = try RawServer { _ in "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" }
        defer { other.stop() }
        let port = other.port
        for status in [301, 302, 303, 307, 308] {
            let server = try RawServer { _ in
                "HTTP/1.1 \(status) Moved\r\nLocation: http://127.0.0.1:\(port)/\r\nContent-Length: 0\r\n\r\n"
            }
            defer { server.stop() }
            let response = try await makeDefaultTransport().send(try request(server))
            #expect(response.status == status)
        }
        #expect(other.requests.isEmpty, "a credential never reaches another origin")
    }

    @Test func timeOutIsInMilliseconds() async throws {
        let server = try RawServer { _ in "" }
        defer { server.stop() }
        let start = SystemClock().uptime
        #expect(try await code(server, timeout: 0.2) == .timedOut)
        let elapsed = SystemClock().uptime - start
        #expect(elapsed >= 0.19)
    }

    @Test func failuresHaveTheirCodes() async throws {
        let closing = try RawServer { _ in nil }
        defer { closing.stop() }
        #expect(try await code(closing) == .connectionLost)

        let cut = try RawServer { _ in
            "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\nshort"
        }
        defer { cut.stop() }
        #expect(try await code(cut, timeout: 0.3) == .timedOut)

        let other = try RawServer { _ in "SSH-2.0-OpenSSH_9.2\r\n" }
        defer { other.stop() }
        #expect(try await code(other) == .other, "another server may answer next time")

        let gone = try RawServer { _ in nil }
        gone.stop()
        #expect(try await code(gone) == .cannotConnect)
    }

    @Test(arguments: [200, 503])
    func aLongBodyIsTruncatedAndItsStatusCounts(status: Int) async throws {
        let server = try RawServer { _ in
            "HTTP/1.1 \(status) X\r\nRetry-After: 7\r\nContent-Length: 2000\r\n\r\n"
                + String(repeating: "x", count: 2_000)
        }
        defer { server.stop() }
        let transport = makeDefaultTransport()
        for _ in 0..<2 {
            let response = try await transport.send(try request(server))
            #expect(response.status == status)
            #expect(response.header("Retry-After") == "7")
            #expect(response.body.count == 1_000)
            #expect(response.isTruncated)
        }
    }

    @Test func aBodyOfExactlyTheLimitIsComplete() async throws {
        let server = try RawServer { _ in
            "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + String(repeating: "x", count: 1_000)
        }
        defer { server.stop() }
        let response = try await makeDefaultTransport().send(try request(server))
        #expect(response.body.count == 1_000)
        #expect(!response.isTruncated)
    }

    @Test func anEndlessBodyEndsAtTheLimit() async throws {
        let server = try RawServer { _ in "HTTP/1.1 200 OK\r\n\r\n" + String(repeating: "x", count: 100_000) }
        defer { server.stop() }
        let response = try await makeDefaultTransport().send(try request(server))
        #expect(response.status == 200)
        #expect(response.body.count == 1_000)
    }

    /// Content encodings without `Accept-Encoding`: gzip, text that is not gzip, and an unknown encoding.
    @Test(arguments: [
        ("gzip", "H4sIAAAAAAACA6tWKi5NTk4tLlayKikqTa0FAN/39mYQAAAA", #"{"success":true}"#, false),
        ("gzip", "b2s=", "", true), ("wrong", "b2s=", "", true),
    ])
    func aCompressedAnswerIsDecodedAndItsStatusCounts(
        encoding: String, body: String, text: String, isTruncated: Bool
    ) async throws {
        let body = [UInt8](try #require(Data(base64Encoded: body)))
        let server = try RawServer(status: "201 Created") { _ in
            Array("Content-Encoding: \(encoding)\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body
        }
        defer { server.stop() }
        let response = try await makeDefaultTransport().send(try request(server))
        #expect(response.status == 201)
        #expect(String(decoding: response.body, as: UTF8.self) == text)
        #expect(response.isTruncated == isTruncated)
        #expect(server.requests[0].lowercased().contains("accept-encoding") == false)
    }

    @Test(arguments: [
        (#"{"success":true,"a":"x,}\"","b":[1,2"#, #"{"success":true,"a":"x,}\""}"#),
        (#"{"success":true}      "#, #"{"success":true}"#),
        (#"{"a":{"b":1,"c":2},"d"#, #"{"a":{"b":1,"c":2}}"#),
        (#"{"a":1"#, #"{"a":1"#), ("", ""), ("xx,yy", "xx,yy"),
    ])
    func aTruncatedObjectKeepsItsCompleteMembers(text: String, closed: String) {
        let cut = TransportResponse(status: 200, body: Array(text.utf8), isTruncated: true)
        #expect(String(decoding: cut.closingTruncatedObject().body, as: UTF8.self) == closed)
        let whole = TransportResponse(status: 200, body: Array(text.utf8))
        #expect(String(decoding: whole.closingTruncatedObject().body, as: UTF8.self) == text)
    }

    /// The workers of a consumer may share a transport: a long poll must not delay an acknowledgement.
    @Test func aRequestDoesNotWaitForAnother() async throws {
        let (arrived, left) = (Handshake(), Handshake())
        let server = try RawServer { head in
            if head.hasPrefix("GET") {
                arrived.signal()
                left.block()
            }
            return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        }
        defer { server.stop() }
        let (transport, request) = (makeDefaultTransport(), try request(server))
        let poll = TransportRequest(method: "GET", url: request.url, headers: [], body: [], timeout: 30)
        async let held = transport.send(poll)
        await arrived.wait()
        #expect(try await transport.send(request).status == 200)
        left.signal()
        #expect(try await held.status == 200)
        // Both connections are idle now, and one is used again.
        #expect(try await transport.send(request).status == 200)
        #expect(server.connectionCount == 2)
    }

    @Test func cancellingEndsAHangingRequest() async throws {
        let arrived = Handshake()
        let server = try RawServer { _ in
            arrived.signal()
            return ""
        }
        defer { server.stop() }
        let request = try request(server, timeout: 600)
        let task = Task { try await makeDefaultTransport().send(request) }
        await arrived.wait()
        task.cancel()
        await #expect(throws: HTTPTransportError.self) { try await task.value }
    }

    #if !canImport(Darwin)
        // Apple's systems have their own limit.
        @Test func headerFieldsBeyondALimitAreIgnored() async throws {
            let fields = String(repeating: "X: \(String(repeating: "x", count: 1_000))\r\n", count: 70)
            let server = try RawServer { _ in
                "HTTP/1.1 200 OK\r\n\(fields)Content-Length: 0\r\n\r\n"
            }
            defer { server.stop() }
            let response = try await makeDefaultTransport().send(try request(server))
            #expect(response.status == 200)
            #expect(response.headers.count < 70)
        }
    #endif
}
