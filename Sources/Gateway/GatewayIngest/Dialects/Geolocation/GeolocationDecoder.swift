internal import CountersignCore
internal import CountersignJSON
internal import GatewayHTTP
internal import GatewayModel

/// Decodes the uploads of Transistorsoft's SDKs: one record or several, with or without a root property.
struct GeolocationDecoder {
    let events: DecodedEvents
    /// The records, each as `{"location":…,"params":{…}}`, concatenated.
    private(set) var body: [UInt8] = []
    private let user: String?
    private var derived = DerivedMessageIDs(namespace: "location")

    init(_ root: JSONNode, user: String?, _ events: DecodedEvents) throws(RejectedBody) {
        self.events = events
        self.user = user
        let limits = events.limits
        let text = events.request.body
        guard let records = text.withUnsafeBytes({ records(of: root, in: $0) }) else {
            throw .tooMany("locations", limits)
        }
        guard !records.isEmpty || root.kind == .array else {
            throw .invalid("the body must be a location or an array of locations")
        }
        // Each location is stored with its params.
        guard records.reduce(text.count, { $0 + $1.parameters.count }) <= limits.bodyBytes else {
            throw .tooLarge(
                "the locations, each with its params, may have at most \(limits.bodyBytes) bytes; send fewer "
                    + "locations at a time")
        }
        for record in records { add(record.node, record.span, record.parameters) }
    }

    private typealias Found = [(node: JSONNode, span: Range<Int>, parameters: [UInt8])]

    /// Returns nil for too many records, before any record is decoded.
    private func records(of root: JSONNode, in text: UnsafeRawBufferPointer) -> Found? {
        switch root.kind {
        case .array:
            let count = JSONSpans.count(root, upTo: events.room)
            guard count <= events.room else { return nil }
            let spans = StrictJSONParser.childSpans(
                of: text, at: StrictJSONParser.rootOffset(of: text), count: count)
            var all: Found = []
            for (element, span) in zip(root.elements, spans) {
                guard let found = unwrap(element, span, text, upTo: events.room - all.count) else {
                    return nil
                }
                all += found
            }
            return all
        case .object: return unwrap(root, JSONSpans.root(of: text), text, upTo: events.room)
        default: return []
        }
    }

    /// The records under `location` or the first member with locations; the other members are parameters. An
    /// object with `coords` or without locations is one record. Returns nil for more than `limit` records.
    private func unwrap(
        _ object: JSONNode, _ span: Range<Int>, _ text: UnsafeRawBufferPointer, upTo limit: Int
    ) -> Found? {
        guard limit > 0 else { return nil }
        guard object.kind == .object else { return [(object, span, [])] }
        let members = Array(object.members)
        let holder =
            object["coords"] != nil
            ? nil
            : members.firstIndex { $0.name.elementsEqual("location".utf8) }
                ?? members.firstIndex {
                    isLocation($0.value) || $0.value.elements.contains(where: isLocation)
                }
        guard let holder else { return [(object, span, [])] }
        let spans = StrictJSONParser.childSpans(of: text, at: span.lowerBound, count: members.count)
        var parameters: [UInt8] = []
        for (index, member) in members.enumerated() where index != holder {
            if !parameters.isEmpty { parameters.append(UInt8(ascii: ",")) }
            JSONValue.write(String(decoding: member.name, as: UTF8.self), to: &parameters)
            parameters.append(UInt8(ascii: ":"))
            parameters.append(contentsOf: text[spans[index]])
        }
        let value = members[holder].value
        // An array of other values, such as the result of the template `[46.05, 14.51]`, is one record.
        guard value.kind == .array,
            value.elements.allSatisfy({ $0.kind == .object || $0.kind == .array })
                || value.elements.contains(where: isLocation)
        else {
            return [(value, spans[holder], parameters)]
        }
        let count = JSONSpans.count(value, upTo: limit)
        guard count <= limit else { return nil }
        let elements = StrictJSONParser.childSpans(of: text, at: spans[holder].lowerBound, count: count)
        return zip(value.elements, elements).map { ($0, $1, parameters) }
    }

    private func isLocation(_ node: JSONNode) -> Bool { node["coords"] != nil }

    private mutating func add(_ node: JSONNode, _ span: Range<Int>, _ parameters: [UInt8]) {
        guard events.isIntact(node, at: span, ids: ["uuid"]) else { return }
        guard node.kind == .object || node.kind == .array else {
            return events.reject(
                "invalid_event", "a location must be a JSON object, or an array made by a template")
        }
        let json = events.request.body[span]
        let uuid = EventIdentifier(node["uuid"])
        guard uuid.isValid else {
            return events.reject("invalid_event", "uuid must be \(EventIdentifier.shape)")
        }
        guard events.fits(json.count + parameters.count, "a location and its params") else { return }
        let timestamp = events.time(of: node["timestamp"], at: span)
        let start = body.count
        body.append(contentsOf: #"{"location":"#.utf8)
        body.append(contentsOf: json)
        body.append(contentsOf: #","params":{"#.utf8)
        body.append(contentsOf: parameters)
        body.append(contentsOf: "}}".utf8)
        events.events.append(
            EventBatch.Event(
                messageID: uuid.text ?? derived.make(json), kind: .location, userID: user, anonymousID: nil,
                name: node["event"]?.string, timestampMilliseconds: timestamp,
                json: start..<body.count))
    }
}
