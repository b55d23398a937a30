internal import CountersignCore
internal import CountersignJSON
internal import GatewayHTTP
internal import GatewayModel

/// Decodes the body of `/api/v3/data`.
struct BrazeDecoder {
    let events: DecodedEvents
    let apiKey: String?
    /// The device's clock, in seconds since 1970.
    let deviceTime: Double?
    let wantsTriggers: Bool
    private let device: String?
    private var derived: DerivedMessageIDs

    /// Decodes no events if `isKnown` is false for the body's key, so that such a request costs little time.
    init(
        _ root: JSONNode, _ events: DecodedEvents, isKnown: (_ apiKey: String?) -> Bool
    ) throws(RejectedBody) {
        guard root.kind == .object else { throw .invalid("the body must be a JSON object") }
        self.events = events
        let request = events.request
        apiKey = root["api_key"]?.string
        deviceTime = root["time"]?.double
        wantsTriggers = root["respond_with"]?["triggers"]?.bool == true
        // An unpaired surrogate makes an id invalid, as a control character does.
        let whole = request.body.withUnsafeBytes { JSONSpans.root(of: $0) }
        let hasDevice = !events.faults.haveReplaced(["device_id"], of: root, at: whole, in: request.body)
        device = hasDevice ? EventIdentifier(root["device_id"]).text : nil
        derived = DerivedMessageIDs(namespace: device ?? "")
        guard isKnown(apiKey) else { return }
        for holder in [root, root["respond_with"]] {
            note(EventIdentifier(holder?["user_id"]))
            note(EventIdentifier(holder?["external_id"]))
        }
        request.context.client = ClientInfo(
            sdk: root["sdk_flavor"] ?? root["sdk_name"], root["sdk_version"], app: root["app_version"])
        for member in ["events", "attributes"] as [StaticString] {
            guard let list = root[member], !list.isNull else { continue }
            guard list.kind == .array else { throw .invalid("\(member) must be an array") }
            let isEvent = root["events"]?.isSame(as: list) == true
            for (element, span) in zip(list.elements, try events.spans(of: list, in: root)) {
                add(element, span, isEvent: isEvent)
            }
        }
    }

    private mutating func add(_ node: JSONNode, _ span: Range<Int>, isEvent: Bool) {
        guard events.isIntact(node, at: span, ids: ["user_id", "external_id", "message_id"]) else { return }
        guard node.kind == .object else {
            return events.reject("invalid_event", "an event must be a JSON object")
        }
        let user = EventIdentifier(node["user_id"])
        note(user)
        // `external_id` is Braze's name for a user id. It is verified like `user_id` but not stored as the user id.
        let externalID = EventIdentifier(node["external_id"])
        note(externalID)
        let messageID = EventIdentifier(node["message_id"])
        guard user.isValid, externalID.isValid, messageID.isValid else {
            return events.reject(
                "invalid_event", "user_id, external_id and message_id must be \(EventIdentifier.shape)")
        }
        guard events.fits(span.count) else { return }
        guard user.text != nil || device != nil else {
            return events.reject("missing_user", "an event must have a user_id, or its request a device_id")
        }
        var name: String?
        if isEvent {
            name = node["name"]?.string
            // "ce" is a custom event; its name is in `data`.
            if let given = name, given == "ce" { name = node["data"]?["n"]?.string ?? given }
            guard name?.isEmpty == false else {
                return events.reject("invalid_event", "an event must have a name")
            }
        }
        let timestamp = events.time(of: node["time"], at: span, .seconds, after: 0)
        events.events.append(
            EventBatch.Event(
                messageID: messageID.text ?? derived.make(events.request.body[span]),
                kind: isEvent ? .track : .identify,
                userID: user.text, anonymousID: device, name: name, timestampMilliseconds: timestamp,
                json: span))
        let device = user.text == nil ? device : nil
        let time = min(timestamp, events.request.receivedMilliseconds)
        if isEvent {
            if let property = Self.lastProperties[node["name"]?.string ?? ""] {
                events.profiles.add(
                    user: user.text, device: device, last: property, Self.occurrence(of: node, at: timestamp),
                    at: time)
            }
            return
        }
        events.profiles.add(user: user.text, device: device, node, except: Self.facts, at: time)
        if let custom = node["custom"], custom.kind == .object {
            events.profiles.add(user: user.text, device: device, custom, at: time)
        }
    }

    /// The profile property for the last purchase and session event, by the abbreviations of Braze's SDKs.
    private static let lastProperties: BytewiseDictionary = [
        "p": "last_purchase", "ss": "last_session_start", "se": "last_session_end",
    ]

    /// The event's `data` as canonical JSON, with the event's time and session.
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

    private func note(_ user: EventIdentifier) {
        if let id = user.text { events.userIDs.insert(id) }
    }
}
