internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

/// Shows users of apps under pseudonyms to viewers, and as stored to operators and owners.
struct UserMask: Sendable {
    /// The key of the pseudonyms; nil for operators and owners.
    let key: [UInt8]?

    static let none = UserMask(key: nil)

    var hides: Bool { key != nil }

    private func pseudonyms(_ appID: String) -> Pseudonyms? { key.map { Pseudonyms(key: $0, appID: appID) } }

    func user(_ id: String?, of appID: String) -> String? {
        guard let id, let pseudonyms = pseudonyms(appID) else { return id }
        return pseudonyms.user(id)
    }

    /// Text that a client chose, such as a request id, or that has paths of files; nil for a viewer.
    func clientText(_ text: String?) -> String? { hides ? nil : text }

    /// A URL of a destination. A viewer sees its origin and the start of its hash, because its path or query is
    /// often its only secret. A viewer sees no paths of files either.
    func destination(_ text: String) -> String { hides ? OutgoingURL.audited(text) : text }

    func filter(name: String?) -> String? { hides ? name.map { _ in Self.hidden } : name }

    func event(_ event: StoredEvent, of appID: String) -> StoredEvent {
        guard let pseudonyms = pseudonyms(appID) else { return event }
        return event.withoutContent(
            userID: event.userID.map(pseudonyms.user),
            anonymousID: event.anonymousID.map(pseudonyms.anonymous))
    }
}

extension AdminCall {
    func userMask() throws -> UserMask {
        seesContent ? .none : UserMask(key: try directory.pseudonymKey())
    }

    private var seesContent: Bool { identity.role >= .operator }

    /// Throws 403 for a viewer.
    func checkSeesContent(_ what: String) throws {
        guard !seesContent else { return }
        throw AdminProblem(403, "forbidden", "\(what) needs the role operator")
    }

    /// Writes to the audit log that stored ids and contents were read, except by a local command on the storage.
    func noteReading(
        _ action: String, _ target: String, app appID: String? = nil, _ details: JSONObject = [:]
    ) throws {
        guard !identity.ownsData else { return }
        try directory.auditLog.note(
            action, target, app: appID, after: details.isEmpty ? nil : .object(details))
    }

    /// The id of the user in the query, which may have a pseudonym instead. An unknown pseudonym is returned as it is.
    /// A pseudonym is resolved by a search among the app's users. Throws 503 until that search is complete, and 422
    /// if there are too many users. Throws 403 for an id from a viewer: the response would reveal its pseudonym.
    func user(
        of appID: String, in index: PseudonymIndex,
        among candidates: (_ last: String, _ isEnough: (String) -> Bool) throws -> Void
    ) throws -> String? {
        try query("user").map { try user(named: $0, of: appID, in: index, among: candidates) }
    }

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
