internal import CountersignCore
internal import CountersignJSON
internal import GatewayHTTP
internal import GatewayModel

/// The content of a native body.
struct NativeContents {
    var writeKey: String?
    /// The device's clock when the request was sent, in seconds since 1970.
    var sentAt: Double?
    /// The distinct user ids in the body.
    var userIDs = DistinctIDs()
    var events: [EventBatch.Event] = []
    var rejected: [RejectedEvent] = []
    var warnings: [EventWarning] = []
    var profiles = Profiles()
}

/// Decodes the bodies of `/v1/batch` and of the endpoints for one event.
struct NativeDecoder {
    let limits: GatewayLimits
    let request: HTTPRequest
    let faults: EventFaults

    /// Adds to the contents in place, because copying them costs a reference for each of their texts. Returns
    /// the response if the body is rejected; otherwise nil.
    func decode(
        _ root: JSONNode, single: EventKind?, to contents: inout NativeContents
    ) -> HTTPResponse? {
        guard root.kind == .object else { return refused("the body must be a JSON object") }
        if let key = root["writeKey"], !key.isNull {
            guard let text = key.string else { return refused("writeKey must be a string") }
            contents.writeKey = text
        }
        if let milliseconds = root["sentAt"].flatMap({ EventTime.milliseconds($0) }) {
            contents.sentAt = Double(milliseconds) / 1000
        }
        let first = single == nil ? root["batch"]?.elements.first { _ in true } : root
        request.context.client = ClientInfo(context: first?["context"])
        if let single {
            let json = request.body.withUnsafeBytes { JSONSpans.root(of: $0) }
            add(root, kind: single, index: 0, json: json, to: &contents)
            return nil
        }
        guard let batch = root["batch"], batch.kind == .array else {
            return refused("the body must have a member batch with an array of events")
        }
        guard JSONSpans.count(batch, upTo: limits.batchEvents) <= limits.batchEvents else {
            return .failure(
                413, code: "batch_too_large",
                reason: "a batch may have at most \(limits.batchEvents) events; send fewer at a time",
                requestID: request.id)
        }
        let spans = request.body.withUnsafeBytes { JSONSpans.elements(of: batch, in: root, text: $0) }
        for (index, element) in batch.elements.enumerated() {
            add(element, kind: nil, index: index, json: spans[index], to: &contents)
        }
        return nil
    }

    private func add(
        _ node: JSONNode, kind given: EventKind?, index: Int, json: Range<Int>,
        to contents: inout NativeContents
    ) {
        func reject(_ code: String, _ reason: String) {
            contents.rejected.append(RejectedEvent(index: index, code: code, reason: reason))
        }
        if let reason = faults.reason(for: json) { return reject("invalid_json", reason) }
        guard node.kind == .object else { return reject("invalid_event", "an event must be a JSON object") }
        guard !faults.haveReplaced(Self.identifiers, of: node, at: json, in: request.body) else {
            return contents.rejected.append(
                .replacedID(index, "userId, previousId, anonymousId, groupId and messageId"))
        }
        // Admission covers the user ids of rejected events too, and `previousId` for all types of event,
        // because readers of the stored body can use it.
        let userID = EventIdentifier(node["userId"])
        let previousID = EventIdentifier(node["previousId"])
        for case let id? in [userID.text, previousID.text] { contents.userIDs.insert(id) }
        guard json.count <= limits.eventBytes else {
            return reject("event_too_large", "an event may have at most \(limits.eventBytes) bytes")
        }
        guard let kind = given ?? Self.kind(node["type"]) else {
            let known = EventKind.all.map(\.rawValue).joined(separator: ", ")
            return reject("unsupported_type", "the type of an event must be one of \(known)")
        }
        let anonymousID = EventIdentifier(node["anonymousId"])
        let messageID = EventIdentifier(node["messageId"])
        guard userID.isValid, previousID.isValid, anonymousID.isValid, messageID.isValid else {
            return reject(
                "invalid_event",
                "userId, previousId, anonymousId and messageId must be \(EventIdentifier.shape)")
        }
        guard userID.text != nil || anonymousID.text != nil else {
            return reject("missing_user", "an event must have a userId or an anonymousId")
        }
        var name: String?
        switch kind {
        case .track:
            guard let event = node["event"]?.string, !event.isEmpty else {
                return reject("invalid_event", "a track event must have a name in event")
            }
            name = event
        case .page, .screen:
            name = node["name"]?.string
        case .group:
            guard let group = EventIdentifier(node["groupId"]).text else {
                return reject("invalid_event", "a group event must have a groupId")
            }
            name = group
        case .alias:
            guard let previous = previousID.text else {
                return reject("invalid_event", "an alias event must have a previousId")
            }
            name = previous
        default: break
        }
        for name in ["properties", "traits", "context"] as [StaticString] {
            if let value = node[name], value.kind != .object, !value.isNull {
                return reject("invalid_event", "\(name) must be a JSON object")
            }
        }
        var timestamp = request.receivedMilliseconds
        if let value = node["timestamp"], !value.isNull {
            if let milliseconds = EventTime.milliseconds(value) {
                timestamp = milliseconds
            } else {
                contents.warnings.append(EventTime.warning(index))
            }
        } else if faults.hasUnusableTime(json) {
            contents.warnings.append(EventTime.warning(index))
        }
        contents.events.append(
            EventBatch.Event(
                messageID: messageID.text ?? UUIDv7.make(), kind: kind, userID: userID.text,
                anonymousID: anonymousID.text, name: name, timestampMilliseconds: timestamp, json: json))
        // Limited to the time of receipt, so that a fast clock does not override all later updates.
        let time = min(timestamp, request.receivedMilliseconds)
        switch kind {
        case .identify:
            contents.profiles.add(
                user: userID.text, device: anonymousID.text, node["traits"], at: time)
        case .group:
            contents.profiles.add(
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

    private func refused(_ reason: String) -> HTTPResponse {
        .failure(400, code: "invalid_batch", reason: reason, requestID: request.id)
    }
}
