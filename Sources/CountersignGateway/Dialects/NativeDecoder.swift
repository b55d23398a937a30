internal import CountersignCore
internal import CountersignJOSE

/// What a native body holds.
enum Decoded {
    case contents(Contents)
    case refused(HTTPResponse)

    struct Contents {
        var writeKey: String?
        /// The device's time when it sent, in seconds since 1970.
        var sentAt: Double?
        /// Every user id in the body, each once.
        var userIDs: [String] = []
        var events: [EventBatch.Event] = []
        var rejected: [RejectedEvent] = []
    }
}

/// Reads the bodies of `/v1/batch` and of the endpoints for one event.
struct NativeDecoder {
    let limits: GatewayLimits
    let request: HTTPRequest

    private static let longestID = 512

    func decode(_ root: JSONNode, single: EventKind?) -> Decoded {
        guard root.kind == .object else { return refused("the body must be a JSON object") }
        var contents = Decoded.Contents()
        if let key = root["writeKey"], !key.isNull {
            guard let text = key.string else { return refused("writeKey must be a string") }
            contents.writeKey = text
        }
        if let sentAt = root["sentAt"]?.utf8, let milliseconds = RFC3339.milliseconds(sentAt) {
            contents.sentAt = Double(milliseconds) / 1000
        }
        if let single {
            request.body.withUnsafeBytes { text in
                let start = StrictJSONParser.rootOffset(of: text)
                let end = (text.lastIndex { $0 == UInt8(ascii: "}") } ?? text.count - 1) + 1
                add(root, kind: single, index: 0, json: start..<end, to: &contents)
            }
            return .contents(contents)
        }
        guard let batch = root["batch"], batch.kind == .array else {
            return refused("the body must have a member batch with an array of events")
        }
        let count = batch.elements.reduce(0) { count, _ in count + 1 }
        guard count <= limits.batchEvents else {
            return .refused(
                .failure(
                    413, code: "batch_too_large",
                    reason: "a batch may have \(limits.batchEvents) events; send fewer at a time",
                    requestID: request.id))
        }
        request.body.withUnsafeBytes { text in
            let spans = spans(of: batch, in: root, text: text, count: count)
            for (index, element) in batch.elements.enumerated() {
                add(element, kind: nil, index: index, json: spans[index], to: &contents)
            }
        }
        return .contents(contents)
    }

    /// Where the events stand in the body.
    private func spans(
        of batch: JSONNode, in root: JSONNode, text: UnsafeRawBufferPointer, count: Int
    ) -> [Range<Int>] {
        var position = 0
        var members = 0
        for member in root.members {
            if member.value.isSame(as: batch) { position = members }
            members += 1
        }
        let values = StrictJSONParser.childSpans(
            of: text, at: StrictJSONParser.rootOffset(of: text), count: members)
        return StrictJSONParser.childSpans(of: text, at: values[position].lowerBound, count: count)
    }

    private func add(
        _ node: JSONNode, kind given: EventKind?, index: Int, json: Range<Int>,
        to contents: inout Decoded.Contents
    ) {
        func reject(_ code: String, _ reason: String) {
            contents.rejected.append(RejectedEvent(index: index, code: code, reason: reason))
        }
        guard node.kind == .object else { return reject("invalid_event", "an event must be a JSON object") }
        // A user id counts for admission even when its event is rejected for another fault.
        let userID = identifier(node["userId"])
        if case .value(let id) = userID, !contents.userIDs.contains(where: { $0.utf8.elementsEqual(id.utf8) })
        {
            contents.userIDs.append(id)
        }
        guard json.count <= limits.eventBytes else {
            return reject("event_too_large", "an event may have \(limits.eventBytes) bytes")
        }
        guard let kind = given ?? node["type"]?.string.map(EventKind.init(rawValue:)),
            EventKind.all.contains(kind)
        else {
            let known = EventKind.all.map(\.rawValue).joined(separator: ", ")
            return reject("unsupported_type", "the type of an event must be one of \(known)")
        }
        let anonymousID = identifier(node["anonymousId"])
        let messageID = identifier(node["messageId"])
        for (name, id) in [("userId", userID), ("anonymousId", anonymousID), ("messageId", messageID)] {
            if case .invalid = id {
                return reject(
                    "invalid_event",
                    "\(name) must be a string of 1 to \(Self.longestID) bytes without control characters")
            }
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
            guard let group = identifier(node["groupId"]).text else {
                return reject("invalid_event", "a group event must have a groupId")
            }
            name = group
        case .alias:
            guard let previous = identifier(node["previousId"]).text else {
                return reject("invalid_event", "an alias event must have a previousId")
            }
            name = previous
        default: break
        }
        for (name, value) in [
            ("properties", node["properties"]), ("traits", node["traits"]), ("context", node["context"]),
        ] {
            if let value, value.kind != .object, !value.isNull {
                return reject("invalid_event", "\(name) must be a JSON object")
            }
        }
        var timestamp = request.receivedMilliseconds
        if let value = node["timestamp"], !value.isNull {
            guard let text = value.utf8, let milliseconds = RFC3339.milliseconds(text) else {
                return reject(
                    "invalid_event", "timestamp must be a date and time such as 2026-11-21T08:30:00.000Z")
            }
            timestamp = milliseconds
        }
        contents.events.append(
            EventBatch.Event(
                messageID: messageID.text ?? UUIDv7.make(), kind: kind, userID: userID.text,
                anonymousID: anonymousID.text, name: name, timestampMilliseconds: timestamp, json: json))
    }

    private enum Identifier {
        case absent
        case value(String)
        case invalid

        var text: String? {
            if case .value(let text) = self { text } else { nil }
        }
    }

    /// An id; absent, null and the empty string are no id.
    private func identifier(_ node: JSONNode?) -> Identifier {
        guard let node, !node.isNull else { return .absent }
        guard let utf8 = node.utf8, utf8.count <= Self.longestID,
            utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { return .invalid }
        return utf8.isEmpty ? .absent : .value(String(decoding: utf8, as: UTF8.self))
    }

    private func refused(_ reason: String) -> Decoded {
        .refused(.failure(400, code: "invalid_batch", reason: reason, requestID: request.id))
    }
}
