internal import Foundation

extension JSONValue {
    /// Nil for an unsupported type (see docs/reference/event-format.md). Null replaces an unsupported array element;
    /// an unsupported member is left out. `onUnsupported` is called for each unsupported value.
    package init?(any value: Any, onUnsupported: @escaping (Any.Type) -> Void = { _ in }) {
        let conversion = JSONConversion(onUnsupported: onUnsupported)
        guard let json = conversion.json(value, levels: Self.maximumLevels) else { return nil }
        self = json
    }

    /// The value in the types that `JSONSerialization` returns.
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
