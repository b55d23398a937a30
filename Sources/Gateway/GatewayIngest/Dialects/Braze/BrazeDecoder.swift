internal import CountersignCore
internal import CountersignJSON
internal import GatewayHTTP
internal import GatewayModel

/// Decodes the body of `/api/v3/data`.
struct BrazeDecoder {
    let limits: GatewayLimits
    let request: HTTPRequest
    let faults: EventFaults

    struct Contents {
        var apiKey: String?
        /// The device's clock, in seconds since 1970.
        var deviceTime: Double?
        var userIDs = DistinctIDs()
        var events: [EventBatch.Event] = []
        var profiles = Profiles()
        /// Whether the client asks for triggers.
        var wantsTriggers = false
        var rejected: [RejectedEvent] = []
        var warnings: [EventWarning] = []
    }

    enum Refusal: Error {
        case refused(HTTPResponse)
    }

    func decode(_ root: JSONNode) -> Result<Contents, Refusal> {
        guard root.kind == .object else { return refused("the body must be a JSON object") }
        var contents = Contents()
        contents.apiKey = root["api_key"]?.string
        contents.deviceTime = root["time"]?.double
        contents.wantsTriggers = root["respond_with"]?["triggers"]?.bool == true
        // An unpaired surrogate makes an id invalid, as a control character does.
        let whole = request.body.withUnsafeBytes { JSONSpans.root(of: $0) }
        let hasDevice = !faults.haveReplaced(["device_id"], of: root, at: whole, in: request.body)
        let device = hasDevice ? EventIdentifier(root["device_id"]).text : nil
        for holder in [root, root["respond_with"]] {
            note(EventIdentifier(holder?["user_id"]), in: &contents)
            note(EventIdentifier(holder?["external_id"]), in: &contents)
        }
        request.context.client = ClientInfo(
            sdk: root["sdk_flavor"] ?? root["sdk_name"], root["sdk_version"], app: root["app_version"])
        var derived = DerivedMessageIDs(namespace: device ?? "")
        var index = 0
        let text = request.body
        for member in ["events", "attributes"] as [StaticString] {
            guard let list = root[member], !list.isNull else { continue }
            guard list.kind == .array else { return refused("\(member) must be an array") }
            let room = limits.batchEvents - index
            guard JSONSpans.count(list, upTo: room) <= room else {
                return .failure(
                    .refused(
                        .failure(
                            413, code: "batch_too_large",
                            reason:
                                "a request may have at most \(limits.batchEvents) events; send fewer at a time",
                            requestID: request.id)))
            }
            let spans = text.withUnsafeBytes { JSONSpans.elements(of: list, in: root, text: $0) }
            let isEvent = index == 0 && root["events"]?.isSame(as: list) == true
            for (element, span) in zip(list.elements, spans) {
                add(element, span, isEvent: isEvent, index: index, device: device, &derived, to: &contents)
                index += 1
            }
        }
        return .success(contents)
    }

    private func add(
        _ node: JSONNode, _ span: Range<Int>, isEvent: Bool, index: Int, device: String?,
        _ derived: inout DerivedMessageIDs, to contents: inout Contents
    ) {
        func reject(_ code: String, _ reason: String) {
            contents.rejected.append(RejectedEvent(index: index, code: code, reason: reason))
        }
        if let reason = faults.reason(for: span) { return reject("invalid_json", reason) }
        guard node.kind == .object else { return reject("invalid_event", "an event must be a JSON object") }
        guard
            !faults.haveReplaced(
                ["user_id", "external_id", "message_id"], of: node, at: span, in: request.body)
        else {
            return contents.rejected.append(
                .replacedID(index, "user_id, external_id and message_id"))
        }
        let user = EventIdentifier(node["user_id"])
        note(user, in: &contents)
        // The vendor's name for the user id. It is verified like a user id but not stored as one.
        let externalID = EventIdentifier(node["external_id"])
        note(externalID, in: &contents)
        let messageID = EventIdentifier(node["message_id"])
        guard user.isValid, externalID.isValid, messageID.isValid else {
            return reject(
                "invalid_event", "user_id, external_id and message_id must be \(EventIdentifier.shape)")
        }
        guard span.count <= limits.eventBytes else {
            return reject("event_too_large", "an event may have at most \(limits.eventBytes) bytes")
        }
        guard user.text != nil || device != nil else {
            return reject("missing_user", "an event must have a user_id, or its request a device_id")
        }
        var name: String?
        if isEvent {
            guard let abbreviation = node["name"]?.string, !abbreviation.isEmpty else {
                return reject("invalid_event", "an event must have a name")
            }
            // "ce" is a custom event; its name is in `data`.
            name =
                abbreviation.utf8.elementsEqual("ce".utf8)
                ? node["data"]?["n"]?.string ?? abbreviation : abbreviation
        }
        var timestamp = request.receivedMilliseconds
        if let time = node["time"], !time.isNull {
            if let milliseconds = EventTime.milliseconds(time, .seconds), milliseconds > 0 {
                timestamp = milliseconds
            } else {
                contents.warnings.append(EventTime.warning(index))
            }
        } else if faults.hasUnusableTime(span) {
            contents.warnings.append(EventTime.warning(index))
        }
        contents.events.append(
            EventBatch.Event(
                messageID: messageID.text ?? derived.make(request.body[span]),
                kind: isEvent ? .track : .identify,
                userID: user.text, anonymousID: device, name: name, timestampMilliseconds: timestamp,
                json: span))
        let device = user.text == nil ? device : nil
        let time = min(timestamp, request.receivedMilliseconds)
        if isEvent {
            if let property = Self.lastProperties[node["name"]?.string ?? ""] {
                contents.profiles.add(
                    user: user.text, device: device, last: property, Self.occurrence(of: node, at: timestamp),
                    at: time)
            }
            return
        }
        contents.profiles.add(user: user.text, device: device, node, except: Self.facts, at: time)
        if let custom = node["custom"], custom.kind == .object {
            contents.profiles.add(user: user.text, device: device, custom, at: time)
        }
    }

    /// The profile property for the last purchase and session event, by the abbreviations of Braze's SDKs.
    private static let lastProperties: BytewiseDictionary = [
        "p": "last_purchase", "ss": "last_session_start", "se": "last_session_end",
    ]

    /// The event's `data` as sent, with its time and session.
    private static func occurrence(of node: JSONNode, at milliseconds: Int64) -> [UInt8] {
        var json = Array("{\"data\":".utf8)
        json += node["data"]?.kind == .object ? node["data"]?.canonicalBytes ?? [] : Array("{}".utf8)
        if let session = node["session_id"]?.string {
            json += ",\"session_id\":".utf8
            JSONValue.string(session).write(to: &json)
        }
        json += ",\"time_ms\":\(milliseconds)}".utf8
        return json
    }

    /// Members of attributes that are not properties of the user.
    private static let facts: BytewiseSet = [
        "user_id", "external_id", "device_id", "braze_id", "user_alias", "message_id", "session_id", "time",
        "custom",
    ]

    private func note(_ user: EventIdentifier, in contents: inout Contents) {
        if let id = user.text { contents.userIDs.insert(id) }
    }

    private func refused(_ reason: String) -> Result<Contents, Refusal> {
        .failure(.refused(.failure(400, code: "invalid_batch", reason: reason, requestID: request.id)))
    }
}
