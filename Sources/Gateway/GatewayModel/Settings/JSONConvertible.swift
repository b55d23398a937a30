package import CountersignCore

package protocol JSONConvertible: SendableMetatype {
    /// The shape in responses.
    static var jsonShape: JSONShape { get }
    var jsonValue: JSONValue { get }
    /// Nil for JSON of another shape.
    init?(jsonValue: JSONValue)
}

extension JSONValue: JSONConvertible {
    package static var jsonShape: JSONShape { .any }
    package var jsonValue: JSONValue { self }
    package init?(jsonValue: JSONValue) { self = jsonValue }
}

extension Bool: JSONConvertible {
    package static var jsonShape: JSONShape { .bool }
    package var jsonValue: JSONValue { .bool(self) }
    package init?(jsonValue: JSONValue) {
        guard case .bool(let value) = jsonValue else { return nil }
        self = value
    }
}

extension String: JSONConvertible {
    package static var jsonShape: JSONShape { .string }
    package var jsonValue: JSONValue { .string(self) }
    package init?(jsonValue: JSONValue) {
        guard case .string(let text) = jsonValue else { return nil }
        self = text
    }
}

extension JSONConvertible where Self: FixedWidthInteger {
    package static var jsonShape: JSONShape { .count }
    package var jsonValue: JSONValue { .integer(Int64(self)) }
    package init?(jsonValue: JSONValue) {
        guard case .integer(let number) = jsonValue else { return nil }
        self.init(number)
    }
}

extension Int: JSONConvertible {}
extension Int64: JSONConvertible {}

extension Double: JSONConvertible {
    package static var jsonShape: JSONShape { .number }
    package var jsonValue: JSONValue { .number(self) }
    /// Also accepts integers.
    package init?(jsonValue: JSONValue) {
        switch jsonValue {
        case .integer(let number): self.init(number)
        case .number(let number): self = number
        default: return nil
        }
    }
}

extension Optional: JSONConvertible where Wrapped: JSONConvertible {
    package static var jsonShape: JSONShape { .nullable(Wrapped.jsonShape) }
    package var jsonValue: JSONValue { self?.jsonValue ?? .null }
    package init?(jsonValue: JSONValue) {
        if jsonValue == .null {
            self = .none
        } else {
            guard let value = Wrapped(jsonValue: jsonValue) else { return nil }
            self = .some(value)
        }
    }
}

extension Array: JSONConvertible where Element: JSONConvertible {
    package static var jsonShape: JSONShape { .list(Element.jsonShape) }
    package var jsonValue: JSONValue { .array(map(\.jsonValue)) }
    /// Omits elements of another shape.
    package init?(jsonValue: JSONValue) {
        guard case .array(let elements) = jsonValue else { return nil }
        self = elements.compactMap(Element.init(jsonValue:))
    }
}

extension JSONConvertible where Self: RawRepresentable & CaseIterable, RawValue == String {
    package static var jsonShape: JSONShape { .choice(of: Self.self) }
    package var jsonValue: JSONValue { .string(rawValue) }
    package init?(jsonValue: JSONValue) {
        guard case .string(let word) = jsonValue else { return nil }
        self.init(rawValue: word)
    }
}

extension JSONValue {
    /// The members of an object; nil for other values.
    package var members: JSONObject? {
        if case .object(let members) = self { members } else { nil }
    }
}
