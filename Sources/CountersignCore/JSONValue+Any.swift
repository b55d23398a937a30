internal import Foundation

extension JSONValue {
    /// A value of a dictionary with values of any type; nil if JSON has nothing like it.
    package init?(any value: Any) {
        switch value {
        case let value as String: self = .string(value)
        #if canImport(ObjectiveC)
            // Every number from Objective-C can be read as a Bool, so its own type has to be asked.
            case let value as NSNumber where CFGetTypeID(value) == CFBooleanGetTypeID():
                self = .bool(value.boolValue)
        #endif
        case let value as any BinaryInteger:
            guard let number = Int64(exactly: value) else { return nil }
            self = .integer(number)
        case let flag as Bool where type(of: value) == Bool.self: self = .bool(flag)
        case let value as NSNumber:
            guard let number = JSONValue(number: value) else { return nil }
            self = number
        case let value as Double: self = .number(value)
        case let value as Float: self = .number(Double(value))
        case is NSNull: self = .null
        case let value as Date: self = .string(ISO8601DateFormatter().string(from: value))
        case let value as [Any]: self = .array(value.compactMap(JSONValue.init(any:)))
        case let value as [String: Any]: self = .object(value.compactMapValues(JSONValue.init(any:)))
        default: return nil
        }
    }

    /// The value as `JSONSerialization` would give it.
    package var any: Any {
        switch self {
        case .null: NSNull()
        case .bool(let value): value
        case .integer(let value): Int(exactly: value) ?? value
        case .number(let value): value
        case .string(let value): value
        case .array(let elements): elements.map(\.any)
        case .object(let members): members.mapValues(\.any)
        }
    }
}
