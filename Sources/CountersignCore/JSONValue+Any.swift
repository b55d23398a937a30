internal import Foundation

extension JSONValue {
    /// A value of any type, by the rules of docs/value-types.md. Nil if its type is not supported.
    ///
    /// In an array, null replaces an element whose type is not supported; in an object, such a member is left out.
    /// `onUnsupported` is called for each of them.
    package init?(any value: Any, onUnsupported: @escaping (Any.Type) -> Void = { _ in }) {
        let conversion = JSONConversion(onUnsupported: onUnsupported)
        guard let json = conversion.json(value, levels: Self.maximumLevels) else { return nil }
        self = json
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

/// The conversion of one value of any type.
///
/// The number of levels and values is bounded: an object graph may have circles, and parts of it may occur many times.
final class JSONConversion {
    private let onUnsupported: (Any.Type) -> Void
    private var room = JSONValue.maximumValues
    /// The objects around the value: one that is in itself is replaced by null.
    private var path: [ObjectIdentifier] = []

    init(onUnsupported: @escaping (Any.Type) -> Void) {
        self.onUnsupported = onUnsupported
    }

    /// `levels`: how many levels of arrays and objects the value may have; null replaces a deeper one.
    func json(_ value: Any, levels: Int) -> JSONValue? {
        room -= 1
        guard room >= 0 else { return .null }
        if type(of: value) == AnyHashable.self, let value = value as? AnyHashable {
            return json(value.base, levels: levels)
        }
        if let leaf = leaf(value) { return leaf.limited(toLevels: levels) }
        switch value {
        case let elements as [Any]: return array(elements, levels: levels)
        case let members as [String: Any]:
            return object(members.lazy.map { ($0.key, $0.value) }, levels: levels)
        case let members as [AnyHashable: Any]:
            return object(members.lazy.map { ($0.key.base, $0.value) }, levels: levels)
        case let elements as Set<AnyHashable>: return array(elements.lazy.map(\.base), levels: levels)
        default: break
        }
        let mirror = Mirror(reflecting: value)
        switch mirror.displayStyle {
        case .optional:
            guard let wrapped = mirror.children.first?.value else { return .null }
            return json(wrapped, levels: levels)
        case .collection, .set: return array(mirror.children.lazy.map(\.value), levels: levels)
        default: break
        }
        guard let value = value as? any Encodable else {
            onUnsupported(type(of: value))
            return nil
        }
        guard levels > 0 else { return .null }
        if type(of: value) is AnyClass {
            let object = ObjectIdentifier(value as AnyObject)
            guard !path.contains(object) else { return .null }
            path.append(object)
        }
        defer { if type(of: value) is AnyClass { path.removeLast() } }
        let encoder = JSONValueEncoder(conversion: self, levels: levels - 1)
        // What an app's own code throws must not cost the event.
        do { try value.encode(to: encoder) } catch { return .null }
        return encoder.part.json
    }

    private func leaf(_ value: Any) -> JSONValue? {
        switch value {
        case let value as JSONValue: return value
        case let value as JSONObject: return .object(value)
        case let value as String: return .string(value)
        case let value as any StringProtocol: return .string(String(value))
        case let value as Character: return .string(String(value))
        #if canImport(ObjectiveC)
            // Every number from Objective-C can be read as a Bool, so its own type has to be asked.
            case let value as NSNumber where CFGetTypeID(value) == CFBooleanGetTypeID():
                return .bool(value.boolValue)
        #endif
        case let value as any BinaryInteger: return JSONValue(integer: value)
        case let flag as Bool where type(of: value) == Bool.self: return .bool(flag)
        case let value as any BinaryFloatingPoint: return JSONValue(float: value)
        case let value as Decimal: return JSONValue(decimal: value)
        case let value as NSNumber: return JSONValue(number: value)
        case is NSNull: return .null
        case let value as Date:
            let milliseconds = Milliseconds(value).count
            return RFC3339.instants.contains(milliseconds)
                ? .string(RFC3339.text(milliseconds: milliseconds)) : .null
        case let value as Data: return .string(value.base64EncodedString())
        case let value as UUID: return .string(value.uuidString)
        case let value as URL: return .string(value.absoluteString)
        default: return nil
        }
    }

    private func array(_ elements: some Sequence<Any>, levels: Int) -> JSONValue {
        guard levels > 0 else { return .null }
        var array: [JSONValue] = []
        for element in elements where room > 0 { array.append(json(element, levels: levels - 1) ?? .null) }
        return .array(array)
    }

    private func object(_ members: some Sequence<(Any, Any)>, levels: Int) -> JSONValue {
        guard levels > 0 else { return .null }
        var object: JSONObject = [:]
        for (key, value) in members where room > 0 {
            if let json = json(value, levels: levels - 1) { object[name(key)] = json }
        }
        return .object(object)
    }

    /// A key of a dictionary as the name of a member.
    private func name(_ key: Any) -> String {
        switch leaf(key) {
        case .string(let text): text
        case .some(let value): value.description
        case .none: "\(key)"
        }
    }
}
