internal import CountersignCore
package import CountersignJSON

/// An id in a request body: of a user, a device or a message.
package enum EventIdentifier {
    /// Missing, `null` or the empty string.
    case absent
    case value(String)
    /// Not a string or an integer, too long, or with control characters.
    case invalid

    package static let longest = 512
    package static let shape = "strings of 1 to \(longest) bytes without control characters, or integers"
    /// The maximum number of digits in an integer that a parser accepts.
    package static let mostDigits = 308

    package init(_ node: JSONNode?) {
        guard let node, !node.isNull else {
            self = .absent
            return
        }
        // Integers are equivalent to their decimal digits. Other numbers have no unique text and are rejected.
        if let digits = node.integer {
            self = .value(digits)
            return
        }
        guard let utf8 = node.utf8, utf8.count <= Self.longest, !utf8.hasControlCharacter else {
            self = .invalid
            return
        }
        self = utf8.isEmpty ? .absent : .value(String(decoding: utf8, as: UTF8.self))
    }

    package var text: String? {
        if case .value(let text) = self { text } else { nil }
    }

    package var isValid: Bool {
        if case .invalid = self { false } else { true }
    }
}
