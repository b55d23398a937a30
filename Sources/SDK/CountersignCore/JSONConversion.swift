internal import Foundation

/// Converts one value of any type. The number of levels and values is bounded, because an object graph may have cycles
/// and the same part many times.
final class JSONConversion {
    private let onUnsupported: (Any.Type) -> Void
    private var room = JSONValue.maximumValues
    /// The objects that contain the current value. Null replaces an object that contains itself.
    private var path: [ObjectIdentifier] = []

    init(onUnsupported: @escaping (Any.Type) -> Void) {
        self.onUnsupported = onUnsupported
    }

    /// Null replaces arrays and objects that are nested more than `levels` deep.
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
        // Errors of the app's own code become null, so that the event is not lost.
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
            // Swift also casts the numbers 0 and 1 of Objective-C to `Bool`, so compare the type.
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

    private func name(_ key: Any) -> String {
        switch leaf(key) {
        case .string(let text): text
        case .some(let value): value.description
        case .none: "\(key)"
        }
    }
}

/// Encodes the members of `Encodable` types. `JSONEncoder` fails for a NaN, writes dates and decimals differently,
/// and recurses without a bound.
struct JSONValueEncoder: Encoder, SingleValueEncodingContainer {
    let conversion: JSONConversion
    /// Levels of arrays and objects that the members of this value may have.
    let levels: Int
    let part: EncodedPart

    init(conversion: JSONConversion, levels: Int, part: EncodedPart = EncodedPart()) {
        self.conversion = conversion
        self.levels = levels
        self.part = part
    }

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        part.beginObject()
        return KeyedEncodingContainer(Members<Key>(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        part.beginArray()
        return Elements(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    func encodeNil() { part.set(.null) }

    func encode<Value: Encodable>(_ value: Value) { part.set(json(value)) }

    private func json(_ value: some Encodable) -> JSONValue {
        conversion.json(value, levels: levels) ?? .null
    }

    private func nested(_ part: EncodedPart) -> JSONValueEncoder {
        guard levels > 0 else {
            part.set(.null)
            // Deeper values go to an encoder whose part does not belong to the result.
            return JSONValueEncoder(conversion: conversion, levels: 0)
        }
        return JSONValueEncoder(conversion: conversion, levels: levels - 1, part: part)
    }

    private struct Members<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let encoder: JSONValueEncoder

        var codingPath: [any CodingKey] { [] }

        func encodeNil(forKey key: Key) { encoder.part.append(EncodedPart(.null), as: key.stringValue) }

        func encode<Value: Encodable>(_ value: Value, forKey key: Key) {
            encoder.part.append(EncodedPart(encoder.json(value)), as: key.stringValue)
        }

        private func nested(_ name: String) -> JSONValueEncoder {
            let part = EncodedPart()
            encoder.part.append(part, as: name)
            return encoder.nested(part)
        }

        func nestedContainer<NestedKey: CodingKey>(
            keyedBy keyType: NestedKey.Type, forKey key: Key
        ) -> KeyedEncodingContainer<NestedKey> {
            nested(key.stringValue).container(keyedBy: keyType)
        }

        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            nested(key.stringValue).unkeyedContainer()
        }

        func superEncoder() -> any Encoder { nested("super") }

        func superEncoder(forKey key: Key) -> any Encoder { nested(key.stringValue) }
    }

    private struct Elements: UnkeyedEncodingContainer {
        let encoder: JSONValueEncoder

        var codingPath: [any CodingKey] { [] }
        var count: Int { encoder.part.count }

        func encodeNil() { encoder.part.append(EncodedPart(.null)) }

        func encode<Value: Encodable>(_ value: Value) {
            encoder.part.append(EncodedPart(encoder.json(value)))
        }

        private func nested() -> JSONValueEncoder {
            let part = EncodedPart()
            encoder.part.append(part)
            return encoder.nested(part)
        }

        func nestedContainer<NestedKey: CodingKey>(
            keyedBy keyType: NestedKey.Type
        ) -> KeyedEncodingContainer<NestedKey> {
            nested().container(keyedBy: keyType)
        }

        func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { nested().unkeyedContainer() }

        func superEncoder() -> any Encoder { nested() }
    }
}
