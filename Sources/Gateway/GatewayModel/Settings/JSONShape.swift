package import CountersignCore

/// The shape of a JSON value. Validates requests, and describes the admin API in its document.
package indirect enum JSONShape: Sendable {
    /// A string of at most `longest` bytes, without control characters.
    case text(longest: Int)
    /// A string of at most `longest` bytes that may contain control characters, such as PEM or a password.
    case raw(longest: Int)
    case choice([String])
    case integer(ClosedRange<Int64>)
    case number
    case bool
    case list(JSONShape)
    /// An array, or a single value instead of an array with one element.
    case listOrOne(JSONShape)
    case object([JSONMember])
    case map(JSONShape)
    case nullable(JSONShape)
    case any
    /// A shape that the API document defines once, under a name.
    case named(String, JSONShape)

    package static let string = JSONShape.text(longest: .max)
    package static let count = JSONShape.integer(0...Int64.max)
    /// Milliseconds since 1970, until the end of the year 9999.
    package static let millisecondRange: ClosedRange<Int64> = 0...253_402_300_799_999
    package static let milliseconds = JSONShape.integer(millisecondRange)

    package static func choice<Value: RawRepresentable & CaseIterable>(
        of type: Value.Type
    ) -> JSONShape where Value.RawValue == String {
        .choice(type.allCases.map(\.rawValue))
    }

    package static func all(_ members: KeyValuePairs<String, JSONShape>) -> JSONShape {
        .object(members.map { .must($0.key, $0.value) })
    }

    /// The object with additional members. Other shapes become an object of only these members.
    package func with(_ more: [JSONMember]) -> JSONShape {
        switch self {
        case .object(let members): .object(members + more)
        case .named(_, let type): type.with(more)
        default: .object(more)
        }
    }
}

package struct JSONMember: Sendable {
    package let name: String
    package let type: JSONShape
    package let isRequired: Bool
    /// Whether the member is ignored in requests. Accepting it allows a response to be sent back unmodified.
    package var isReadOnly = false

    package static func must(_ name: String, _ type: JSONShape) -> JSONMember {
        JSONMember(name: name, type: type, isRequired: true)
    }

    /// An optional member. Null is valid too.
    package static func may(_ name: String, _ type: JSONShape) -> JSONMember {
        JSONMember(name: name, type: type, isRequired: false)
    }

    package static func ignored(_ name: String, _ type: JSONShape) -> JSONMember {
        JSONMember(name: name, type: type, isRequired: false, isReadOnly: true)
    }
}

package struct ShapeMismatch: Error {
    /// The path of the value, with dots between the names.
    package let path: String
    /// The expectation, such as `must be true or false`.
    package let detail: String
}

extension JSONShape {
    package func check(_ value: JSONValue, at path: String) throws(ShapeMismatch) {
        func mismatch(_ expected: String) -> ShapeMismatch {
            ShapeMismatch(path: path, detail: "must be \(expected)")
        }
        switch (self, value) {
        case (.text(let longest), .string(let text)):
            if text.utf8.count > longest { throw mismatch("a string of at most \(longest) bytes") }
            if text.hasControlCharacter { throw mismatch("a string without control characters") }
        case (.raw(let longest), .string(let text)) where text.utf8.count <= longest: break
        case (.text(let longest), _), (.raw(let longest), _):
            throw mismatch("a string of at most \(longest) bytes")
        case (.choice(let words), .string(let word)) where word.utf8.count <= 64 && words.contains(word):
            break
        case (.choice(let words), _): throw mismatch("one of \(words.joined(separator: ", "))")
        case (.integer(let range), .integer(let number)) where range.contains(number): break
        case (.integer(let range), _):
            throw mismatch("a whole number from \(range.lowerBound) to \(range.upperBound)")
        case (.number, .integer), (.number, .number): break
        case (.number, _): throw mismatch("a number")
        case (.bool, .bool): break
        case (.bool, _): throw mismatch("true or false")
        case (.list(let type), .array(let elements)), (.listOrOne(let type), .array(let elements)):
            for (index, element) in elements.enumerated() { try type.check(element, at: "\(path).\(index)") }
        case (.list, _): throw mismatch("an array")
        case (.listOrOne(let type), _): try type.check(value, at: path)
        case (.object(let members), .object(let given)):
            try Self.check(given, members, at: path)
        case (.map(let type), .object(let given)):
            for (name, value) in given { try type.check(value, at: "\(path).\(name)") }
        case (.object, _), (.map, _): throw mismatch("an object")
        case (.nullable(let type), _): if value != .null { try type.check(value, at: path) }
        case (.any, _): break
        case (.named(_, let type), _): try type.check(value, at: path)
        }
    }

    package static func check(
        _ given: JSONObject, _ members: [JSONMember], at path: String = ""
    ) throws(ShapeMismatch) {
        let prefix = path.isEmpty ? "" : path + "."
        for name in given.keys.sorted() where !members.contains(where: { $0.name == name }) {
            let known = members.map(\.name).joined(separator: ", ")
            throw ShapeMismatch(
                path: prefix + name, detail: known.isEmpty ? "is not known" : "is not one of \(known)")
        }
        for member in members {
            switch given[member.name] {
            case nil, .null?:
                if member.isRequired {
                    throw ShapeMismatch(path: prefix + member.name, detail: "is missing")
                }
            case let value?:
                if !member.isReadOnly { try member.type.check(value, at: prefix + member.name) }
            }
        }
    }
}
