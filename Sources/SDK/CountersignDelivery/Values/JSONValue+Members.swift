package import CountersignCore

/// Lenient access to JSON. Missing members and members of another type are nil.
extension JSONValue {
    package subscript(name: String) -> JSONValue? {
        if case .object(let members) = self { members[name] } else { nil }
    }

    package var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    package var double: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .number(let number): number
        default: nil
        }
    }

    /// A number, also as text.
    package var numeric: Double? {
        if case .string(let text) = self { Double(text).flatMap { $0.isFinite ? $0 : nil } } else { double }
    }

    /// A whole number, also as text.
    package var integer: Int64? {
        switch self {
        case .integer(let value): value
        case .number(let value): Int64(exactly: value)
        case .string(let text): Int64(text)
        default: nil
        }
    }

    package var int: Int? { integer.map { Int($0) } }

    /// A boolean, also as 1 and 0 or as text.
    package var bool: Bool? {
        switch self {
        case .bool(let value): value
        case .integer(1), .string("true"), .string("1"): true
        case .integer(0), .string("false"), .string("0"): false
        default: nil
        }
    }

    package var array: [JSONValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    /// Nil if a member is not a text.
    package var texts: [String: String]? {
        guard let object, object.values.allSatisfy({ $0.string != nil }) else { return nil }
        return Dictionary(object.compactMapValues(\.string))
    }

    package var object: JSONObject? {
        if case .object(let members) = self { members } else { nil }
    }
}
