internal import CountersignJOSE

/// An id as it stands in a body: of a user, a device or a message.
enum EventIdentifier {
    /// Not there, `null`, or the empty string, which is no id.
    case absent
    case value(String)
    /// No string, too long, or with control characters, which have no place in logs and tables.
    case invalid

    static let longest = 512
    static let shape = "strings of 1 to \(longest) bytes without control characters"

    init(_ node: JSONNode?) {
        guard let node, !node.isNull else {
            self = .absent
            return
        }
        guard let utf8 = node.utf8, utf8.count <= Self.longest, utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else {
            self = .invalid
            return
        }
        self = utf8.isEmpty ? .absent : .value(String(decoding: utf8, as: UTF8.self))
    }

    var text: String? {
        if case .value(let text) = self { text } else { nil }
    }

    var isValid: Bool {
        if case .invalid = self { false } else { true }
    }
}
