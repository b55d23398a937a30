import Foundation
import Testing

@testable import CountersignCore

/// The conversions of Swift in docs/reference/event-format.md.
struct ValueTypeTests {
    private struct Item: Encodable {
        var name: String
        var price: Decimal
        var bought: Date?
        var weight = Double.nan
        var tags: Set<String> = ["tea"]
        var parts: [Item] = []
    }

    private enum Plan: String, Encodable { case free }

    private final class Foreign {}

    private final class Node: Encodable {
        var name = "a"
        var next: Node?
    }

    private struct Broken: Encodable {
        func encode(to encoder: any Encoder) throws { throw CocoaError(.coderInvalidValue) }
    }

    private struct Nested: Encodable {
        enum Key: CodingKey { case list, map, base }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Key.self)
            var list = container.nestedUnkeyedContainer(forKey: .list)
            try list.encode(1)
            try list.encodeNil()
            var inner = list.nestedUnkeyedContainer()
            try inner.encode("x")
            var map = container.nestedContainer(keyedBy: Key.self, forKey: .map)
            try map.encode(UInt64.max, forKey: .base)
            var single = container.superEncoder(forKey: .base).singleValueContainer()
            try single.encode(1.5)
        }
    }

    private static let instant = Date(timeIntervalSince1970: 1_750_000_000.007)

    nonisolated(unsafe) private static let table: [(String, Any, JSONValue?)] = [
        ("text", "ä", "ä"), ("a part of text", "abc".dropFirst(), "bc"), ("a character", Character("x"), "x"),
        ("NSString", NSString("ä"), "ä"),
        ("a fraction", 10.04, 10.04), ("Float", Float(10.04), 10.04), ("CGFloat", CGFloat(0.5), 0.5),
        ("an integer above 2^53", 9_007_199_254_740_993, 9_007_199_254_740_993),
        ("the greatest integer of 64 bits", Int64.max, .integer(.max)),
        ("the least integer of 64 bits", Int64.min, .integer(.min)),
        ("UInt64.max", UInt64.max, "18446744073709551615"), ("UInt8", UInt8(7), 7),
        ("NSNumber of UInt64.max", NSNumber(value: UInt64.max), "18446744073709551615"),
        ("NaN", Double.nan, .null), ("infinity", -Float.infinity, .null),
        ("Decimal", (Decimal(string: "10.04") ?? 0), 10.04), ("a Decimal of an integer", Decimal(5), 5),
        (
            "a Decimal with more digits", (Decimal(string: "12345678901234567890.123") ?? 0),
            "12345678901234567890.123"
        ),
        ("a Decimal over 64 bits", (Decimal(string: "18446744073709551616") ?? 0), "18446744073709551616"),
        ("a Decimal that is not a number", Decimal.nan, .null),
        ("NSDecimalNumber", NSDecimalNumber(string: "10.04"), 10.04),
        ("Date", instant, "2025-06-15T15:06:40.007Z"),
        ("NSDate", NSDate(timeIntervalSince1970: 0), "1970-01-01T00:00:00.000Z"),
        ("a Date beyond the year 9999", Date(timeIntervalSince1970: 1e15), .null),
        (
            "UUID", UUID(uuidString: "6BA7B810-9DAD-11D1-80B4-00C04FD430C8") ?? UUID(),
            "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"
        ),
        ("URL", URL(string: "https://shop.example/") ?? URL(fileURLWithPath: "/"), "https://shop.example/"),
        ("Data", Data([0, 255, 16]), "AP8Q"), ("[UInt8]", [UInt8(1), 2], [1, 2]),
        ("a part of an array", [1, 2, 3][1...], [2, 3]),
        ("ContiguousArray", ContiguousArray([1.5]), [1.5]), ("Set", Set([1]), [1]),
        ("NSSet", NSSet(object: "a"), ["a"]),
        ("NSArray", NSArray(array: [1, "a"]), [1, "a"]),
        ("NSDictionary", NSDictionary(dictionary: ["a": 1]), ["a": 1]),
        ("a dictionary of integers", [1: "a"], ["1": "a"]),
        ("a dictionary of dates", [instant: 1], ["2025-06-15T15:06:40.007Z": 1]),
        ("nil", Int?.none as Any, .null), ("an optional", Int??.some(.some(5)) as Any, 5),
        ("NSNull", NSNull(), .null),
        ("an optional in an array", [nil, 1] as [Int?], [nil, 1]), ("AnyHashable", AnyHashable(5), 5),
        ("a boolean", true, true), ("JSONValue", JSONValue.array([1]), [1]),
        ("JSONObject", ["a": 1] as JSONObject, ["a": 1]),
        (
            "a struct",
            Item(
                name: "Tea", price: (Decimal(string: "10.04") ?? 0), bought: instant,
                parts: [Item(name: "Bag", price: 1)]),
            [
                "name": "Tea", "price": 10.04, "bought": "2025-06-15T15:06:40.007Z", "weight": nil,
                "tags": ["tea"],
                "parts": [["name": "Bag", "price": 1, "weight": nil, "tags": ["tea"], "parts": []]],
            ]
        ),
        ("an enum", Plan.free, "free"),
        (
            "containers in containers", Nested(),
            ["list": [1, nil, ["x"]], "map": ["base": "18446744073709551615"], "base": 1.5]
        ),
        ("an Encodable that throws", Broken(), .null), ("the same in an array", [Broken()], [nil]),
        ("a function", { 1 } as () -> Int, nil),
        ("an object of a class that is not Encodable", Foreign(), nil),
        ("such an object in an array", [Foreign(), 1] as [Any], [nil, 1]),
        ("such an object in a dictionary", ["a": Foreign(), "b": 1] as [String: Any], ["b": 1]),
    ]

    @Test(arguments: table.indices)
    func valuesOfAnyTypeAreConvertedAsDocumented(index: Int) {
        let (name, value, expected) = Self.table[index]
        #expect(JSONValue(any: value) == expected, "\(name)")
        // The same value inside an array and a dictionary.
        #expect(JSONValue(any: ["v": [value]] as [String: Any]) == ["v": [expected ?? .null]], "\(name)")
    }

    @Test func everyAmountInCentsKeepsItsDigits() {
        for cents in 0..<10_000 {
            let text = "\(cents / 100).\(cents % 100 / 10)\(cents % 10)"
            let number = JSONValue(any: Decimal(string: text)!)?.description ?? ""
            #expect(
                Decimal(string: number) == Decimal(string: text) && number.utf8.count <= text.utf8.count,
                "\(number)")
        }
    }

    @Test func typesThatAreNotSupportedAreReported() {
        var reported: [String] = []
        _ = JSONValue(any: ["a": [Foreign(), 1]] as [String: Any]) { reported.append("\($0)") }
        #expect(reported == ["Foreign"])
    }

    @Test func aCyclicReferenceBecomesNull() {
        let node = Node()
        node.next = node
        #expect(JSONValue(any: node) == ["name": "a", "next": nil])
        node.next = nil
    }

    @Test func objectsNestedTwentyThousandLevelsDeepAreCut() {
        let nodes = (0..<20_000).map { _ in Node() }
        for (node, next) in zip(nodes, nodes.dropFirst()) { node.next = next }
        #expect((JSONValue(any: nodes[0])?.bytes.count ?? 0) < 2_000)
        // Swift would release the nodes recursively and overflow the stack.
        for node in nodes { node.next = nil }
        var any: Any = 1
        for _ in 0..<1_000 { any = [any] }
        #expect((JSONValue(any: any)?.bytes.count ?? 0) < 200)
    }

    @Test func anObjectThatIsTooLargeWhenWrittenIsCut() {
        final class Pair: Encodable {
            let (left, right): (Pair?, Pair?)
            init(_ inner: Pair?) { (left, right) = (inner, inner) }
        }
        let web = (0..<50).reduce(Pair(nil)) { inner, _ in Pair(inner) }
        #expect((JSONValue(any: web)?.bytes.count ?? 0) < 10_000_000)
    }
}
