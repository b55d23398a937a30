import Foundation
import Testing

@testable import CountersignCore

struct JSONValueTests {
    @Test(
        arguments: [
            (JSONValue.null, "null"), (true, "true"), (-7, "-7"), (1.5, "1.5"), (.number(.infinity), "null"),
            (1e21, "1e+21"), ("a\"\\\n\t\u{1}\u{7F}é😀", #""a\"\\\n\t\u0001\u007fé😀""#), (.array([]), "[]"),
            (["b": [1, nil], "a": .object([:])], #"{"a":{},"b":[1,null]}"#),
        ] as [(JSONValue, String)])
    func valuesAreWritten(value: JSONValue, expected: String) {
        #expect(String(decoding: value.bytes, as: UTF8.self) == expected)
    }

    @Test func whatIsWrittenIsJSON() throws {
        let text = String(String.UnicodeScalarView((0..<0x300).compactMap(Unicode.Scalar.init)))
        let value: JSONValue = [
            "text": .string(text), "big": .integer(.min), "small": .number(.leastNonzeroMagnitude),
        ]
        let object = try JSONSerialization.jsonObject(with: Data(value.bytes)) as? [String: Any]
        #expect((object?["text"] as? String)?.utf8.elementsEqual(text.utf8) == true)
        #expect(object?["big"] as? Int64 == .min)
        #expect(object?["small"] as? Double == .leastNonzeroMagnitude)
    }

    /// Where nobody says what a value is in JSON, one that is missing is left out, and null where somebody does.
    @Test func anOptionalWithoutAValueIsNoneOrNull() {
        let missing: Any = Int?.none as Any
        #expect(JSONValue(any: missing) == nil)
        #expect(JSONValue(any: ["a": missing, "b": Int?.some(1) as Any] as [String: Any]) == ["b": 1])
        #expect(JSONValue(any: missing, encode: { _ in nil }) == .null)
        #expect(JSONValue(any: [missing, 1] as [Any], encode: { _ in nil }) == [nil, 1])
    }
}
