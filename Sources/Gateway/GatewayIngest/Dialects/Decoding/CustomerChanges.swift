internal import CountersignCore
internal import CountersignJSON
internal import GatewayModel

struct CustomerChanges {
    /// The maximum properties of a request that are added to profiles. Further ones are only in the stored events.
    static let mostProperties = 2_000
    /// The maximum bytes of a property's name. Properties with a longer name, or with control characters in the name,
    /// are only in the stored events.
    static let longestName = 256

    private(set) var changes: [CustomerChange] = []
    private var room = mostProperties

    mutating func add(
        user: String?, device: String?, _ properties: JSONNode?, except skipped: BytewiseSet = [],
        at milliseconds: Int64
    ) {
        var found: [(name: String, json: [UInt8])] = []
        if let properties, properties.kind == .object {
            for (name, value) in properties.members {
                guard found.count < room, (1...Self.longestName).contains(name.count),
                    !name.hasControlCharacter
                else { continue }
                let name = String(decoding: name, as: UTF8.self)
                if !skipped.contains(name) { found.append((name, value.canonicalBytes)) }
            }
        }
        note(user, device, found, milliseconds)
    }

    mutating func add(
        user: String?, device: String?, group: String, _ traits: JSONNode?, at milliseconds: Int64
    ) {
        guard room > 0 else { return }
        var json = Array(#"{"id":"#.utf8)
        JSONValue.string(group).write(to: &json)
        json += #","traits":"#.utf8
        json += traits?.kind == .object ? traits?.canonicalBytes ?? [] : Array("{}".utf8)
        json.append(UInt8(ascii: "}"))
        note(user, device, [("group", json)], milliseconds)
    }

    mutating func add(
        user: String?, device: String?, last name: String, _ json: [UInt8], at milliseconds: Int64
    ) {
        guard room > 0 else { return }
        note(user, device, [(name, json)], milliseconds)
    }

    private mutating func note(
        _ user: String?, _ device: String?, _ properties: [(name: String, json: [UInt8])],
        _ milliseconds: Int64
    ) {
        // A device without a user gets a profile only if the event has properties.
        guard user != nil || !properties.isEmpty else { return }
        var identifiers =
            user.map { [CustomerIdentifier(name: CustomerIdentifier.hardName, value: $0)] } ?? []
        if let device {
            identifiers.append(CustomerIdentifier(name: CustomerIdentifier.cookieName, value: device))
        }
        guard !identifiers.isEmpty else { return }
        room -= properties.count
        var change = CustomerChange(identifiers: identifiers, atMilliseconds: milliseconds)
        change.properties = properties
        changes.append(change)
    }
}
