internal import CountersignCore
internal import CountersignJSON
internal import GatewayHTTP
internal import GatewayModel

/// Decodes the bodies of `/v1/batch` and of the endpoints for one event.
struct NativeDecoder {
    let events: DecodedEvents
    /// The device's clock when the request was sent, in seconds since 1970.
    let sentAt: Double?

    /// Decodes no events if `isKnown` is false for the body's write key, so that such a request costs little time.
    init(
        _ root: JSONNode, single: EventKind?, _ events: DecodedEvents, isKnown: (_ writeKey: String?) -> Bool
    ) throws(RejectedBody) {
        guard root.kind == .object else { throw .invalid("the body must be a JSON object") }
        self.events = events
        let request = events.request
        sentAt = root["sentAt"].flatMap { EventTime.milliseconds($0) }.map { Double($0) / 1000 }
        var writeKey: String?
        if let key = root["writeKey"], !key.isNull {
            guard let text = key.string else { throw .invalid("writeKey must be a string") }
            writeKey = text
        }
        guard isKnown(writeKey) else { return }
        let first = single == nil ? root["batch"]?.elements.first { _ in true } : root
        request.context.client = ClientInfo(context: first?["context"])
        if let single {
            add(root, kind: single, json: request.body.withUnsafeBytes { JSONSpans.root(of: $0) })
            return
        }
        guard let batch = root["batch"], batch.kind == .array else {
            throw .invalid("the body must have a member batch with an array of events")
        }
        for (element, json) in zip(batch.elements, try events.spans(of: batch, in: root)) {
            add(element, kind: nil, json: json)
        }
    }

    private func add(_ node: JSONNode, kind given: EventKind?, json: Range<Int>) {
        guard events.isIntact(node, at: json, ids: Self.identifiers) else { return }
        guard node.kind == .object else {
            return events.reject("invalid_event", "an event must be a JSON object")
        }
        // Admission also covers the user ids of events that are rejected below. It covers `previousId` for all types
        // of event, because readers of a stored event can use `previousId`.
        let userID = EventIdentifier(node["userId"])
        let previousID = EventIdentifier(node["previousId"])
        for case let id? in [userID.text, previousID.text] { events.userIDs.insert(id) }
        guard events.fits(json.count) else { return }
        guard let kind = given ?? Self.kind(node["type"]) else {
            let known = EventKind.all.map(\.rawValue).joined(separator: ", ")
            return events.reject("unsupported_type", "the type of an event must be one of \(known)")
        }
        let anonymousID = EventIdentifier(node["anonymousId"])
        let messageID = EventIdentifier(node["messageId"])
        guard userID.isValid, previousID.isValid, anonymousID.isValid, messageID.isValid else {
            return events.reject(
                "invalid_event",
                "userId, previousId, anonymousId and messageId must be \(EventIdentifier.shape)")
        }
        guard userID.text != nil || anonymousID.text != nil else {
            return events.reject("missing_user", "an event must have a userId or an anonymousId")
        }
        var name: String?
        switch kind {
        case .track:
            guard let event = node["event"]?.string, !event.isEmpty else {
                return events.reject("invalid_event", "a track event must have a name in event")
            }
            name = event
        case .page, .screen:
            name = node["name"]?.string
        case .group:
            guard let group = EventIdentifier(node["groupId"]).text else {
                return events.reject("invalid_event", "a group event must have a groupId")
            }
            name = group
        case .alias:
            guard let previous = previousID.text else {
                return events.reject("invalid_event", "an alias event must have a previousId")
            }
            name = previous
        default: break
        }
        for name in ["properties", "traits", "context"] as [StaticString] {
            if let value = node[name], value.kind != .object, !value.isNull {
                return events.reject("invalid_event", "\(name) must be a JSON object")
            }
        }
        let timestamp = events.time(of: node["timestamp"], at: json)
        events.events.append(
            EventBatch.Event(
                messageID: messageID.text ?? UUIDv7.make(), kind: kind, userID: userID.text,
                anonymousID: anonymousID.text, name: name, timestampMilliseconds: timestamp, json: json))
        // The time is at most the time of receipt, so that a device's fast clock does not override later updates.
        let time = min(timestamp, events.request.receivedMilliseconds)
        switch kind {
        case .identify:
            events.profiles.add(
                user: userID.text, device: anonymousID.text, node["traits"], at: time)
        case .group:
            events.profiles.add(
                user: userID.text, device: userID.text == nil ? anonymousID.text : nil, group: name ?? "",
                node["traits"], at: time)
        default: break
        }
    }

    private static func kind(_ node: JSONNode?) -> EventKind? {
        guard let word = node?.utf8 else { return nil }
        return EventKind.all.first { $0.rawValue.utf8.elementsEqual(word) }
    }

    private static let identifiers: [StaticString] = [
        "userId", "previousId", "anonymousId", "groupId", "messageId",
    ]
}
