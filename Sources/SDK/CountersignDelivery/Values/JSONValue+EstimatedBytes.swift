package import CountersignCore

extension JSONValue {
    /// The approximate number of bytes of the value as JSON.
    package var estimatedBytes: Int {
        switch self {
        case .null, .bool: 5
        case .integer, .number: 12
        case .string(let text): text.utf8.count + 2
        case .array(let elements): elements.reduce(2) { $0 + $1.estimatedBytes + 1 }
        case .object(let members): members.reduce(2) { $0 + $1.key.utf8.count + $1.value.estimatedBytes + 4 }
        }
    }
}
