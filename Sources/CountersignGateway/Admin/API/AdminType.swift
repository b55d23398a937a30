internal import CountersignCore

/// The shape of a JSON value: bodies are checked by it, and the document says it of bodies and answers.
indirect enum AdminType: Sendable {
    /// A string of at most so many bytes.
    case text(longest: Int)
    case choice([String])
    case integer(ClosedRange<Int64>)
    case number
    case bool
    case list(AdminType)
    case object([AdminMember])
    /// An object whose members' names are not known before.
    case map(AdminType)
    case nullable(AdminType)
    case any
    /// A shape that stands once in the document, under a name.
    case named(String, AdminType)

    /// Text in answers, which set no limit.
    static let string = AdminType.text(longest: .max)
    static let count = AdminType.integer(0...Int64.max)
    /// Milliseconds since 1970, until the end of the year 9999.
    static let milliseconds = AdminType.integer(0...253_402_300_799_999)

    static func choice<Value: RawRepresentable & CaseIterable>(
        of type: Value.Type
    ) -> AdminType where Value.RawValue == String {
        .choice(type.allCases.map(\.rawValue))
    }

    /// An object that always has all of these.
    static func all(_ members: KeyValuePairs<String, AdminType>) -> AdminType {
        .object(members.map { .must($0.key, $0.value) })
    }

    /// An object's members, those of this one first; none for anything else.
    func with(_ more: [AdminMember]) -> AdminType {
        switch self {
        case .object(let members): .object(members + more)
        case .named(_, let type): type.with(more)
        default: .object(more)
        }
    }
}

/// One member of an object.
struct AdminMember: Sendable {
    let name: String
    let type: AdminType
    let isRequired: Bool
    /// Taken in bodies so that an answer can be sent back, and not looked at.
    var isReadOnly = false

    static func must(_ name: String, _ type: AdminType) -> AdminMember {
        AdminMember(name: name, type: type, isRequired: true)
    }

    /// A member that may be missing; in bodies null means the same.
    static func may(_ name: String, _ type: AdminType) -> AdminMember {
        AdminMember(name: name, type: type, isRequired: false)
    }

    static func ignored(_ name: String, _ type: AdminType) -> AdminMember {
        AdminMember(name: name, type: type, isRequired: false, isReadOnly: true)
    }
}

extension AdminType {
    /// Refuses a value that has another shape.
    ///
    /// - Parameters:
    ///   - value: What was sent.
    ///   - path: The names that lead to it, separated by dots.
    /// - Throws: 422, which names the member.
    func check(_ value: JSONValue, at path: String) throws(AdminProblem) {
        func refusal(_ expected: String) -> AdminProblem { .invalid(path, "must be \(expected)") }
        switch (self, value) {
        case (.text(let longest), .string(let text)):
            if text.utf8.count > longest { throw refusal("a string of at most \(longest) bytes") }
        case (.text(let longest), _): throw refusal("a string of at most \(longest) bytes")
        case (.choice(let words), .string(let word)) where word.utf8.count <= 64 && words.contains(word):
            break
        case (.choice(let words), _): throw refusal("one of \(words.joined(separator: ", "))")
        case (.integer(let range), .integer(let number)) where range.contains(number): break
        case (.integer(let range), _):
            throw refusal("a whole number from \(range.lowerBound) to \(range.upperBound)")
        case (.number, .integer), (.number, .number): break
        case (.number, _): throw refusal("a number")
        case (.bool, .bool): break
        case (.bool, _): throw refusal("true or false")
        case (.list(let type), .array(let elements)):
            for (index, element) in elements.enumerated() { try type.check(element, at: "\(path).\(index)") }
        case (.list, _): throw refusal("an array")
        case (.object(let members), .object(let given)):
            try Self.check(given, members, at: path)
        case (.map(let type), .object(let given)):
            for (name, value) in given { try type.check(value, at: "\(path).\(name)") }
        case (.object, _), (.map, _): throw refusal("an object")
        case (.nullable(let type), _): if value != .null { try type.check(value, at: path) }
        case (.any, _): break
        case (.named(_, let type), _): try type.check(value, at: path)
        }
    }

    /// Refuses members that are not known, not there or of another shape.
    static func check(
        _ given: [String: JSONValue], _ members: [AdminMember], at path: String = ""
    ) throws(AdminProblem) {
        let prefix = path.isEmpty ? "" : path + "."
        for name in given.keys.sorted() where !members.contains(where: { $0.name == name }) {
            throw .invalid(
                prefix + name, "is not known; there are \(members.map(\.name).joined(separator: ", "))")
        }
        for member in members {
            switch given[member.name] {
            case nil, .null?:
                if member.isRequired { throw .invalid(prefix + member.name, "is missing") }
            case let value?:
                if !member.isReadOnly { try member.type.check(value, at: prefix + member.name) }
            }
        }
    }
}
