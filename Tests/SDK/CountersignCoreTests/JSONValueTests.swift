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

    @Test func writtenValuesAreValidJSON() throws {
        let text = String(String.UnicodeScalarView((0..<0x300).compactMap(Unicode.Scalar.init)))
        let value: JSONValue = [
            "text": .string(text), "big": .integer(.min), "small": .number(.leastNonzeroMagnitude),
        ]
        let object = try JSONSerialization.jsonObject(with: Data(value.bytes)) as? [String: Any]
        #expect((object?["text"] as? String)?.utf8.elementsEqual(text.utf8) == true)
        #expect(object?["big"] as? Int64 == .min)
        #expect(object?["small"] as? Double == .leastNonzeroMagnitude)
    }

    static func nested(_ levels: Int, _ around: (JSONValue) -> JSONValue) -> JSONValue {
        (0..<levels).reduce(1) { inner, _ in around(inner) }
    }

    static let containers: [@Sendable (JSONValue) -> JSONValue] = [{ [$0] }, { ["a": $0] }]

    @Test(arguments: containers.indices)
    func aDeepValueIsComparedHashedPrintedWrittenAndCutOnASmallStack(container: Int) async {
        let nest = Self.containers[container]
        // The large stack is for releasing the values, which takes 200 bytes for each level.
        await onThread(stackSize: 16 << 20) {
            let box = Lock([20_000, 20_000, 19_999].map { Self.nested($0, nest) })
            let check: @Sendable () -> Void = {
                let values = box.withLock { $0 }
                let value = values[0]
                #expect(value == values[1] && value.hashValue == values[1].hashValue)
                #expect(value != values[2])
                #expect("\(value)".contains("null") && value.bytes.count < 20_000)
                #expect(value.limited() == Self.nested(60, nest).replacingOne(by: .null))
                #expect(JSONValue(any: [[value]] as Any) == [[value.limited(toLevels: 58)]])
            }
            let isOver = DispatchSemaphore(value: 0)
            let thread = Thread {
                check()
                isOver.signal()
            }
            // The default stack size of a secondary thread on Apple's systems.
            thread.stackSize = 512 << 10
            thread.start()
            isOver.wait()
            box.withLock { $0 = [] }
        }
    }

    @Test func aValueThatIsTooLargeWhenWrittenIsCut() {
        let web = (0..<50).reduce(JSONValue.integer(1)) { inner, _ in [inner, inner] }
        #expect(web.limited().bytes.count < 1_000_000)
        let wide = (0..<9).reduce(1 as JSONValue) { .array([$0] + Array(repeating: 1, count: 99_000 - $1)) }
        #expect(wide.limited().bytes.count < 250_000, "the limit is for all levels together")
    }

    @Test func valuesWithinTheDepthLimitAreNotChanged() {
        let value = Self.nested(60) { ["a": $0, "b": [1, nil, "x"]] }
        #expect(value.limited(toLevels: 61) == value)
        #expect(value.limited(toLevels: 60) != value)
    }

    @Test func equalValuesHaveEqualHashes() {
        let (value, other): (JSONValue, JSONValue) = (
            ["a": [1, 2.5, "x"], "b": ["c": nil, "d": true]],
            ["b": ["d": true, "c": nil], "a": [1, 2.5, "x"]]
        )
        #expect(value == other && Set([value, other]).count == 1)
        for different: JSONValue in [
            ["a": [1, 2.5, "x"], "b": ["c": nil, "d": false]], ["a": [1, 2.5], "b": ["c": nil, "d": true]],
            ["a": [1, 2.5, "x"], "e": ["c": nil, "d": true]], .null, 1, "a", [],
        ] { #expect(value != different) }
        #expect(JSONValue.integer(1) != .number(1) && JSONValue.number(.nan) != .number(.nan))
    }
}

extension JSONValue {
    /// Returns the value with each number 1 replaced.
    fileprivate func replacingOne(by other: JSONValue) -> JSONValue {
        switch self {
        case .integer(1): other
        case .array(let elements): .array(elements.map { $0.replacingOne(by: other) })
        case .object(let members): .object(members.mapValues { $0.replacingOne(by: other) })
        default: self
        }
    }
}

/// Runs `body` on a thread with this stack size, and waits for its end.
private func onThread(stackSize: Int, _ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
        let thread = Thread {
            body()
            continuation.resume()
        }
        thread.stackSize = stackSize
        thread.start()
    }
}
