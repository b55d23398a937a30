import CountersignCore
import GatewayModel
import Testing

@testable import GatewayHTTP

/// Parsing of single parts of a request.
struct RequestPartsTests {
    @Test(arguments: [
        ("host", true), ("Host", true), ("HOST", true), ("hos", false), ("hosts", false), ("hort", false),
        ("", false), ("ho\u{13}t", false),
    ])
    func fieldNamesAreComparedCompletelyAndCaseInsensitively(name: String, isHost: Bool) {
        Array(name.utf8).withUnsafeBufferPointer {
            #expect(
                HTTPField(nameBytes: $0, valueBytes: .init(start: nil, count: 0)).isNamed("host") == isHost)
        }
    }

    @Test(arguments: [0, 1, 17]) func aBodyShorterThanAGzipHeaderAndTrailerIsDamaged(count: Int) {
        let error = #expect(throws: Gunzip.Failure.self) {
            try Gunzip.size(of: [UInt8](repeating: 0, count: count), limits: GatewayLimits())
        }
        #expect(error == .damaged)
    }

    @Test(
        arguments: [
            ("/things/x/parts", ["POST"]), ("/things//parts", []), ("/things/x", []),
            ("/things/x/parts/", []), ("/things/x/parts/y", ["PATCH"]), ("/things/x/parts/y/z", []),
            ("/plain", ["PUT"]), ("/plain/", ["PUT"]), ("/plain//", []), ("/plainx", []), ("/plai", []),
        ] as [(String, [String])])
    func aPathParameterIsOneSegmentThatIsNotEmpty(path: String, methods: [String]) {
        let router = Router([
            Endpoint(method: "PUT", path: "/plain") { _, _ in .answer(.text(200, "")) },
            Endpoint(method: "POST", path: "/things/{thing}/parts") { _, _ in .answer(.text(200, "")) },
            Endpoint(method: "PATCH", path: "/things/{thing}/parts/{part}") { _, _ in
                .answer(.text(200, ""))
            },
        ])
        #expect(router.methods(of: path) == methods)
    }

    @Test(
        arguments: [
            (nil, nil), ("", nil), ("b=1", nil), ("a", ""), ("a=", ""), ("b&a", ""), ("a=1&a=2", "1"),
            ("A=1", nil), ("a=b=c", "b=c"), ("a=%41%20", "A "), ("a=%zz", nil), ("a=%ff", nil),
            ("a=" + String(repeating: "x", count: 2_049), nil), ("a=b+c%2B", "b c+"),
        ] as [(String?, String?)])
    func theFirstQueryParameterOfANameIsUsed(query: String?, value: String?) {
        #expect(QueryString.value(of: "a", in: query) == value)
    }
}
