/// The members of a JSON object. Names that differ in one byte of their UTF-8 are different names.
public typealias JSONObject = BytewiseDictionary<JSONValue>

/// A JSON value (RFC 8259), as apps pass it in event properties.
///
/// Properties have at most 60 levels of arrays and objects; deeper ones are sent as `null`. Do not nest values
/// thousands of levels deep: Swift releases a value recursively, which overflows the stack of a thread.
public enum JSONValue: Sendable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number without a fraction that fits 64 bits.
    case integer(Int64)
    /// Any other number. Sent as `null` if it is not finite.
    case number(Double)
    /// A string.
    case string(String)
    /// An array.
    case array([JSONValue])
    /// An object.
    case object(JSONObject)
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public init(nilLiteral: ()) { self = .null }
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public init(integerLiteral value: Int64) { self = .integer(value) }
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public init(floatLiteral value: Double) { self = .number(value) }
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public init(stringLiteral value: String) { self = .string(value) }
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// If a key occurs twice, the last value is used.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(JSONObject(elements, uniquingKeysWith: { _, last in last }))
    }
}

extension JSONValue: Hashable {
    // Synthesized conformances would recurse without a bound and overflow the stack for deeply nested values.

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public static func == (left: JSONValue, right: JSONValue) -> Bool {
        var pairs: [(JSONValue, JSONValue)] = []
        var pair = (left, right)
        while true {
            switch pair {
            case (.null, .null): break
            case (.bool(let left), .bool(let right)): guard left == right else { return false }
            case (.integer(let left), .integer(let right)): guard left == right else { return false }
            case (.number(let left), .number(let right)): guard left == right else { return false }
            case (.string(let left), .string(let right)): guard left == right else { return false }
            case (.array(let left), .array(let right)):
                guard left.count == right.count else { return false }
                pairs.append(contentsOf: zip(left, right))
            case (.object(let left), .object(let right)):
                guard left.count == right.count else { return false }
                for (name, value) in left {
                    guard let other = right[name] else { return false }
                    pairs.append((value, other))
                }
            default: return false
            }
            guard let next = pairs.popLast() else { return true }
            pair = next
        }
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func hash(into hasher: inout Hasher) { hash(into: &hasher, levels: Self.maximumLevels) }

    private func hash(into hasher: inout Hasher, levels: Int) {
        switch self {
        case .null: hasher.combine(0)
        case .bool(let value): hasher.combine(value)
        case .integer(let value): hasher.combine(value)
        case .number(let value): hasher.combine(value)
        case .string(let value): hasher.combine(BytewiseText(value))
        case .array(let elements):
            hasher.combine(elements.count)
            guard levels > 0 else { return }
            for element in elements { element.hash(into: &hasher, levels: levels - 1) }
        case .object(let members):
            hasher.combine(members.count)
            guard levels > 0 else { return }
            // Combines the members with XOR, because they have no order.
            var sum = 0
            for (name, value) in members {
                var member = hasher
                member.combine(BytewiseText(name))
                value.hash(into: &member, levels: levels - 1)
                sum ^= member.finalize()
            }
            hasher.combine(sum)
        }
    }
}

extension JSONValue: CustomStringConvertible {
    /// The value as compact JSON with sorted keys.
    public var description: String { String(decoding: bytes, as: UTF8.self) }
}

extension JSONValue {
    /// The gateway reads 64 levels of a request. At most four levels enclose the properties of an event.
    package static let maximumLevels = 60
    /// An event with more values is longer than the SDK accepts by default (32 KiB).
    static let maximumValues = 100_000
    private static let maximumWrittenLevels = 1_100

    /// Replaces deeper arrays and objects by null, and cuts arrays and objects after the maximum number of values.
    package func limited(toLevels levels: Int = maximumLevels) -> JSONValue {
        var room = Self.maximumValues
        if fits(levels: levels, &room) { return self }
        room = Self.maximumValues
        return cut(levels: levels, &room)
    }

    private func fits(levels: Int, _ room: inout Int) -> Bool {
        room -= 1
        guard room >= 0 else { return false }
        switch self {
        case .array(let elements):
            return levels > 0 && elements.allSatisfy { $0.fits(levels: levels - 1, &room) }
        case .object(let members):
            return levels > 0 && members.values.allSatisfy { $0.fits(levels: levels - 1, &room) }
        default: return true
        }
    }

    private func cut(levels: Int, _ room: inout Int) -> JSONValue {
        room -= 1
        switch self {
        case .array(let elements):
            guard levels > 0 else { return .null }
            return .array(elements.compactMap { room > 0 ? .some($0.cut(levels: levels - 1, &room)) : .none })
        case .object(let members):
            guard levels > 0 else { return .null }
            return .object(
                JSONObject(
                    uniqueKeysWithValues: members.compactMap {
                        room > 0 ? ($0.key, $0.value.cut(levels: levels - 1, &room)) : nil
                    }))
        default: return self
        }
    }

    /// Appends compact UTF-8 JSON with sorted keys. A number that is not finite becomes `null`, as in JavaScript.
    package func write(to output: inout [UInt8]) { write(to: &output, levels: Self.maximumWrittenLevels) }

    private func write(to output: inout [UInt8], levels: Int) {
        switch self {
        case .null: output.append(contentsOf: "null".utf8)
        case .bool(let value): output.append(contentsOf: (value ? "true" : "false").utf8)
        case .integer(let value): output.append(decimal: value)
        case .number(let value):
            output.append(contentsOf: (value.isFinite ? "\(value)" : "null").utf8)
        case .string(let value): Self.write(value, to: &output)
        case .array where levels == 0, .object where levels == 0: output.append(contentsOf: "null".utf8)
        case .array(let elements):
            output.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                element.write(to: &output, levels: levels - 1)
            }
            output.append(UInt8(ascii: "]"))
        case .object(let members):
            output.append(UInt8(ascii: "{"))
            var first = true
            for (key, value) in members.sorted(by: { $0.key < $1.key }) {
                if !first { output.append(UInt8(ascii: ",")) }
                first = false
                Self.write(key, to: &output)
                output.append(UInt8(ascii: ":"))
                value.write(to: &output, levels: levels - 1)
            }
            output.append(UInt8(ascii: "}"))
        }
    }

    /// Compact UTF-8 JSON with sorted keys.
    package var bytes: [UInt8] {
        var output: [UInt8] = []
        write(to: &output)
        return output
    }

    /// Appends a quoted JSON string (RFC 8259, section 7).
    package static func write(_ string: String, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        var string = string
        string.withUTF8 { bytes in
            // Most text needs no escapes, so it is copied in runs.
            var (start, index) = (0, 0)
            while index < bytes.count {
                let byte = bytes[index]
                if needsEscape(byte) {
                    output.append(contentsOf: bytes[start..<index])
                    writeEscape(byte, to: &output)
                    start = index + 1
                }
                index += 1
            }
            output.append(contentsOf: bytes[start...])
        }
        output.append(UInt8(ascii: "\""))
    }

    private static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte == 0x7F
    }

    private static func writeEscape(_ byte: UInt8, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\\"))
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): output.append(byte)
        case 0x0A: output.append(UInt8(ascii: "n"))
        case 0x0D: output.append(UInt8(ascii: "r"))
        case 0x09: output.append(UInt8(ascii: "t"))
        default:
            let hex = Array("0123456789abcdef".utf8)
            output.append(contentsOf: "u00".utf8)
            output.append(hex[Int(byte >> 4)])
            output.append(hex[Int(byte & 0xF)])
        }
    }
}

extension BytewiseDictionary<JSONValue> {
    package func limited(toLevels levels: Int = JSONValue.maximumLevels) -> Self {
        guard case .object(let members) = JSONValue.object(self).limited(toLevels: levels) else { return [:] }
        return members
    }
}
