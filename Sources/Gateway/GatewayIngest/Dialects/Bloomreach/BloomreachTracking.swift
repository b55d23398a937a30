internal import CountersignCore
internal import CountersignJSON
internal import GatewayHTTP
internal import GatewayModel

struct BloomreachTracking {
    static let longestType = 256
    static let longestURL = 8_192

    let call: BloomreachCall
    let kind: BloomreachRecordKind

    private struct Contents {
        var identifiers: [CustomerIdentifier] = []
        var name: String?
        /// Names with canonical JSON, sorted by the bytes of the names; nil without the member.
        var properties: [(name: String, json: [UInt8])]?
        var messageID = ""
        var isIdentifiedByContent = false
        var timestampMilliseconds: Int64 = 0
        var client: ClientInfo?
        var warnings: [EventWarning] = []
    }

    func outcome() throws(HTTPResponse) -> HTTPOutcome {
        let json = call.request.body.withUnsafeBytes { JSONSpans.root(of: $0) }
        guard json.count <= call.path.limits.eventBytes else {
            throw BloomreachAnswer.failure(
                413, "an event may have at most \(call.path.limits.eventBytes) bytes", call.request)
        }
        let contents = try call.eventBody { root, faults throws(HTTPResponse) in
            let ids: [StaticString] = ["customer_ids", "message_id"]
            guard !faults.haveReplaced(ids, of: root, at: json, in: call.request.body) else {
                throw call.reject(RejectedEvent.replacedID(0, "customer_ids and message_id").reason)
            }
            return try decode(root, hasUnusableTime: faults.hasUnusableTime(json))
        }
        if let client = contents.client { call.request.context.client = client }
        let caller = try call.admit(contents.identifiers)
        let request = call.request
        func identifier(_ name: String) -> String? { contents.identifiers.first { $0.name == name }?.value }
        let hard = identifier(CustomerIdentifier.hardName)
        let event = EventBatch.Event(
            messageID: contents.messageID, kind: kind == .customer ? .identify : .track, userID: hard,
            anonymousID: identifier(CustomerIdentifier.cookieName)
                ?? (hard == nil ? contents.identifiers.first?.value : nil),
            name: contents.name, timestampMilliseconds: contents.timestampMilliseconds, json: json,
            isIdentifiedByContent: contents.isIdentifiedByContent)
        var change: CustomerChange?
        if !contents.identifiers.isEmpty {
            // The time is at most the time of receipt, so that a device's fast clock does not override later updates.
            change = caller.change(
                atMilliseconds: min(contents.timestampMilliseconds, request.receivedMilliseconds))
            if kind == .customer {
                change?.properties = Array((contents.properties ?? []).prefix(CustomerChanges.mostProperties))
            }
        }
        let batch = EventBatch(
            appID: call.app.id, receivedMilliseconds: request.receivedMilliseconds, body: request.body,
            events: [event], customers: change.map { [$0] } ?? [],
            proof: request.proof(dialect: "bloomreach"))
        return call.path.store(
            batch, for: request, restricted: { BloomreachAnswer.overLimit($0, request) }
        ) { result in
            switch result {
            case .success(let outcome): Self.success(outcome, contents.warnings, caller.warning)
            case .failure(let failure): BloomreachAnswer.failure(failure, request)
            }
        }
    }

    private static func success(
        _ outcome: AppendOutcome, _ warnings: [EventWarning], _ warning: AuthErrorBody?
    ) -> HTTPResponse {
        var members: [(name: String, json: [UInt8])] = [("errors", Array("[]".utf8))]
        if let list = EventWarning.list(warnings) { members.append(("warnings", list.bytes)) }
        if outcome.duplicates > 0 { members.append(("duplicate", Array("true".utf8))) }
        if let warning {
            var json: [UInt8] = []
            warning.write(to: &json)
            members.append(("auth_warning", json))
        }
        return BloomreachAnswer.success(members)
    }

    private func decode(
        _ root: JSONNode, hasUnusableTime: Bool
    ) throws(HTTPResponse) -> Contents {
        var contents = Contents()
        contents.identifiers = try call.identifiers(root)
        guard !contents.identifiers.isEmpty || kind == .campaignClick else {
            throw call.reject("At least one id should be specified.")
        }
        switch kind {
        case .customer: break
        case .event:
            contents.name = try text(root["event_type"], "event_type", longest: Self.longestType)
        case .campaignClick:
            _ = try text(root["url"], "url", longest: Self.longestURL)
            contents.name = kind.rawValue
        }
        if let properties = root["properties"], !properties.isNull {
            guard properties.kind == .object else { throw call.reject("properties must be a JSON object") }
            if properties["sdk"] != nil {
                contents.client = ClientInfo(
                    sdk: properties["sdk"], properties["sdk_version"], app: properties["app_version"])
            }
            let members = Array(properties.members)
            guard members.allSatisfy({ (1...256).contains($0.name.count) }) else {
                throw call.reject("the names of properties must have 1 to 256 bytes")
            }
            contents.properties = members.sorted { $0.name.lexicographicallyPrecedes($1.name) }
                .map { (String(decoding: $0.name, as: UTF8.self), $0.value.canonicalBytes) }
        }
        let time = BloomreachTime(
            root, isUnusable: hasUnusableTime, receivedMilliseconds: call.request.receivedMilliseconds)
        if time.isReplaced { contents.warnings.append(EventTime.warning(0)) }
        contents.timestampMilliseconds = time.milliseconds
        let given = EventIdentifier(root["message_id"])
        guard given.isValid else { throw call.reject("message_id must be \(EventIdentifier.shape)") }
        contents.messageID =
            given.text
            ?? BloomreachMessageID.make(
                root, kind: kind, identifiers: contents.identifiers, time: time,
                properties: contents.properties)
        contents.isIdentifiedByContent = given.text == nil && !contents.identifiers.isEmpty
        return contents
    }

    private func text(
        _ node: JSONNode?, _ member: String, longest: Int
    ) throws(HTTPResponse) -> String {
        guard let node, !node.isNull else { throw call.reject("Field '\(member)' is required.") }
        guard let utf8 = node.utf8, (1...longest).contains(utf8.count) else {
            throw call.reject("Field '\(member)' must be a string of 1 to \(longest) bytes.")
        }
        return String(decoding: utf8, as: UTF8.self)
    }
}
