public import CountersignCore

/// An attribute to fetch for a customer.
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

/// The result of one `CustomerAttributeQuery`.
public struct CustomerAttribute: Sendable, Hashable {
    /// Whether the query succeeded.
    public let isSuccess: Bool
    /// The error; nil if the query succeeded or the server gave no reason.
    public let error: String?
    /// The value; `null` if missing.
    public let value: JSONValue

    init(_ value: JSONValue) {
        isSuccess = value["success"]?.bool ?? false
        error = value["error"]?.string
        self.value = value["value"] ?? .null
    }
}
