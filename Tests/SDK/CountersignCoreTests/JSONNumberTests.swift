import Foundation
import Testing

@testable import CountersignCore

/// `NSNumber` and Swift numbers as JSON.
struct JSONNumberTests {
    @Test(
        arguments: [
            (NSNumber(value: 5), .integer(5)),
            (NSNumber(value: Int64.max), .integer(.max)),
            (NSNumber(value: Int64.min), .integer(.min)),
            (NSNumber(value: 9_007_199_254_740_993 as Int64), .integer(9_007_199_254_740_993)),
            (NSNumber(value: Int16(-7)), .integer(-7)),
            (NSNumber(value: UInt32.max), .integer(4_294_967_295)),
            (NSNumber(value: UInt64(Int64.max)), .integer(.max)),
            (NSNumber(value: 5.0), .number(5)),
            (NSNumber(value: 0.1), .number(0.1)),
            (NSNumber(value: Float(0.5)), .number(0.5)),
            (NSDecimalNumber(string: "9007199254740993"), .integer(9_007_199_254_740_993)),
            (NSDecimalNumber(string: "42.5"), .number(42.5)), (NSNumber(value: Float(0.1)), .number(0.1)),
            (NSNumber(value: UInt64.max), "18446744073709551615"), (NSNumber(value: Double.nan), .null),
        ] as [(NSNumber, JSONValue)])
    func aNumberKeepsItsDigits(number: NSNumber, expected: JSONValue) {
        #expect(JSONValue(any: number) == expected)
        #expect(JSONValue(any: ["n": [number] as [Any]] as [String: Any]) == ["n": .array([expected])])
    }

    @Test func swiftNumbersKeepTheirValue() {
        let values: [Any] = [true, false, 1, 1.0, UInt8(7), "1", Float(2)]
        #expect(
            JSONValue(any: values)
                == .array([.bool(true), .bool(false), .integer(1), .number(1), .integer(7), "1", .number(2)]))
    }

    @Test func numbersReadFromJSONAreWrittenUnchanged() throws {
        let text = #"{"big":9007199254740993,"no":false,"small":0.25,"whole":5,"yes":true}"#
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8))
        #expect(JSONValue(any: object).map { String(decoding: $0.bytes, as: UTF8.self) } == text)
    }
}
