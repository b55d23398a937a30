internal import CountersignCore
internal import Foundation

extension JSONValue {
    /// A value of a dictionary with values of any type; nil if JSON has nothing like it.
    init?(any value: Any) {
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
        case let value as Double: self = .number(value)
        case let value as Float: self = .number(Double(value))
        case let value as Bool: self = .bool(value)
        case let value as Date: self = .string(ISO8601DateFormatter().string(from: value))
        case let value as [Any]: self = .array(value.compactMap(JSONValue.init(any:)))
        case let value as [String: Any]: self = .object(value.compactMapValues(JSONValue.init(any:)))
        default: return nil
        }
    }
}
