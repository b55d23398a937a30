internal import CountersignCore
internal import CountersignJOSE
internal import GatewayModel
internal import GatewayStorage

/// How an answer of the admin API names the users of apps: by pseudonyms, or as they are.
struct UserMask: Sendable {
    /// The key of the pseudonyms; nil shows ids as they are.
    let key: [UInt8]?

    static let none = UserMask(key: nil)

    /// True when ids are not shown.
    var hides: Bool { key != nil }

    private func pseudonyms(_ appID: String) -> Pseudonyms? { key.map { Pseudonyms(key: $0, appID: appID) } }

    /// A user's name for the reader; nil when there is no user.
    func user(_ id: String?, of appID: String) -> String? {
        guard let id, let pseudonyms = pseudonyms(appID) else { return id }
        return pseudonyms.user(id)
    }

    /// The reader's name for an id of somebody who has not signed in, or of a device.
    func anonymous(_ id: String, of appID: String) -> String {
        pseudonyms(appID)?.anonymous(id) ?? id
    }

    /// How the names of a customer's ids and properties are shown.
    func names(_ record: CustomerRecord, of appID: String) -> (String) -> String {
        guard let pseudonyms = pseudonyms(appID) else { return { $0 } }
        return EventBodyMask(pseudonyms, record.identifiers).text
    }

    /// An event for the reader.
    func event(_ event: StoredEvent, of appID: String) -> StoredEvent {
        guard let pseudonyms = pseudonyms(appID) else { return event }
        let body = event.bodyValue
        let mask = EventBodyMask(pseudonyms, event, body: body)
        // Clients choose these, so they may name the user.
        let proof = event.proof.map { proof in
            var shown = proof
            shown.requestID = mask.text(proof.requestID)
            shown.tokenID = proof.tokenID.map { _ in EventBodyMask.nothing }
            return shown
        }
        return StoredEvent(
            sequence: event.sequence, messageID: mask.text(event.messageID), type: event.type,
            userID: event.userID.map(pseudonyms.user),
            anonymousID: event.anonymousID.map(pseudonyms.anonymous),
            name: event.name.map(mask.text), timestampMilliseconds: event.timestampMilliseconds,
            receivedMilliseconds: event.receivedMilliseconds, proof: proof,
            body: mask.masked(body).bytes)
    }

    /// The header of a user's token. Of what else than these members holds, nobody knows whether it names the user.
    func header(_ header: JSONValue, user: String?) -> JSONValue {
        guard hides, case .object(let members) = header else { return header }
        let shown = members.map { name, value in
            let isKnown = ["alg", "typ", "kid", "cty"].contains(name) && !Self.names(value, [user])
            return (name, isKnown ? value : .string(EventBodyMask.nothing))
        }
        return .object(Dictionary(uniqueKeysWithValues: shown))
    }

    /// The claims of a user's token, of which all but issuer, audience and times may say whose it is.
    func claims(_ claims: JSONValue, user: String?, of appID: String) -> JSONValue {
        guard let pseudonyms = pseudonyms(appID), case .object(let members) = claims else { return claims }
        var users = [user]
        if case .string(let subject)? = members["sub"] { users.append(subject) }
        let shown = members.map { name, value -> (String, JSONValue) in
            switch (name, value) {
            case ("exp", .integer), ("nbf", .integer), ("iat", .integer), ("exp", .number), ("nbf", .number),
                ("iat", .number), (_, .null):
                (name, value)
            case ("iss", _), ("aud", _):
                (name, Self.names(value, users) ? .string(EventBodyMask.nothing) : value)
            case ("sub", .string(let text)): (name, .string(pseudonyms.user(text)))
            default: (name, .string(EventBodyMask.nothing))
            }
        }
        return .object(Dictionary(uniqueKeysWithValues: shown))
    }

    /// Whether one of these users stands in a text, or in a text of a list; anything but text counts as naming them.
    private static func names(_ value: JSONValue, _ users: [String?]) -> Bool {
        switch value {
        case .string(let text):
            let text = text.lowercased()
            return users.contains { user in
                guard let user = user?.lowercased(), !user.isEmpty else { return false }
                return text.contains(user)
            }
        case .array(let elements):
            return elements.contains { names($0, users) }
        default:
            return true
        }
    }

    /// An App Inbox message for the reader: one for a single user names that user, perhaps in its text too.
    func message(_ message: [String: JSONValue], of appID: String) -> [String: JSONValue] {
        guard let pseudonyms = pseudonyms(appID), let recipient = Self.recipient(of: message) else {
            return message
        }
        let mask = EventBodyMask(pseudonyms, user: recipient.value, body: .object(message))
        var shown = mask.masked(message)
        shown["recipient"] = .object([recipient.name: .string(pseudonyms.user(recipient.value))])
        return shown
    }

    /// The one user whom a message is for; nil when it is for everybody, or is no message.
    private static func recipient(of message: [String: JSONValue]) -> CustomerIdentifier? {
        guard case .object(let ids)? = message["recipient"], ids.count == 1,
            let (name, value) = ids.first, case .string(let id) = value
        else { return nil }
        return CustomerIdentifier(name: name, value: id)
    }

    /// An entry of the audit log for the reader. Its hash would tell whether a guessed user id is right, so it goes too.
    func audit(_ entry: AuditEntry) -> AuditEntry {
        guard hides else { return entry }
        var entry = entry
        entry.hash = []
        entry.previousHash = []
        if AuditEntry.actionsOnUsers.contains(entry.action) { entry.target = named(entry.target, entry) }
        for text in [entry.before, entry.after] {
            guard let message = Self.members(text), let recipient = Self.recipient(of: message),
                let pseudonyms = entry.appID.flatMap({ self.pseudonyms($0) })
            else { continue }
            entry.target = EventBodyMask(pseudonyms, user: recipient.value, body: .object(message))
                .text(entry.target)
        }
        entry.before = values(entry.before, entry)
        entry.after = values(entry.after, entry)
        return entry
    }

    /// A user that an entry names. Without an app there is no pseudonym.
    private func named(_ id: String, _ entry: AuditEntry) -> String {
        entry.appID.flatMap { user(id, of: $0) } ?? EventBodyMask.nothing
    }

    /// In an entry's values a user stands under `user`, the one whom a message is for under `recipient`. What somebody
    /// searched for when looking at ids may be an id, whatever it was searched in.
    private func values(_ text: String?, _ entry: AuditEntry) -> String? {
        guard var members = Self.members(text) else { return text }
        if let appID = entry.appID { members = message(members, of: appID) }
        if entry.action.hasSuffix(".unmask") {
            for name in members.keys where !AuditEntry.shownFilters.contains(name) {
                if name != "user" { members[name] = .string(EventBodyMask.nothing) }
            }
        }
        if case .string(let id)? = members["user"] { members["user"] = .string(named(id, entry)) }
        return String(decoding: JSONValue.object(members).bytes, as: UTF8.self)
    }

    private static func members(_ text: String?) -> [String: JSONValue]? {
        text.flatMap { text in
            try? StrictJSONParser(maximumBytes: 1 << 21, maximumNameBytes: 1_024).parse(
                bytes: Array(text.utf8)
            ) { $0.value }.members
        }
    }
}

extension AdminOperation.Parameter {
    /// Asks for user ids as they are.
    static let unmask = AdminOperation.Parameter("unmask", .choice(["0", "1"]))
}

extension AdminCall {
    /// How the answer to a change names users: as one that asks for no ids.
    func readerMask() throws -> UserMask {
        identity.ownsData ? .none : UserMask(key: try directory.pseudonymKey())
    }

    /// How this answer names users. Who may and asks with `unmask=1` sees them as they are, which is written down.
    /// Returns what shows them as they are, also to whoever owns the data directory; else what gives pseudonyms. Throws
    /// 403 for a viewer that asks for more; `storage` when it cannot be written down.
    func userMask(
        _ what: String, _ target: String, app appID: String? = nil, user: String? = nil
    ) throws -> UserMask {
        guard query("unmask") == "1" else { return try readerMask() }
        guard identity.role >= .operator else {
            throw AdminProblem(403, "forbidden", "user ids are shown to operators and owners only")
        }
        var filter = query.filter { $0.key != "unmask" && $0.key != "user" }.mapValues {
            JSONValue.string($0)
        }
        filter["user"] = user.map { .string($0) }
        try directory.auditLog.note(
            "\(what).unmask", target, app: appID, after: filter.isEmpty ? nil : .object(filter))
        return .none
    }

    /// The user that a filter means, who may be named by the pseudonym. Returns the user's id; the text as it stands
    /// when it is nobody's pseudonym; nil when nobody is asked for. Throws 503 while there are more users to look at,
    /// 422 when they are too many.
    func user(
        of appID: String, in index: PseudonymIndex,
        among candidates: (_ last: String, _ isEnough: (String) -> Bool) throws -> Void
    ) throws -> String? {
        try query("user").map { try user(named: $0, of: appID, in: index, among: candidates) }
    }

    /// The same, named elsewhere.
    func user(
        named text: String, of appID: String, in index: PseudonymIndex,
        among candidates: (_ last: String, _ isEnough: (String) -> Bool) throws -> Void
    ) throws -> String {
        guard Pseudonyms.isPseudonym(text) else { return text }
        let pseudonyms = Pseudonyms(key: try directory.pseudonymKey(), appID: appID)
        return try index.user(text, pseudonyms, of: appID, at: nowMilliseconds, among: candidates) ?? text
    }
}
