internal import CountersignCore
internal import CountersignCrypto

package struct AuditEntry: Sendable {
    package var seq: Int64
    package var atMilliseconds: Int64
    package var actor: String
    package var role: String
    /// The operation, such as `key.add`.
    package var action: String
    package var target: String
    package var appID: String?
    /// The old values as JSON, if any. Never contains a secret.
    package var before: String?
    /// The new values as JSON, if any. Never contains a secret.
    package var after: String?
    package var previousHash: [UInt8]
    package var hash: [UInt8]

    package init(
        seq: Int64, atMilliseconds: Int64, actor: String, role: String, action: String, target: String,
        appID: String? = nil, before: String? = nil, after: String? = nil, previousHash: [UInt8],
        hash: [UInt8]
    ) {
        self.seq = seq
        self.atMilliseconds = atMilliseconds
        self.actor = actor
        self.role = role
        self.action = action
        self.target = target
        self.appID = appID
        self.before = before
        self.after = after
        self.previousHash = previousHash
        self.hash = hash
    }

    /// The kind of an entry's target, which determines the details shown to viewers.
    package enum Target: Sendable {
        /// A target that viewers may see: a configured object, a session, or a user id stored as a pseudonym.
        case operators
        case user
        /// An App Inbox message, which may be for one user.
        case message
        case unknown
    }

    package var subject: Target {
        if action == "session.revoke_user" || action.hasPrefix("restriction.") { return .user }
        if action == "item.unmask" { return .message }
        if action.hasPrefix("project.item.") {
            return target.hasPrefix("inbox_message/") ? .message : .operators
        }
        return Self.knownNouns.contains(action.split(separator: ".").first.map { String($0) } ?? "")
            ? .operators : .unknown
    }

    private static let knownNouns: BytewiseSet = [
        "app", "audit", "backup", "client", "consumer", "customer", "enforcement", "event", "files", "key",
        "key_source", "policy", "project", "rules", "sample", "second_factor", "session", "setup",
        "sign_in_rules",
        "signing_key", "sink", "stream", "token", "tokens", "user", "webhook", "write_key",
    ]

    package static let root = [UInt8](repeating: 0, count: 32)

    /// SHA-256 of the previous hash and of the other fields as JSON.
    package var computedHash: [UInt8] {
        let content: JSONValue = .array([
            .integer(seq), .integer(atMilliseconds), .string(actor), .string(role), .string(action),
            .string(target), appID.jsonValue, before.jsonValue, after.jsonValue,
        ])
        return SHA256.digest(previousHash + content.bytes)
    }
}
