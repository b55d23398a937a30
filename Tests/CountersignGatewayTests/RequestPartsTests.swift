import CountersignCore
import GatewayModel
import Testing

@testable import GatewayHTTP

/// Parsing of single parts of a request.
struct RequestPartsTests {
    private func fault(
        method: String = "GET", version: String = "HTTP/1.1", _ fields: [(name: String, value: String)]
    ) -> HTTPResponse? {
        // The fields point into this memory.
        let texts = fields.flatMap { [Array($0.name.utf8), Array($0.value.utf8)] }
        let memory = texts.map { text in
            let memory = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: text.count)
            _ = memory.initialize(from: text)
            return memory
        }
        defer { for memory in memory { memory.deallocate() } }
        let made = stride(from: 0, to: memory.count, by: 2).map {
            HTTPField(
                nameBytes: UnsafeBufferPointer(memory[$0]), valueBytes: UnsafeBufferPointer(memory[$0 + 1]))
        }
        return Array("/livez".utf8).withUnsafeBufferPointer {
            Framing.fault(
                method: method, target: RequestTarget($0), version: version, fields: made,
                limits: GatewayLimits(), singleFields: SingleFields())
        }
    }

    @Test func aMethodAndAFieldHaveANameOfOneCharacterAtLeast() {
        #expect(fault([("Host", "a"), ("x", "")]) == nil)
        #expect(fault(method: "", [("Host", "a")])?.code == "invalid_framing")
        #expect(fault([("Host", "a"), ("", "")])?.code == "invalid_framing")
    }

    /// RFC 9112, section 6.
    @Test(
        arguments: [
            ("HTTP/1.1", ["content-length: 2"], nil), ("HTTP/1.0", ["Content-Length: 2"], nil),
            ("HTTP/1.1", ["transfer-encoding: Chunked"], nil),
            ("HTTP/1.0", ["Transfer-Encoding: chunked"], "Transfer-Encoding in a request of HTTP/1.0"),
            ("HTTP/1.1", ["Content-Length: "], "Content-Length is not a number"),
            ("HTTP/1.1", ["Content-Length: 2,2"], "Content-Length is not a number"),
            ("HTTP/1.1", ["Content-Length: 2", "content-length: 2"], "more than one Content-Length"),
            (
                "HTTP/1.1", ["Transfer-Encoding: chunked", "transfer-encoding: chunked"],
                "more than one Transfer-Encoding"
            ),
            (
                "HTTP/1.1", ["Content-Length: 2", "Transfer-Encoding: chunked"],
                "both Content-Length and Transfer-Encoding"
            ),
            (
                "HTTP/1.1", ["Transfer-Encoding: gzip, chunked"],
                "the only supported transfer coding is chunked"
            ),
            (
                "HTTP/1.1", ["Transfer-Encoding: identity"],
                "the only supported transfer coding is chunked"
            ),
        ] as [(String, [String], String?)])
    func aBodyHasOneLengthOrChunks(version: String, lines: [String], reason: String?) {
        let fields = lines.map { line in
            (name: String(line.prefix { $0 != ":" }), value: String(line.drop { $0 != ":" }.dropFirst(2)))
        }
        let response = fault(version: version, [("Host", "a")] + fields)
        #expect((response == nil) == (reason == nil))
        if let response, let reason {
            #expect(String(decoding: response.body, as: UTF8.self).contains(#""reason":"\#(reason)""#))
            #expect(response.closes)
        }
    }

    @Test(arguments: [
        ("host", true), ("Host", true), ("HOST", true), ("hos", false), ("hosts", false), ("hort", false),
        ("", false), ("ho\u{13}t", false),
    ])
    func aNameIsComparedWhole(name: String, isHost: Bool) {
        Array(name.utf8).withUnsafeBufferPointer {
            #expect(
                HTTPField(nameBytes: $0, valueBytes: .init(start: nil, count: 0)).isNamed("host") == isHost)
        }
    }

    @Test(arguments: [0, 1, 17]) func whatIsShorterThanAnyGzipIsDamaged(count: Int) {
        let error = #expect(throws: Gunzip.Failure.self) {
            try Gunzip.size(of: [UInt8](repeating: 0, count: count), limits: GatewayLimits())
        }
        #expect(error == .damaged)
    }

    @Test(
        arguments: [
            ("/things/x/parts", ["POST"]), ("/things//parts", []), ("/things/x", []),
            ("/things/x/parts/", []),
            ("/plain", ["PUT"]), ("/plain/", ["PUT"]), ("/plain//", []), ("/plainx", []), ("/plai", []),
        ] as [(String, [String])])
    func aPathParameterIsOneSegmentThatIsNotEmpty(path: String, methods: [String]) {
        let router = Router([
            Endpoint(method: "PUT", path: "/plain") { _, _ in .answer(.text(200, "")) },
            Endpoint(method: "POST", path: "/things/{thing}/parts") { _, _ in .answer(.text(200, "")) },
        ])
        #expect(router.methods(of: path) == methods)
    }

    @Test(
        arguments: [
            (nil, nil), ("", nil), ("b=1", nil), ("a", ""), ("a=", ""), ("b&a", ""), ("a=1&a=2", "1"),
            ("A=1", nil), ("a=b=c", "b=c"), ("a=%41%20", "A "), ("a=%zz", nil), ("a=%ff", nil),
            ("a=" + String(repeating: "x", count: 2_049), nil), ("a=b+c%2B", "b c+"),
        ] as [(String?, String?)])
    func theFirstValueOfANameCounts(query: String?, value: String?) {
        #expect(QueryString.value(of: "a", in: query) == value)
    }
}
