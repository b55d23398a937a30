internal import Foundation

extension JSONValue {
    /// Values that are nested more deeply than this are not looked at: an object graph may be a circle.
    private static let maximumDepth = 64

    /// A value of a dictionary with values of any type; nil if JSON has nothing like it.
    package init?(any value: Any) {
        self.init(any: value, depth: 0, encode: nil)
    }

    /// As `init(any:)`, with a way for values that say themselves what they are in JSON. There, a value with a part that
    /// JSON has nothing like is refused as a whole.
    package init?(any value: Any, encode: (any Encodable) -> JSONValue?) {
        self = .null
        let made = withoutActuallyEscaping(encode) { encode in
            JSONValue(any: value, depth: 0, encode: encode)
        }
        guard let made else { return nil }
        self = made
    }

    private init?(any value: Any, depth: Int, encode: ((any Encodable) -> JSONValue?)?) {
        guard depth < Self.maximumDepth else { return nil }
        func part(_ value: Any) -> JSONValue? { JSONValue(any: value, depth: depth + 1, encode: encode) }
        switch value {
        case let value as JSONValue: self = value
        case let value as String: self = .string(value)
        #if canImport(ObjectiveC)
            // Every number from Objective-C can be read as a Bool, so its own type has to be asked.
            case let value as NSNumber where CFGetTypeID(value) == CFBooleanGetTypeID():
                self = .bool(value.boolValue)
        #endif
        case let value as any BinaryInteger:
            if let number = Int64(exactly: value) {
                self = .integer(number)
            } else {
                // As JavaScript has it: the nearest number.
                guard encode != nil else { return nil }
                self = .number(Double(value))
            }
        case let flag as Bool where type(of: value) == Bool.self: self = .bool(flag)
        case let value as NSNumber:
            guard let number = JSONValue(number: value) else { return nil }
            self = number
        case let value as Double: self = .number(value)
        case let value as Float: self = .number(Double(value))
        case is NSNull: self = .null
        case let value as Date: self = .string(ISO8601DateFormatter().string(from: value))
        case let value as [Any]:
            let elements = value.map(part)
            if encode != nil, elements.contains(where: { $0 == nil }) { return nil }
            self = .array(elements.compactMap(\.self))
        case let value as [String: Any]:
            let members = value.mapValues(part)
            if encode != nil, members.values.contains(where: { $0 == nil }) { return nil }
            self = .object(JSONObject(members.compactMapValues(\.self)))
        default:
            let mirror = Mirror(reflecting: value)
            if mirror.displayStyle == .optional {
                guard encode != nil else { return nil }
                guard let wrapped = mirror.children.first?.value else {
                    self = .null
                    return
                }
                guard let made = part(wrapped) else { return nil }
                self = made
                return
            }
            guard let encode, let value = value as? any Encodable, let made = encode(value) else {
                return nil
            }
            self = made
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
        case .object(let members):
            Dictionary(members.lazy.map { ($0.key, $0.value.any) }, uniquingKeysWith: { $1 })
        }
    }
}
