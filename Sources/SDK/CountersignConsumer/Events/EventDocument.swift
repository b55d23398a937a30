internal import Foundation

/// A JSON object with events: a gateway's response to a reader, or the body of a webhook delivery.
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

    /// Whether the response has nothing to process.
    var isEmpty: Bool { events.isEmpty && members.lease == nil && members.events_missed != true }

    /// Nil if malformed or incomplete. Cuts the bodies out before decoding the rest, so that they keep their bytes
    /// and may have any depth and length.
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

    /// Returns the byte ranges of the `body` members in the array `events`; nil if the text cannot be scanned.
    private static func bodies(in bytes: [UInt8]) -> [Range<Int>]? {
        var found: [Range<Int>] = []
        var cursor = JSONScanner(bytes)
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
