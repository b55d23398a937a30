internal import CountersignCore

/// Checks what an operator writes against what shipped clients can decode.
///
/// A client decodes an answer as a whole: one message that lacks a member takes all others with it. So members that
/// clients require and operators leave out get a default here, and a wrong type is refused before it is stored.
struct ProjectItemReader {
    private(set) var members: JSONObject
    private let path: String

    init(_ value: JSONValue?, path: String = "") throws(GatewayError) {
        guard case .object(let members) = value else {
            throw GatewayError(.invalid, "\(path.isEmpty ? "it" : path) must be a JSON object")
        }
        self.members = members
        self.path = path
    }

    /// A string that must be there and not be empty: an id or a word, which are short.
    func text(_ name: String) throws(GatewayError) -> String {
        guard case .string(let text) = members[name], (1...1_024).contains(text.utf8.count) else {
            throw fault(name, "a string of 1 to 1024 bytes")
        }
        return text
    }

    /// Sets a member that is absent, then checks it.
    mutating func required(_ name: String, _ type: JSONType, default value: JSONValue) throws(GatewayError) {
        let given = members[name, default: value]
        guard type.holds(given) else { throw fault(name, type.rawValue) }
        members[name] = given
    }

    /// Checks a member that may be absent or null.
    func optional(_ name: String, _ type: JSONType) throws(GatewayError) {
        guard let value = members[name], value != .null, !type.holds(value) else { return }
        throw fault(name, type.rawValue)
    }

    /// The reader of an object that is a member.
    func object(_ name: String) throws(GatewayError) -> ProjectItemReader {
        try ProjectItemReader(members[name], path: label(name))
    }

    /// The readers of the objects in an array that is a member.
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

/// A kind of JSON value, as an error names it.
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
