package import CountersignCore

/// The JSON of a type in responses, and its schema for the API document, derived from the same fields.
package struct AnswerShape<Value>: Sendable {
    package let shape: JSONShape
    package let members: [JSONMember]
    package let fields: [JSONField<Value>]

    /// Without a name, the schema is inlined. `first` are fields of another shape or setting, put before `fields`.
    package init(named name: String? = nil, first: [JSONField<Value>] = [], _ fields: JSONField<Value>...) {
        self.fields = (first + fields).filter { $0.shown != nil }
        members = self.fields.compactMap { field in field.shown.map { .must(field.name, $0) } }
        shape = name.map { [members] in .named($0, .object(members)) } ?? .object(members)
    }

    package func json(_ value: Value) -> JSONValue { json(value, with: [:]) }

    package func json(_ value: Value, with more: BytewiseDictionary<JSONValue?>) -> JSONValue {
        let members = JSONObject(uniqueKeysWithValues: fields.map { ($0.name, $0.get(value)) })
        return .object(members.merging(more.compactMapValues { $0 }) { $1 })
    }
}

extension JSONField {
    package static func list<Item>(
        _ name: String, _ shape: AnswerShape<Item>, _ get: @escaping @Sendable (Owner) -> [Item]
    ) -> JSONField {
        JSONField(answered: name, .list(shape.shape)) { .array(get($0).map { shape.json($0) }) }
    }

    package static func object<Part>(
        _ name: String, _ shape: AnswerShape<Part>, _ get: @escaping @Sendable (Owner) -> Part
    ) -> JSONField {
        JSONField(answered: name, shape.shape) { shape.json(get($0)) }
    }

    package static func object<Part>(
        _ name: String, _ shape: AnswerShape<Part>, _ get: @escaping @Sendable (Owner) -> Part?
    ) -> JSONField {
        JSONField(answered: name, .nullable(shape.shape)) { get($0).map { shape.json($0) } ?? .null }
    }
}
