/// The members of a JSON object. Names that differ in one byte of their UTF-8 are different names.
public typealias JSONObject = BytewiseDictionary<JSONValue>

/// A JSON value (RFC 8259), as apps pass it in event properties.
public enum JSONValue: Hashable, Sendable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number without a fraction that fits 64 bits.
    case integer(Int64)
    /// Any other number. Must be finite: JSON has no way to write the others.
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
    /// The last of two equal keys wins.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(JSONObject(elements, uniquingKeysWith: { _, last in last }))
    }
}

extension JSONValue {
    /// The value as compact UTF-8 JSON with sorted keys, appended to `output`.
    ///
    /// A number that is not finite is written as `null`, as JavaScript does.
    package func write(to output: inout [UInt8]) {
        switch self {
        case .null: output.append(contentsOf: "null".utf8)
        case .bool(let value): output.append(contentsOf: (value ? "true" : "false").utf8)
        case .integer(let value): output.append(decimal: value)
        case .number(let value):
            output.append(contentsOf: (value.isFinite ? "\(value)" : "null").utf8)
        case .string(let value): Self.write(value, to: &output)
        case .array(let elements):
            output.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                element.write(to: &output)
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
                value.write(to: &output)
            }
            output.append(UInt8(ascii: "}"))
        }
    }

    /// The value as compact UTF-8 JSON with sorted keys.
    package var bytes: [UInt8] {
        var output: [UInt8] = []
        write(to: &output)
        return output
    }

    /// `string` as a quoted JSON string, appended to `output` (RFC 8259, section 7).
    package static func write(_ string: String, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        var string = string
        string.withUTF8 { bytes in
            // Most text needs no escapes: it is copied in runs.
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
