internal import CountersignCore
internal import CountersignJSON
internal import GatewayHTTP
internal import GatewayModel

/// Decodes the uploads of Transistorsoft's SDKs: one record or several, with or without a root property.
struct GeolocationDecoder {
    let limits: GatewayLimits
    let request: HTTPRequest
    let faults: EventFaults

    struct Contents {
        /// The records, each as `{"location":…,"params":{…}}`, concatenated.
        var body: [UInt8] = []
        var events: [EventBatch.Event] = []
        var rejected: [RejectedEvent] = []
        var warnings: [EventWarning] = []
    }

    enum Refusal: Error {
        case refused(HTTPResponse)
    }

    func decode(_ root: JSONNode, user: String?) -> Result<Contents, Refusal> {
        let text = request.body
        guard let (records, parameters) = text.withUnsafeBytes({ records(of: root, in: $0) }) else {
            return refused(
                413, "batch_too_large", "a request may have at most \(limits.batchEvents) locations")
        }
        guard !records.isEmpty || root.kind == .array else {
            return refused(400, "invalid_batch", "the body must be a location or an array of locations")
        }
        // Each location is stored with the params.
        guard text.count + records.count * parameters.count <= limits.bodyBytes else {
            return refused(
                413, "batch_too_large",
                "the locations, each with the params of the request, may have at most \(limits.bodyBytes) bytes; send fewer "
                    + "locations at a time")
        }
        var contents = Contents()
        var derived = DerivedMessageIDs(namespace: "location")
        for (index, record) in records.enumerated() {
            add(record.node, record.span, parameters, user: user, index: index, &derived, to: &contents)
        }
        return .success(contents)
    }

    /// The records of a request, and the parameters if the request is an object.
    private typealias Found = (records: [(node: JSONNode, span: Range<Int>)], parameters: [UInt8])

    /// Returns nil for too many records, before any record is examined.
    private func records(of root: JSONNode, in text: UnsafeRawBufferPointer) -> Found? {
        switch root.kind {
        case .array:
            let count = JSONSpans.count(root, upTo: limits.batchEvents)
            guard count <= limits.batchEvents else { return nil }
            let spans = StrictJSONParser.childSpans(
                of: text, at: StrictJSONParser.rootOffset(of: text), count: count)
            var all: Found = ([], [])
            for (element, span) in zip(root.elements, spans) {
                let room = limits.batchEvents - all.records.count
                guard let found = unwrap(element, span, text, upTo: room) else { return nil }
                all.records += found.records
            }
            return all
        case .object: return unwrap(root, JSONSpans.root(of: text), text, upTo: limits.batchEvents)
        default: return ([], [])
        }
    }

    /// The records in an object: the object itself if it has coordinates, or those under `location`, or those
    /// under the first member with locations (a custom root property). All other members are parameters.
    /// Returns nil for more than `limit` records.
    private func unwrap(
        _ object: JSONNode, _ span: Range<Int>, _ text: UnsafeRawBufferPointer, upTo limit: Int
    ) -> Found? {
        guard limit > 0 else { return nil }
        guard object.kind == .object else { return ([(object, span)], []) }
        let members = Array(object.members)
        let holder =
            object["coords"] != nil
            ? nil
            : members.firstIndex { $0.name.elementsEqual("location".utf8) }
                ?? members.firstIndex {
                    isLocation($0.value) || $0.value.elements.contains(where: isLocation)
                }
        guard let holder else { return ([(object, span)], []) }
        let spans = StrictJSONParser.childSpans(of: text, at: span.lowerBound, count: members.count)
        var parameters: [UInt8] = []
        for (index, member) in members.enumerated() where index != holder {
            if !parameters.isEmpty { parameters.append(UInt8(ascii: ",")) }
            JSONValue.write(String(decoding: member.name, as: UTF8.self), to: &parameters)
            parameters.append(UInt8(ascii: ":"))
            parameters.append(contentsOf: text[spans[index]])
        }
        let value = members[holder].value
        // A custom template may be an array of numbers, which is one record.
        guard value.kind == .array,
            value.elements.allSatisfy({ $0.kind == .object || $0.kind == .array })
                || value.elements.contains(where: isLocation)
        else {
            return ([(value, spans[holder])], parameters)
        }
        let count = JSONSpans.count(value, upTo: limit)
        guard count <= limit else { return nil }
        let elements = StrictJSONParser.childSpans(of: text, at: spans[holder].lowerBound, count: count)
        return (zip(value.elements, elements).map { ($0, $1) }, parameters)
    }

    private func isLocation(_ node: JSONNode) -> Bool { node["coords"] != nil }

    private func add(
        _ node: JSONNode, _ span: Range<Int>, _ parameters: [UInt8], user: String?, index: Int,
        _ derived: inout DerivedMessageIDs, to contents: inout Contents
    ) {
        func reject(_ code: String, _ reason: String) {
            contents.rejected.append(RejectedEvent(index: index, code: code, reason: reason))
        }
        let json = request.body[span]
        if let reason = faults.reason(for: span) { return reject("invalid_json", reason) }
        guard node.kind == .object || node.kind == .array else {
            return reject("invalid_event", "a location must be a JSON object, or an array made by a template")
        }
        guard !faults.haveReplaced(["uuid"], of: node, at: span, in: request.body) else {
            return contents.rejected.append(.replacedID(index, "uuid"))
        }
        let uuid = EventIdentifier(node["uuid"])
        guard uuid.isValid else { return reject("invalid_event", "uuid must be \(EventIdentifier.shape)") }
        guard json.count + parameters.count <= limits.eventBytes else {
            return reject(
                "event_too_large", "a location and its params may have at most \(limits.eventBytes) bytes")
        }
        var timestamp = request.receivedMilliseconds
        if let time = node["timestamp"], !time.isNull {
            if let milliseconds = EventTime.milliseconds(time) {
                timestamp = milliseconds
            } else {
                contents.warnings.append(EventTime.warning(index))
            }
        } else if faults.hasUnusableTime(span) {
            contents.warnings.append(EventTime.warning(index))
        }
        let start = contents.body.count
        contents.body.append(contentsOf: #"{"location":"#.utf8)
        contents.body.append(contentsOf: json)
        contents.body.append(contentsOf: #","params":{"#.utf8)
        contents.body.append(contentsOf: parameters)
        contents.body.append(contentsOf: "}}".utf8)
        contents.events.append(
            EventBatch.Event(
                messageID: uuid.text ?? derived.make(json), kind: .location, userID: user, anonymousID: nil,
                name: node["event"]?.string, timestampMilliseconds: timestamp,
                json: start..<contents.body.count))
    }

    private func refused(_ status: Int, _ code: String, _ reason: String) -> Result<Contents, Refusal> {
        .failure(.refused(.failure(status, code: code, reason: reason, requestID: request.id)))
    }
}
