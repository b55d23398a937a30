package import CountersignCore

extension JSONNode {
    /// The value, out of the parser's memory.
    ///
    /// Member names that differ in their bytes only, such as one letter in two Unicode forms, become one member.
    package var value: JSONValue {
        switch kind {
        case .null: .null
        case .bool: .bool(bool ?? false)
        case .number: int64.map { .integer($0) } ?? .number(double ?? 0)
        case .string: .string(string ?? "")
        case .array: .array(elements.map(\.value))
        case .object:
            .object(
                Dictionary(
                    members.map { (String(decoding: $0.name, as: UTF8.self), $0.value.value) },
                    uniquingKeysWith: { _, last in last }))
        }
    }
}
