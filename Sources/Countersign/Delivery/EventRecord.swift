package import CountersignCore
package import Foundation

/// One thing that the app recorded, before it is rendered for the wire.
package struct EventRecord: Sendable {
    package let kind: EventKind
    /// Made when the event was recorded and never changed: what the gateway drops duplicates by.
    package let messageID: String
    /// The user at the moment of recording; nil when nobody was identified.
    package let userID: String?
    package let sessionID: String
    package let timestamp: Date
    package let name: String?
    package let payload: [String: JSONValue]
}

extension JSONValue {
    /// About how many bytes the value takes as JSON: quick to get, never asked to be exact.
    var estimatedBytes: Int {
        switch self {
        case .null, .bool: 5
        case .integer, .number: 12
        case .string(let text): text.utf8.count + 2
        case .array(let elements): elements.reduce(2) { $0 + $1.estimatedBytes + 1 }
        case .object(let members): members.reduce(2) { $0 + $1.key.utf8.count + $1.value.estimatedBytes + 4 }
        }
    }
}
