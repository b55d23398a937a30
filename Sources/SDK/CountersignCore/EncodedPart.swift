/// A JSON value that an `Encodable` type builds step by step.
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
