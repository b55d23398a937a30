import Foundation
import TestSupport
import Testing

@testable import CountersignCore

struct JSONParserTests {
    private func value(_ text: String) -> JSONValue? { JSONParser.value(Array(text.utf8)) }

    @Test(
        arguments: [
            ("null", .null), (" true\n", true), ("false", false), ("[]", .array([])), ("{}", .object([:])),
            (#"{"a":[1,{"b":null}],"c":"d"}"#, ["a": [1, ["b": nil]], "c": "d"]),
            (#"{"a":1,"a":2}"#, ["a": 2]),
            ("0", 0), ("-0", 0), ("10.04", 10.04), ("1e3", 1_000), ("1.0", 1), ("1E-2", 0.01),
            ("1e400", .null),
            ("9007199254740993", 9_007_199_254_740_993), ("9223372036854775807", .integer(.max)),
            ("-9223372036854775808", .integer(.min)), ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775809", "-9223372036854775809"), (#""ä\u00e9\ud83d\ude42\n\/\"""#, "äé🙂\n/\""),
            (#""\ud83d""#, "\u{FFFD}"), (#""\ude42x""#, "\u{FFFD}x"), (#""\ud83d\u0041""#, "\u{FFFD}A"),
            ("\u{FEFF}[1]", [1]),
        ] as [(String, JSONValue)])
    func textIsRead(text: String, expected: JSONValue) {
        #expect(value(text) == expected)
    }

    @Test(arguments: [
        "", " ", "nul", "truex", "[1,]", "[1", "{", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}", "01", "-",
        "1.", ".5", "1e",
        "+1", "NaN", "Infinity", "\"a", "\"\n\"", #""\x""#, #""\u12""#, #""\u12g4""#, "[1] 2", "]", "'a'",
        "\"\\\"",
    ])
    func textThatIsNotJSONIsNotRead(text: String) {
        #expect(value(text) == nil)
    }

    @Test func textThatIsNotUTF8IsNotRead() {
        #expect(JSONParser.value([0x22, 0xFF, 0x22]) == nil)
    }

    @Test(arguments: ["[", "{\"a\":"])
    func valuesDeeperThanTheLimitBecomeNull(opening: String) throws {
        let closing = opening == "[" ? "]" : "}"
        for levels in [128, 129, 20_000, 1_000_000] {
            let text =
                String(repeating: opening, count: levels) + "1" + String(repeating: closing, count: levels)
            var value = try #require(self.value(text))
            var depth = 0
            while true {
                if case .array(let elements) = value, let first = elements.first {
                    value = first
                } else if case .object(let members) = value, let member = members["a"] {
                    value = member
                } else {
                    break
                }
                depth += 1
            }
            #expect(depth == 128 && value == (levels == 128 ? 1 : .null))
        }
        #expect(value(String(repeating: opening, count: 20_000)) == nil)
    }

    @Test func jsonWrittenByFoundationIsRead() throws {
        var random = SeededGenerator(seed: 7)
        func value(_ levels: Int) -> JSONValue {
            switch Int.random(in: 0..<(levels > 0 ? 8 : 6), using: &random) {
            case 0: .null
            case 1: .bool(.random(using: &random))
            case 2: .integer(.random(in: .min ... .max, using: &random))
            case 3: .number(.random(in: -1e6...1e6, using: &random))
            case 4, 5:
                .string(
                    String(
                        String.UnicodeScalarView(
                            (0..<Int.random(in: 0..<12, using: &random)).compactMap { _ in
                                Unicode.Scalar(UInt32.random(in: 0..<0x11_0000, using: &random))
                            })))
            case 6: .array((0..<4).map { _ in value(levels - 1) })
            default:
                .object(JSONObject((0..<4).map { ("k\($0)", value(levels - 1)) }, uniquingKeysWith: { $1 }))
            }
        }
        for _ in 0..<500 {
            let written = value(5)
            let object = try JSONSerialization.jsonObject(
                with: Data(written.bytes), options: .fragmentsAllowed)
            let pretty = try JSONSerialization.data(
                withJSONObject: [object], options: [.prettyPrinted, .withoutEscapingSlashes])
            // Numbers with an integral value may become integers.
            #expect(
                JSONParser.value(Array(pretty))?.bytes
                    == JSONParser.value([0x5B] + written.bytes + [0x5D])?.bytes)
        }
    }
}
