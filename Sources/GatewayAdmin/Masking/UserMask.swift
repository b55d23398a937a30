internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

/// How an answer of the admin API names the users of apps: a viewer sees pseudonyms, operators and owners what is stored.
struct UserMask: Sendable {
    /// The key of the pseudonyms; nil shows what is stored.
    let key: [UInt8]?

    static let none = UserMask(key: nil)

    /// True for a viewer, who sees no ids and nothing that a client wrote.
    var hides: Bool { key != nil }

    private func pseudonyms(_ appID: String) -> Pseudonyms? { key.map { Pseudonyms(key: $0, appID: appID) } }

    /// A user's name for the reader; nil when there is no user.
    func user(_ id: String?, of appID: String) -> String? {
        guard let id, let pseudonyms = pseudonyms(appID) else { return id }
        return pseudonyms.user(id)
    }

    /// Text that a client chose, such as the id of a request; nil for a viewer.
    func clientText(_ text: String?) -> String? { hides ? nil : text }

    /// An event for the reader.
    func event(_ event: StoredEvent, of appID: String) -> StoredEvent {
        guard let pseudonyms = pseudonyms(appID) else { return event }
        return event.withoutContent(
            userID: event.userID.map(pseudonyms.user),
            anonymousID: event.anonymousID.map(pseudonyms.anonymous))
    }
}

extension AdminCall {
    /// How the answer names users.
    func userMask() throws -> UserMask {
        seesContent ? .none : UserMask(key: try directory.pseudonymKey())
    }

    /// True for operators and owners.
    private var seesContent: Bool { identity.role >= .operator }

    /// Refuses viewers what only operators and owners see. Throws 403.
    func checkSeesContent(_ what: String) throws {
        guard !seesContent else { return }
        throw AdminProblem(403, "forbidden", "\(what) needs the role operator")
    }

    /// Writes to the audit log that stored ids and contents were read, unless by the owner of the data directory.
    func noteReading(
        _ action: String, _ target: String, app appID: String? = nil, _ details: JSONObject = [:]
    ) throws {
        guard !identity.ownsData else { return }
        try directory.auditLog.note(
            action, target, app: appID, after: details.isEmpty ? nil : .object(details))
    }

    /// The user that a filter means, who may be named by the pseudonym. Returns the user's id; the text as it stands
    /// when it is nobody's pseudonym; nil when nobody is asked for. Throws 503 while there are more users to look at,
    /// 422 when they are too many, 403 for a viewer that names an id: the answer would say whose pseudonym is whose.
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
        guard Pseudonyms.isPseudonym(text) else {
            try checkSeesContent("a user id, other than a pseudonym,")
            return text
        }
        let pseudonyms = Pseudonyms(key: try directory.pseudonymKey(), appID: appID)
        return try index.user(text, pseudonyms, of: appID, at: nowMilliseconds, among: candidates) ?? text
    }
}
