/// A value that an `Encodable` type is about to encode.
final class EncodedPart {
    private enum Content {
        case value(JSONValue)
        case array([EncodedPart])
        case object([(String, EncodedPart)])
    }

    private var content: Content?

    init(_ value: JSONValue? = nil) {
        content = value.map { .value($0) }
    }

    func set(_ value: JSONValue) { content = .value(value) }

    func beginArray() { if elements == nil { content = .array([]) } }

    func beginObject() {
        if case .object = content { return }
        content = .object([])
    }

    /// The elements of an array; nil if this is not an array.
    private var elements: [EncodedPart]? {
        if case .array(let elements) = content { elements } else { nil }
    }

    var count: Int { elements?.count ?? 0 }

    func append(_ part: EncodedPart) {
        guard var elements else { return }
        content = nil
        elements.append(part)
        content = .array(elements)
    }

    func append(_ part: EncodedPart, as name: String) {
        guard case .object(var members) = content else { return }
        content = nil
        members.append((name, part))
        content = .object(members)
    }

    /// Null if nothing was encoded.
    var json: JSONValue {
        switch content {
        case .value(let value): value
        case .array(let elements): .array(elements.map(\.json))
        case .object(let members):
            .object(JSONObject(members.map { ($0.0, $0.1.json) }, uniquingKeysWith: { $1 }))
        case nil: .null
        }
    }
}

/// Encodes the members of `Encodable` types by the rules of `JSONConversion`.
///
/// `JSONEncoder` fails for a NaN, writes dates and decimals differently, and recurses without a bound.
struct JSONValueEncoder: Encoder, SingleValueEncodingContainer {
    let conversion: JSONConversion
    /// How many levels of arrays and objects the members of this value may have.
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

    /// The encoder of a container in this one.
    private func nested(_ part: EncodedPart) -> JSONValueEncoder {
        guard levels > 0 else {
            part.set(.null)
            // Not in the result.
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
