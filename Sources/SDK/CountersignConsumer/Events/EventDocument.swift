internal import Foundation

/// A JSON object with events in it: an answer to a reader, or what a webhook delivers.
struct EventDocument {
    struct Lease: Decodable {
        let id: String
        let partition: Int
        let position: String
    }

    struct Members: Decodable {
        let events: [EventMembers]?
        let lease: Lease?
        let next: String?
        let has_more: Bool?
        let events_missed: Bool?
        let type: String?
        let app: String?
        let replay: Bool?
    }

    let members: Members
    let events: [ConsumedEvent]

    /// Returns nil if this is no such object.
    ///
    /// The bodies are cut out before the rest is decoded: so they keep their bytes, and it does not matter how deep or how
    /// long they are.
    init?(_ bytes: [UInt8]) {
        guard let bodies = Self.bodies(in: bytes) else { return nil }
        var rest: [UInt8] = []
        var end = 0
        for body in bodies {
            rest += bytes[end..<body.lowerBound]
            rest += "null".utf8
            end = body.upperBound
        }
        rest += bytes[end...]
        guard let members = try? JSONDecoder().decode(Members.self, from: Data(rest)),
            (members.events ?? []).count == bodies.count
        else { return nil }
        self.members = members
        events = zip(members.events ?? [], bodies).map { $0.event(body: Data(bytes[$1])) }
    }

    /// Where the member `body` of each element of the member `events` stands.
    private static func bodies(in bytes: [UInt8]) -> [Range<Int>]? {
        var found: [Range<Int>] = []
        var cursor = JSONCursor(bytes)
        let isRead = cursor.members { name, cursor in
            guard name.elementsEqual("events".utf8) else { return cursor.value() != nil }
            return cursor.elements { cursor in
                cursor.members { name, cursor in
                    guard let range = cursor.value() else { return false }
                    if name.elementsEqual("body".utf8) { found.append(range) }
                    return true
                }
            }
        }
        return isRead ? found : nil
    }
}
