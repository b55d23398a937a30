import CountersignGatewayTesting
import GatewayTestSupport
import Testing

@testable import CountersignGateway

/// Request line, Host and fields that may occur once (RFC 9112, sections 3 and 5; RFC 9110, 5.3 and 7.2).
@Suite(.ownThreads, .oneGateway, .timeLimit(.minutes(5)))
struct RequestLineTests {
    private func answers(to head: String) throws -> [TestAnswer] {
        let fixture = try #require(OneGatewayTrait.fixture)
        let connection = try RawConnection(port: fixture.gateway.port)
        connection.send(head)
        var answers: [TestAnswer] = []
        while let answer = connection.answer() {
            answers.append(answer)
            // A 404 leaves the connection open, like a success.
            if answer.headers["connection"] != "close", answer.status < 400 || answer.status == 404 { break }
        }
        // A missing answer must mean a closed connection, and not a stopped gateway.
        let other = try RawConnection(port: fixture.gateway.port)
        #expect(other.get("/livez")?.status == 200)
        if answers.isEmpty { #expect(connection.isClosedByServer()) }
        return answers
    }

    /// `HeadParserTests` covers other malformed heads.
    @Test(arguments: [
        ("GET  /livez HTTP/1.1", 400), ("CONNECT a:443 HTTP/1.1", 501), ("GET /livez HTTP/2.0", 505),
        ("GET /livez%00 HTTP/1.1", 400), ("GET /livez% HTTP/1.1", 400), ("GET /livez%2 HTTP/1.1", 400),
        ("GET /livez%zz HTTP/1.1", 400),
    ])
    func anInvalidRequestLineIsRejected(line: String, status: Int) throws {
        #expect(try answers(to: "\(line)\r\nHost: a\r\n\r\n").map(\.status) == [status])
    }

    @Test(arguments: [
        "", "a/b", "u@a", "a,b", "a b", "a:b", "a:99999", "a:1:2", "[::1", "[::1]x", "[1.2.3.4]",
        "[::g]", "a?b", "a#b", "a%41", "é", "http://a", ":80", "\\a", "a;b", "a\"b",
    ])
    func anInvalidHostIsRejected(host: String) throws {
        #expect(try answers(to: "GET /livez HTTP/1.1\r\nHost: \(host)\r\n\r\n").map(\.status) == [400])
    }

    @Test(arguments: [
        "a", "a:", "collect.example", "collect.example:8787", "127.0.0.1:1", "[::1]", "[::1]:8787",
        "my_service.local",
    ])
    func aValidHostIsAccepted(host: String) throws {
        #expect(try answers(to: "GET /livez HTTP/1.1\r\nHost: \(host)\r\n\r\n").map(\.status) == [200])
    }

    @Test(arguments: [
        ("GET http://a/livez HTTP/1.1", 200), ("GET HTTP://A/livez?x=1 HTTP/1.1", 200),
        ("GET http://a HTTP/1.1", 302),
        ("OPTIONS * HTTP/1.1", 204), ("GET /livez?a=%41&b= HTTP/1.1", 200),
        ("GET /livez?a=%zz&b=%00 HTTP/1.1", 200), ("GET /livez HTTP/1.0", 200),
    ])
    func absoluteAndAsteriskRequestTargetsAreAnswered(line: String, status: Int) throws {
        #expect(try answers(to: "\(line)\r\nHost: a\r\n\r\n").first?.status == status)
    }

    @Test(arguments: [
        "Authorization: Bearer a", "X-Write-Key: k", "X-Countersign-Signature: t", "X-Braze-Api-Key: k",
        "X-Braze-Auth-Signature: t", "Cookie: a=b", "Content-Type: application/json", "DPoP: p",
        "Content-Encoding: gzip", "X-CSRF-Token: c", "Origin: https://a", "Idempotency-Key: k",
        "If-Match: \"a\"", "Last-Event-ID: 1",
    ])
    func aDuplicateOfASingleValuedFieldIsRejected(field: String) throws {
        let other = field.lowercased()
        let all = try answers(
            to: "POST /v1/batch HTTP/1.1\r\nHost: a\r\n\(field)\r\n\(other)\r\nContent-Length: 2\r\n\r\n{}")
        #expect(all.map(\.status) == [400])
        #expect(all.first?.json["code"] as? String == "duplicate_field")
        let name = try #require(field.split(separator: ":").first).lowercased()
        #expect((all.first?.json["reason"] as? String)?.contains(name) == true)
    }

    @Test(arguments: [
        ("Content-Length: 9223372036854775808", [400]), ("Content-Length: 9223372036854775807", [413]),
        ("Content-Length: 5000000", [413]),
    ])
    func aContentLengthOverTheLimitGetsOneResponse(field: String, statuses: [Int]) throws {
        let all = try answers(to: "POST /v1/batch HTTP/1.1\r\nHost: a\r\n\(field)\r\n\r\n")
        #expect(all.map(\.status) == statuses)
    }

    @Test(arguments: [
        "HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX\u{1}: b\r\n\r\n",
        "HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX : b\r\n\r\n",
    ])
    func aBodyWithAnAmbiguousEndClosesTheConnection(rest: String) throws {
        let all = try answers(to: "POST /v1/batch \(rest)GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(all.count == 1)
        #expect(all.allSatisfy { $0.status == 400 || $0.status == 413 })
    }
}
