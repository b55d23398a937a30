import GatewayModel
import Testing

@testable import GatewayHTTP

/// Heads of requests: one interpretation, or a rejection (RFC 9112, sections 2 to 6; RFC 9110, sections 5 and 7).
struct HeadParserTests {
    private static let rules = HeadLimits(GatewayLimits())

    private struct Head: Equatable {
        var progress: HeadParser.Progress
        var count = 0
        var framing = BodyFraming.none
        var fields: [String] = []
    }

    /// Parses a text that arrives in pieces of this many bytes.
    private static func parse(_ text: String, pieces: Int = .max, rules: HeadLimits = rules) -> Head {
        var parser = HeadParser(rules)
        var bytes = Array(text.unicodeScalars.map { UInt8($0.value & 0xFF) })
        return bytes.withUnsafeMutableBytes { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            var end = 0
            while true {
                end = pieces >= bytes.count - end ? bytes.count : end + pieces
                let progress = parser.parse(UnsafeRawBufferPointer(rebasing: bytes[..<end]))
                guard progress != .incomplete || end == bytes.count else { continue }
                guard progress == .complete else { return Head(progress: progress) }
                var fields: [HTTPField] = []
                _ = parser.takeFields(of: bytes, to: &fields)
                return Head(
                    progress: progress, count: parser.count, framing: parser.framing,
                    fields: fields.map { "\(HTTPField.text($0.nameBytes))=\($0.value)" })
            }
        }
    }

    /// The result must not depend on the pieces in which the bytes arrive.
    private static func parseInAllPieces(_ text: String) -> Head {
        let whole = parse(text)
        for pieces in [1, 2, 3, 7] { #expect(parse(text, pieces: pieces) == whole, "\(pieces)") }
        return whole
    }

    private static func status(_ text: String) -> Int? {
        switch parseInAllPieces(text).progress {
        case .complete: 200
        case .incomplete: nil
        case .rejected(let fault): fault.status
        }
    }

    @Test func bytesAfterAHeadAreNotConsumed() {
        let text = "POST /v1/batch?a=b HTTP/1.1\r\nHost: a\r\nContent-Length:\t 12 \r\nx:\r\n\r\nGET / HTTP"
        let head = Self.parse(text)
        #expect(
            head
                == Head(
                    progress: .complete, count: text.utf8.count - "GET / HTTP".utf8.count,
                    framing: .length(12), fields: ["Host=a", "Content-Length=12", "x="]))
    }

    @Test(arguments: [
        "GET /\r\n", "GET  / HTTP/1.1\r\n", "GET / HTTP/1.1 \r\n", "GET /  HTTP/1.1\r\n",
        " GET / HTTP/1.1\r\n", "GET /\0 HTTP/1.1\r\n", "GET /a\tb HTTP/1.1\r\n", "GET / HTTP/11\r\n",
        "GET\t/ HTTP/1.1\r\n", "GET HTTP/1.1\r\n", "GET / HTTP/1\r\n", "GET / HTTP/01.1\r\n",
        "GET / HTTP/1.1.1\r\n", "GET / HTTP/ 1.1\r\n", "GET / http/1.1\r\n", "GET / HTTP/1.x\r\n",
        "GET /a b HTTP/1.1\r\n", "GE(T / HTTP/1.1\r\n", "G\u{e9}T / HTTP/1.1\r\n", "G\0T / HTTP/1.1\r\n",
        "\r\n\r\nGET / HTTP/1.1\r\n", "\nGET / HTTP/1.1\r\n", "GET / HTTP/1.1\n", "GET / HTTP/1.1\rX\r\n",
        "\u{16}\u{3}\u{1}", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJ", "{\"a\":1}",
    ])
    func aMalformedRequestLineIsRejected(line: String) {
        #expect(Self.status(line + "Host: a\r\n\r\n") == 400)
    }

    @Test(arguments: [
        ("GET / HTTP/2.0", 505), ("GET / HTTP/1.2", 200), ("GET / HTTP/0.9", 505), ("PRI * HTTP/2.0", 505),
        ("CONNECT a:443 HTTP/1.1", 501), ("CONNECT / HTTP/1.1", 501), ("GET a HTTP/1.1", 400),
        ("GET * HTTP/1.1", 400), ("OPTIONS *?a HTTP/1.1", 400), ("GET /\u{e9} HTTP/1.1", 400),
        ("GET /\u{7f} HTTP/1.1", 400),
        ("GET /#a HTTP/1.1", 400), ("GET ftp://a/ HTTP/1.1", 400), ("GET http://b/ HTTP/1.1", 400),
        ("GET http:///a HTTP/1.1", 400), ("GET http://u@a/ HTTP/1.1", 400), ("OPTIONS * HTTP/1.1", 200),
        ("GET HTTPS://A/b HTTP/1.1", 200), ("GET http://a?b HTTP/1.1", 200), ("get / HTTP/1.0", 200),
        ("\r\nGET / HTTP/1.1", 200), ("GET /\\a HTTP/1.1", 200),
    ])
    func requestTargetsAndHTTPVersionsAreValidated(line: String, status: Int) {
        #expect(Self.status(line + "\r\nHost: a\r\n\r\n") == status)
    }

    @Test(arguments: [
        ("X: b\n", 400), ("X: b\r\n c\r\n", 400), ("X : b\r\n", 400), (": b\r\n", 400), ("X\r\n", 400),
        (" X: b\r\n", 400), ("\tX: b\r\n", 400), ("X: b\0c\r\n", 400), ("X: b\rc\r\n", 400),
        ("X: b\r\r\n", 400), ("X: \u{7f}\r\n", 400), ("X[: b\r\n", 400), ("X\u{e9}: b\r\n", 400),
        ("Host: a\r\n", 400), ("Host: b\r\n", 400), ("X: b\tc \r\n", 200), ("X: \u{e9}\r\n", 200),
        ("Cookie: a\r\ncookie: b\r\n", 400), ("Accept: a\r\nAccept: b\r\n", 200), ("\n", 400),
        ("X: b\u{1}\r\n", 400), ("X\u{1}: b\r\n", 400),
    ])
    func headerFieldsAreValidated(lines: String, status: Int) {
        #expect(Self.status("GET / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n") == status)
    }

    @Test(
        arguments: [
            ("Content-Length: 0", .length(0)), ("content-length: 5", .length(5)),
            ("Content-Length: 9223372036854775807", .length(.max)),
            ("Transfer-Encoding: chunked", .chunked), ("Transfer-Encoding:\tCHUNKED ", .chunked),
            ("Transfer_Encoding: chunked", .none),
        ] as [(String, BodyFraming)])
    func aBodyHasOneFraming(field: String, framing: BodyFraming) {
        let head = Self.parseInAllPieces("POST / HTTP/1.1\r\nHost: a\r\n\(field)\r\n\r\n")
        #expect(head.progress == .complete)
        #expect(head.framing == framing)
    }

    @Test(arguments: [
        ("Content-Length:", 400), ("Content-Length: 05", 400), ("Content-Length: 00", 400),
        ("Content-Length: 9223372036854775808", 400), ("Content-Length: 99999999999999999999999", 400),
        ("Content-Length: +5", 400), ("Content-Length: -0", 400), ("Content-Length: 5, 5", 400),
        ("Content-Length: 0x5", 400), ("Content-Length: 1 0", 400), ("Content-Length: 1_0", 400),
        ("Content-Length: 5\r\nContent-Length: 5", 400),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", 400),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", 400),
        ("Transfer-Encoding: identity\r\nContent-Length: 5", 400), ("Transfer-Encoding:", 400),
        ("Transfer-Encoding: chunked, chunked", 400), ("Transfer-Encoding: chunked, gzip", 400),
        ("Transfer-Encoding: chunked;a=b", 400), ("Transfer-Encoding: \u{b}chunked", 400),
        ("Transfer-Encoding: chunked\0", 400), ("Transfer-Encoding: , chunked", 501),
        ("Transfer-Encoding: gzip, chunked", 501), ("Transfer-Encoding: xchunked", 501),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", 400),
    ])
    func ambiguousFramingIsRejected(fields: String, status: Int) {
        #expect(Self.status("POST / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n") == status)
        #expect(Self.status("POST / HTTP/1.1\r\n\(fields)\r\nHost: a\r\n\r\n") == status)
    }

    @Test(arguments: [
        ("HTTP/1.1", "", true), ("HTTP/1.1", "Connection: close", false),
        ("HTTP/1.1", "Connection: x, Close", false), ("HTTP/1.1", "Connection: closed", true),
        ("HTTP/1.1", "Connection: keep-alive\r\nConnection: close", false), ("HTTP/1.0", "", false),
        ("HTTP/1.0", "Connection: Keep-Alive", true), ("HTTP/1.0", "Connection: keep-alive, close", false),
    ])
    func keepAliveIsParsedFromVersionAndConnectionField(version: String, field: String, keeps: Bool) {
        var parser = HeadParser(Self.rules)
        let end = field.isEmpty ? "\r\n" : "\(field)\r\n\r\n"
        var text = "GET / \(version)\r\nHost: a\r\n\(end)"
        #expect(text.withUTF8 { parser.parse(UnsafeRawBufferPointer($0)) } == .complete)
        #expect(parser.keepsAlive == keeps)
    }

    @Test func headLimitsApplyToCompleteAndEndlessHeads() {
        var limits = GatewayLimits()
        limits.headerBytes = 100
        limits.headerFields = 3
        let rules = HeadLimits(limits)
        func status(_ text: String) -> Int? {
            switch Self.parse(text, pieces: 1, rules: rules).progress {
            case .rejected(let fault): fault.status
            case .complete: 200
            case .incomplete: nil
            }
        }
        let start = "GET / HTTP/1.1\r\nHost: a\r\nX: "
        let rest = 100 - start.utf8.count - 2
        #expect(status(start + String(repeating: "x", count: rest) + "\r\n\r\n") == 200)
        #expect(status(start + String(repeating: "x", count: rest + 1) + "\r\n\r\n") == 431)
        #expect(status(start + String(repeating: "x", count: 1_000)) == 431)
        for end in ["", " HTTP/1.1\r\n"] {
            #expect(status("GET /" + String(repeating: "x", count: 120) + end) == 414)
        }
        #expect(status("GET / HTTP/1.1\r\nHost: a\r\nA:\r\nB:\r\n\r\n") == 200)
        #expect(status("GET / HTTP/1.1\r\nHost: a\r\nA:\r\nB:\r\nC:\r\n") == 431)
    }
}
