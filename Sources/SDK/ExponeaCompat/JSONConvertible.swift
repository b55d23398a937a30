public import Foundation

/// A type whose values can be property values.
public protocol JSONConvertible {
    /// The value in JSON.
    var jsonValue: JSONValue { get }
}

extension JSONValue: JSONConvertible {
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var jsonValue: JSONValue { self }
}

extension String: JSONConvertible {
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var jsonValue: JSONValue { .string(self) }
}

extension Bool: JSONConvertible {
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var jsonValue: JSONValue { .bool(self) }
}

extension Int: JSONConvertible {
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var jsonValue: JSONValue { .integer(Int64(self)) }
}

extension Double: JSONConvertible {
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var jsonValue: JSONValue { .number(self) }
}

extension Float: JSONConvertible {
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var jsonValue: JSONValue { JSONValue(any: self) ?? .null }
}

extension Date: JSONConvertible {
    /// Seconds since 1970.
    public var jsonValue: JSONValue { .number(timeIntervalSince1970) }
}

extension NSNull: JSONConvertible {
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var jsonValue: JSONValue { .null }
}

extension Array: JSONConvertible {
    /// Elements without a JSON form are left out.
    public var jsonValue: JSONValue { convert(self, levels: JSONValue.maximumLevels) ?? .null }
}

extension Dictionary: JSONConvertible where Key == String {
    /// Values without a JSON form are left out.
    public var jsonValue: JSONValue { convert(self, levels: JSONValue.maximumLevels) ?? .null }
}

/// Replaces arrays and objects below `levels` levels by null.
private func convert(_ value: Any, levels: Int) -> JSONValue? {
    switch value {
    case let elements as [Any]:
        levels > 0 ? .array(elements.compactMap { convert($0, levels: levels - 1) }) : .null
    case let members as [String: Any]:
        levels > 0
            ? .object(JSONObject(members.compactMapValues { convert($0, levels: levels - 1) })) : .null
    case let value as any JSONConvertible: value.jsonValue
    case let value as NSDate: .number(value.timeIntervalSince1970)
    default: JSONValue(any: value)
    }
}
