public import CountersignCore

/// What to ask of a customer.
public enum CustomerAttributeQuery: Sendable, Hashable {
    /// A property of the profile.
    case property(String)
    /// An id of the profile.
    case id(String)

    var json: JSONValue {
        switch self {
        case .property(let name): ["type": "property", "property": .string(name)]
        case .id(let name): ["type": "id", "id": .string(name)]
        }
    }
}

/// The answer to one `CustomerAttributeQuery`.
public struct CustomerAttribute: Sendable, Hashable {
    /// Whether this one was answered.
    public let isSuccess: Bool
    /// Why not; nil if it was, or if the server does not say.
    public let error: String?
    /// The value; `null` if there is none.
    public let value: JSONValue

    init(_ value: JSONValue) {
        isSuccess = value["success"]?.bool ?? false
        error = value["error"]?.string
        self.value = value["value"] ?? .null
    }
}
