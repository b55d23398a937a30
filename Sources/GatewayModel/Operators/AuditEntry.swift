internal import CountersignCore
internal import CountersignJOSE

/// One change, as the audit log keeps it.
package struct AuditEntry: Sendable {
    /// Counts up from 1.
    package var seq: Int64
    package var atMilliseconds: Int64
    package var actor: String
    package var role: String
    /// What was done, such as `key.add`.
    package var action: String
    /// What it was done to, such as a key's id.
    package var target: String
    /// The app that it belongs to; nil for none.
    package var appID: String?
    /// The values before, as JSON; nil when there were none. Never holds a secret.
    package var before: String?
    /// The values after it, as JSON; nil when there are none.
    package var after: String?
    /// The hash of the entry before.
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

    /// What is done to a user of an app, who is the target.
    package static let actionsOnUsers: Set = ["session.revoke_user"]

    /// Actions whose target may be the id of a message, which operators choose and which may name its recipient.
    package static let actionsOnMessages: Set = ["project.item.put", "project.item.delete", "item.unmask"]

    /// What the first entry has instead of the hash of one before it.
    package static let root = [UInt8](repeating: 0, count: 32)

    /// SHA-256 of the previous hash and everything else in the entry, as JSON.
    package var computedHash: [UInt8] {
        func optional(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
        let content: JSONValue = .array([
            .integer(seq), .integer(atMilliseconds), .string(actor), .string(role), .string(action),
            .string(target), optional(appID), optional(before), optional(after),
        ])
        return SHA256.digest(previousHash + content.bytes)
    }
}
