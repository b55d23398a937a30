internal import CountersignCore
internal import CountersignJOSE
internal import GatewayModel

/// Message ids for a dialect whose clients send none (`docs/adr/0008-message-ids-of-bloomreach-clients.md`).
enum BloomreachMessageID {
    /// How long a request with an `age` is taken for another try of an equal one, in milliseconds.
    private static let window: Int64 = 600_000

    /// The same id for every try of an event, as far as its content shows that it is the same event. `properties` are
    /// canonical and in the order of their names' bytes.
    static func make(
        _ root: JSONNode, kind: BloomreachRecordKind, identifiers: [CustomerIdentifier],
        time: BloomreachTime, properties: [(name: String, json: [UInt8])]?
    ) -> String {
        var moment: JSONValue
        switch time.source {
        case .instant: moment = root["timestamp"]?.value ?? .null  // a number, or a time that was read
        case .age(let seconds) where seconds != seconds.rounded():
            moment = [.number(seconds), .integer(time.receivedMilliseconds / window)]
        // A whole number of seconds, or nothing, tells no two events apart: better stored twice than lost.
        case .age, .none: return UUIDv7.make()
        }
        // Members come in another order at every try, and ids that were added since the first try come along.
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

    /// What stays the same of a customer's ids: the device's cookie, or else all of them.
    private static func anchor(_ identifiers: [CustomerIdentifier]) -> JSONValue {
        let cookie = identifiers.filter { $0.name == CustomerIdentifier.cookieName }
        let kept = cookie.isEmpty ? identifiers : cookie
        return .object(JSONObject(kept.map { ($0.name, .string($0.value)) }, uniquingKeysWith: { $1 }))
    }
}
