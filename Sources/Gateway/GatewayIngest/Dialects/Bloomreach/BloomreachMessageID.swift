internal import CountersignCore
internal import CountersignJSON
internal import GatewayModel

/// Message ids for clients that send none (`docs/adr/0008-message-ids-of-bloomreach-clients.md`).
enum BloomreachMessageID {
    /// The length of a time window in milliseconds. An equal request with an `age` in the same window is a retry.
    private static let window: Int64 = 600_000

    /// Returns the same id for all tries of an event with a `timestamp`, and for repeated requests with the same
    /// fractional `age`. Otherwise the id is new. `properties` are canonical and sorted by the bytes of their names.
    static func make(
        _ root: JSONNode, kind: BloomreachRecordKind, identifiers: [CustomerIdentifier],
        time: BloomreachTime, properties: [(name: String, json: [UInt8])]?
    ) -> String {
        var moment: JSONValue
        switch time.source {
        case .instant: moment = root["timestamp"]?.value ?? .null  // a number, or a time as text
        case .age(let seconds) where seconds != seconds.rounded():
            moment = [.number(seconds), .integer(time.receivedMilliseconds / window)]
        // An age in whole seconds does not distinguish events. Storing an event twice is better than losing one.
        case .age, .none: return UUIDv7.make()
        }
        // Does not use the body, because the order of members differs between tries and a retry may have more ids.
        var content = JSONValue.array([.string(kind.rawValue), anchor(identifiers), moment]).bytes
        content.removeLast()
        for name in ["event_type", "url"] as [StaticString] {
            content.append(UInt8(ascii: ","))
            content.append(contentsOf: root[name]?.canonicalBytes ?? Array("null".utf8))
        }
        content.append(UInt8(ascii: ","))
        write(properties, to: &content)
        content.append(UInt8(ascii: "]"))
        var ids = DerivedMessageIDs(namespace: "bloomreach")
        return ids.make(content[...])
    }

    private static func write(_ properties: [(name: String, json: [UInt8])]?, to output: inout [UInt8]) {
        guard let properties else { return output.append(contentsOf: "null".utf8) }
        output.append(UInt8(ascii: "{"))
        for (index, property) in properties.enumerated() {
            if index > 0 { output.append(UInt8(ascii: ",")) }
            JSONValue.write(property.name, to: &output)
            output.append(UInt8(ascii: ":"))
            output.append(contentsOf: property.json)
        }
        output.append(UInt8(ascii: "}"))
    }

    /// The ids that are the same in all tries: the device's cookie, or all ids without a cookie.
    private static func anchor(_ identifiers: [CustomerIdentifier]) -> JSONValue {
        let cookie = identifiers.filter { $0.name == CustomerIdentifier.cookieName }
        let kept = cookie.isEmpty ? identifiers : cookie
        return .object(JSONObject(kept.map { ($0.name, .string($0.value)) }, uniquingKeysWith: { $1 }))
    }
}
