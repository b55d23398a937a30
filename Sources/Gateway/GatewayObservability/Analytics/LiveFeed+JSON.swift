package import CountersignCore
internal import GatewayModel

extension LiveFeed.Shared {
    package var json: JSONValue {
        ["missed": .integer(Int64(missed)), "entries": .array(entries.map(\.json))]
    }

    /// Omits entries that cannot be parsed.
    package init(json: JSONValue) {
        let members = json.members ?? [:]
        if case .array(let elements)? = members["entries"] {
            entries = elements.compactMap { LiveFeed.Entry(json: $0) }
        }
        // Limits the count of another gateway, so that adding the count to `lastID` cannot overflow.
        if case .integer(let count)? = members["missed"] { missed = UInt64(min(max(0, count), 1 << 32)) }
    }
}

extension LiveFeed.Entry {
    fileprivate var json: JSONValue {
        var members: JSONObject = [
            "at": .integer(atMilliseconds), "app": .string(key.appID), "endpoint": .string(key.endpoint),
            "verdict": .string(key.verdict.rawValue), "network": .string(network),
            "request": .string(requestID),
        ]
        members["code"] = key.code.map { .integer(Int64($0.rawValue)) }
        let texts: KeyValuePairs = [
            "mode": key.enforcement?.rawValue, "sdk": key.client.sdk, "version": key.client.appVersion,
            "key": key.keyID, "user": userID, "sample": sampleID,
        ]
        for (name, text) in texts { members[name] = text.map { .string($0) } }
        return .object(members)
    }

    fileprivate init?(json: JSONValue) {
        func text(_ name: String) -> String? { json.members?[name].flatMap { String(jsonValue: $0) } }
        func number(_ name: String) -> Int64? { json.members?[name].flatMap { Int64(jsonValue: $0) } }
        guard let app = text("app"), let verdict = text("verdict").flatMap({ VerdictKind(rawValue: $0) }),
            let time = number("at")
        else { return nil }
        self.init(
            id: 0, atMilliseconds: time,
            key: VerdictKey(
                appID: app, endpoint: text("endpoint") ?? "", verdict: verdict,
                code: number("code").map { AuthErrorCode(rawValue: Int($0)) },
                enforcement: text("mode").flatMap { Enforcement(rawValue: $0) },
                client: ClientInfo(sdk: text("sdk"), appVersion: text("version")), keyID: text("key")),
            userID: text("user"), network: text("network") ?? "", requestID: text("request") ?? "",
            sampleID: text("sample"))
    }
}
