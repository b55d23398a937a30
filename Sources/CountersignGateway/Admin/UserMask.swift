internal import CountersignCore
internal import CountersignJOSE

/// How an answer of the admin API names the users of apps: by pseudonyms, or as they are.
struct UserMask: Sendable {
    /// The key of the pseudonyms; nil shows ids as they are.
    private let key: [UInt8]?

    static let none = UserMask(key: nil)

    init(key: [UInt8]?) {
        self.key = key
    }

    /// True when ids are not shown.
    var hides: Bool { key != nil }

    private func pseudonyms(_ appID: String) -> Pseudonyms? { key.map { Pseudonyms(key: $0, appID: appID) } }

    /// A user's name for the reader; nil when there is no user.
    func user(_ id: String?, of appID: String) -> String? {
        guard let id, let pseudonyms = pseudonyms(appID) else { return id }
        return pseudonyms.user(id)
    }

    /// An event for the reader.
    func event(_ event: StoredEvent, of appID: String) -> StoredEvent {
        guard let pseudonyms = pseudonyms(appID) else { return event }
        let body = event.bodyValue
        let mask = EventBodyMask(pseudonyms, event, body: body)
        return StoredEvent(
            sequence: event.sequence, messageID: mask.text(event.messageID), type: event.type,
            userID: event.userID.map(pseudonyms.user),
            anonymousID: event.anonymousID.map(pseudonyms.anonymous),
            name: event.name.map(mask.text), timestampMilliseconds: event.timestampMilliseconds,
            receivedMilliseconds: event.receivedMilliseconds, body: mask.masked(body).bytes)
    }

    /// The claims of a token, of which all but issuer, audience and times may say whose it is.
    func claims(_ claims: JSONValue, of appID: String) -> JSONValue {
        guard let pseudonyms = pseudonyms(appID), case .object(let members) = claims else { return claims }
        let shown = members.map { name, value -> (String, JSONValue) in
            switch (name, value) {
            case ("exp", .integer), ("nbf", .integer), ("iat", .integer), ("exp", .number), ("nbf", .number),
                ("iat", .number), (_, .null):
                (name, value)
            case ("iss", _), ("aud", _):
                (name, value == members["sub"] ? .string(EventBodyMask.nothing) : value)
            case ("sub", .string(let text)): (name, .string(pseudonyms.user(text)))
            default: (name, .string(EventBodyMask.nothing))
            }
        }
        return .object(Dictionary(uniqueKeysWithValues: shown))
    }

    /// An entry of the audit log for the reader. Its hash would tell whether a guessed user id is right, so it goes too.
    func audit(_ entry: AuditEntry) -> AuditEntry {
        guard hides else { return entry }
        var entry = entry
        entry.hash = []
        entry.previousHash = []
        if let appID = entry.appID {
            if AuditEntry.actionsOnUsers.contains(entry.action) {
                entry.target = user(entry.target, of: appID) ?? ""
            }
            entry.before = values(entry.before, of: appID)
            entry.after = values(entry.after, of: appID)
        }
        return entry
    }

    /// In an entry's values a user stands under `user`.
    private func values(_ text: String?, of appID: String) -> String? {
        guard let text,
            case .object(var members)? = try? StrictJSONParser(maximumBytes: 1 << 20).parse(
                bytes: Array(text.utf8), { $0.value }),
            case .string(let id)? = members["user"]
        else { return text }
        members["user"] = user(id, of: appID).map { .string($0) }
        return String(decoding: JSONValue.object(members).bytes, as: UTF8.self)
    }
}

extension AdminRoute.Parameter {
    /// Asks for user ids as they are.
    static let unmask = AdminRoute.Parameter("unmask", .choice(["0", "1"]))
}

extension AdminCall {
    /// How this answer names users. Who may and asks with `unmask=1` sees them as they are, which is written down.
    ///
    /// - Parameters:
    ///   - what: What is looked at, for the audit log, such as `event`.
    ///   - target: Which of it.
    ///   - appID: The app that it belongs to; nil for all.
    ///   - user: Whose, when that was asked for.
    /// - Returns: What shows them as they are, also to whoever owns the data directory; else what gives pseudonyms.
    /// - Throws: 403 for a viewer that asks for more; `storage` when it cannot be written down.
    func userMask(
        _ what: String, _ target: String, app appID: String? = nil, user: String? = nil
    ) throws -> UserMask {
        guard query("unmask") == "1" else {
            return identity.ownsData ? .none : UserMask(key: try directory.pseudonymKey())
        }
        guard identity.role >= .operator else {
            throw AdminProblem(403, "forbidden", "user ids are shown to operators and owners only")
        }
        var filter = query.filter { $0.key != "unmask" && $0.key != "user" }.mapValues {
            JSONValue.string($0)
        }
        filter["user"] = user.map { .string($0) }
        try directory.note(
            "\(what).unmask", target, app: appID, after: filter.isEmpty ? nil : .object(filter))
        return .none
    }

    /// The user that a filter means, who may be named by the pseudonym.
    ///
    /// - Parameters:
    ///   - appID: Whose users.
    ///   - candidates: Calls back with ids, until it answers true.
    /// - Returns: The user's id; the text as it stands when it is nobody's pseudonym; nil when nobody is asked for.
    /// - Throws: 422 when there are too many users to look for a pseudonym.
    func user(
        of appID: String, among candidates: ((String) -> Bool) throws -> Void
    ) throws -> String? {
        guard let text = query("user"), Pseudonyms.isPseudonym(text) else { return query("user") }
        let pseudonyms = Pseudonyms(key: try directory.pseudonymKey(), appID: appID)
        var found: String?
        var looked = 0
        try candidates { id in
            looked += 1
            if pseudonyms.user(id) == text { found = id }
            return found != nil || looked >= Self.mostCandidates
        }
        if found == nil, looked >= Self.mostCandidates {
            throw AdminProblem.invalidParameter(
                "user", "is a pseudonym, and the app has too many users to look for it; give the user id")
        }
        return found ?? text
    }

    /// How many users are looked at for a pseudonym: about half a second.
    private static var mostCandidates: Int { 100_000 }
}
