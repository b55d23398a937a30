internal import CountersignCore

/// Validates an operator's JSON against the types that shipped clients decode.
///
/// A client decodes a response as a whole, so one message without a required member makes the client drop all
/// messages. Therefore the gateway adds default values and rejects wrong types before it stores a message.
struct ProjectItemReader {
    private(set) var members: JSONObject
    private let path: String

    init(_ value: JSONValue?, path: String = "") throws(GatewayError) {
        guard case .object(let members) = value else {
            throw GatewayError(.invalid, "\(path.isEmpty ? "the item" : path) must be a JSON object")
        }
        self.members = members
        self.path = path
    }

    /// A required string, such as an id or a keyword.
    func text(_ name: String) throws(GatewayError) -> String {
        guard case .string(let text) = members[name], (1...1_024).contains(text.utf8.count) else {
            throw fault(name, "a string of 1 to 1024 bytes")
        }
        return text
    }

    /// Sets the default if the member is absent, then checks the type.
    mutating func required(_ name: String, _ type: JSONType, default value: JSONValue) throws(GatewayError) {
        let given = members[name, default: value]
        guard type.holds(given) else { throw fault(name, type.rawValue) }
        members[name] = given
    }

    /// Checks the type of a member that may be absent or null.
    func optional(_ name: String, _ type: JSONType) throws(GatewayError) {
        guard let value = members[name], value != .null, !type.holds(value) else { return }
        throw fault(name, type.rawValue)
    }

    func object(_ name: String) throws(GatewayError) -> ProjectItemReader {
        try ProjectItemReader(members[name], path: label(name))
    }

    func objects(_ name: String) throws(GatewayError) -> [ProjectItemReader] {
        guard case .array(let elements) = members[name] else { throw fault(name, "an array") }
        var readers: [ProjectItemReader] = []
        for (index, element) in elements.enumerated() {
            readers.append(try ProjectItemReader(element, path: "\(label(name))[\(index)]"))
        }
        return readers
    }

    mutating func set(_ name: String, _ value: JSONValue) { members[name] = value }

    func fault(_ name: String, _ expected: String) -> GatewayError {
        GatewayError(.invalid, "\(label(name)) must be \(expected)")
    }

    private func label(_ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }
}

/// A JSON type, named as in error messages.
enum JSONType: String, TextEnum {
    case bool = "true or false"
    case integer = "a whole number"
    case number = "a number"
    case string = "a string"
    case array = "an array"
    case object = "an object"

    func holds(_ value: JSONValue) -> Bool {
        switch (self, value) {
        case (.bool, .bool), (.integer, .integer), (.number, .integer), (.number, .number),
            (.string, .string), (.array, .array), (.object, .object):
            true
        default: false
        }
    }
}
