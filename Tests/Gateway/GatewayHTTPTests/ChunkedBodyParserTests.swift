import GatewayModel
import Testing

@testable import GatewayHTTP

/// Chunked bodies (RFC 9112, section 7.1).
struct ChunkedBodyParserTests {
    private struct Body: Equatable {
        var content = ""
        var rest = ""
        var end: ChunkedBodyParser.Step = .incomplete
    }

    /// Parses a text that arrives in pieces of this many bytes.
    private static func parse(_ text: String, pieces: Int) -> Body {
        var parser = ChunkedBodyParser(HeadLimits(GatewayLimits()))
        var body = Body()
        let bytes = text.unicodeScalars.map { UInt8($0.value & 0xFF) }
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            let piece = Array(bytes[start..<min(bytes.count, start + pieces)])
            var position = 0
            let step = piece.withUnsafeBytes { piece in
                while true {
                    let step = parser.next(piece, from: &position)
                    guard case .content(let range) = step else { return step }
                    body.content += String(decoding: piece[range], as: UTF8.self)
                }
            }
            if step == .incomplete { continue }
            body.end = step
            body.rest = String(decoding: bytes[(start + position)...], as: UTF8.self)
            break
        }
        return body
    }

    /// The result must not depend on the pieces in which the bytes arrive.
    private static func parse(_ text: String) -> Body {
        let whole = parse(text, pieces: max(1, text.utf8.count))
        for pieces in [1, 2, 3, 7] {
            var other = parse(text, pieces: pieces)
            if case .rejected = other.end { other.rest = whole.rest }
            #expect(other == whole, "\(pieces)")
        }
        return whole
    }

    @Test(arguments: [
        "5\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n000\r\n\r\n", "1\r\nh\r\n4\r\nello\r\n0\r\n\r\n",
        "005\r\nhello\r\n0\r\n\r\n", "5;a\r\nhello\r\n0;b=c;d=\"e \\\" f\"\r\n\r\n",
        "5;a=b;c\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nX-Checksum: a\tb\u{e9}\r\ny:\r\n\r\n",
    ])
    func chunksAreJoinedAndLaterBytesAreKept(text: String) {
        #expect(Self.parse(text + "GET /") == Body(content: "hello", rest: "GET /", end: .end))
    }

    @Test(arguments: [
        "\r\n", "g\r\n", " 5\r\nhello\r\n", "5 \r\nhello\r\n", "+5\r\n", "-1\r\n", "0x5\r\n", "1_0\r\n",
        "5\nhello\r\n", "5\rhello\r\n", "5\r\nhello\n", "5\r\nhello!\r\n", "5\r\nhello0\r\n", "5\r\nhello\rx",
        "5;\r\nhello\r\n", "5;;a\r\n", "5;=b\r\n", "5;a=\r\n", "5;a=b=c\r\n", "5;bad[=x\r\n", "5; a\r\n",
        "5;a\nb\r\n",
        "5;a\rb\r\n", "5;a\0\r\n", "5;a=\"b\r\n", "5;a=\"b\"c\r\n", "5;a=\"\0\"\r\n", "FFFFFFFFFFFFFFFF\r\n",
        "0000000000000000\r\n", "0\r\n\n", "0\r\n\rx", "0\r\nX : b\r\n\r\n", "0\r\n: b\r\n\r\n",
        "0\r\nX\r\n\r\n",
        "0\r\nX: b\0\r\n\r\n", "0\r\nX: b\n\r\n", "0\r\n X: b\r\n\r\n", "0\r\nX: b\r\n c\r\n\r\n",
        "0\r\nX: b\rc\r\n\r\n",
    ])
    func malformedChunksAreRejected(text: String) {
        guard case .rejected(let fault) = Self.parse(text).end else {
            Issue.record("accepted")
            return
        }
        #expect(fault.status == 400)
    }

    @Test(arguments: [
        ("5;a=" + String(repeating: "x", count: 65_536), 400),
        (String(repeating: "1;a=xxxxxxxxxxxxxxxx\r\nx\r\n", count: 60), 400),
        ("0\r\n" + String(repeating: "A: b\r\n", count: 101), 431),
        ("0\r\nA: " + String(repeating: "x", count: 16_384), 431),
    ])
    func extensionsAndTrailersHaveLimits(text: String, status: Int) {
        guard case .rejected(let fault) = Self.parse(text).end else {
            Issue.record("accepted")
            return
        }
        #expect(fault.status == status)
    }

    @Test(arguments: [(500, 1, false), (501, 1, true), (501, 31, true), (2_000, 32, false)])
    func tooManyTinyChunksAreRejected(count: Int, bytes: Int, isCrumbled: Bool) {
        let chunk = String(bytes, radix: 16) + "\r\n" + String(repeating: "x", count: bytes) + "\r\n"
        let body = Self.parse(String(repeating: chunk, count: count) + "0\r\n\r\n", pieces: 1_000)
        #expect(body.end == (isCrumbled ? .crumbled : .end))
    }
}
