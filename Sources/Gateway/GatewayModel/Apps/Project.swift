package import CountersignCore
package import CountersignJOSE
internal import CountersignJSON

/// The settings and contents of an app for clients of the Bloomreach dialect.
package struct Project: Sendable {
    package var settings: ProjectSettings
    package var customerTokenKeys: [CustomerTokenKey] = []
    /// In the order of insertion, like `consentCategories`.
    package var inAppMessages: [ProjectItem] = []
    package var consentCategories: [ProjectItem] = []
    package var inbox = InboxContents()

    package init(settings: ProjectSettings) {
        self.settings = settings
    }

    package func items(_ kind: ProjectItem.Kind) -> [ProjectItem] {
        switch kind {
        case .inAppMessage: inAppMessages
        case .consentCategory: consentCategories
        }
    }
}

package struct ProjectItem: Sendable {
    package enum Kind: String, Sendable, TextEnum {
        case inAppMessage = "in_app_message"
        case consentCategory = "consent_category"
    }

    package let id: String
    package let members: JSONObject

    package var json: JSONValue { .object(members) }

    package init(id: String, members: JSONObject) {
        self.id = id
        self.members = members
    }
}

package struct InboxMessage: Sendable {
    package let id: String
    /// Increases with every new or changed message.
    package let revision: Int64
    /// The customer that gets the message; nil for all customers.
    package let recipient: CustomerIdentifier?
    /// `html` or `push`.
    package let type: String
    /// The content as JSON.
    package let content: [UInt8]
    package let createdMilliseconds: Int64
    /// Milliseconds since 1970 when the message expires; nil when it does not.
    package let expiresMilliseconds: Int64?

    package init(
        id: String, revision: Int64, recipient: CustomerIdentifier?, type: String, content: [UInt8],
        createdMilliseconds: Int64, expiresMilliseconds: Int64?
    ) {
        self.id = id
        self.revision = revision
        self.recipient = recipient
        self.type = type
        self.content = content
        self.createdMilliseconds = createdMilliseconds
        self.expiresMilliseconds = expiresMilliseconds
    }
}

extension InboxMessage {
    package var members: JSONObject {
        var members: JSONObject = [
            "id": .string(id), "type": .string(type),
            "content": (try? StrictJSONParser(maximumBytes: content.count).parse(bytes: content) { $0.value })
                ?? .null,
        ]
        if let recipient { members["recipient"] = .object([recipient.name: .string(recipient.value)]) }
        if let expiresMilliseconds {
            members["expires"] = .string(RFC3339.text(milliseconds: expiresMilliseconds))
        }
        return members
    }

    package var json: JSONValue { .object(members) }
}

/// The App Inbox messages of a project, indexed by recipient.
package struct InboxContents: Sendable {
    /// Increases when the operator invalidates all sync tokens.
    package var epoch: Int64 = 1
    package private(set) var revision: Int64 = 0
    private(set) var forAll: [InboxMessage] = []
    private(set) var byRecipient: [CustomerIdentifier: [InboxMessage]] = [:]
    /// Whether a message is for one `registered` id, by message id.
    private var ids: BytewiseDictionary<Bool> = [:]

    package mutating func add(_ message: InboxMessage) {
        ids[message.id] = message.recipient?.isHard == true
        revision = max(revision, message.revision)
        if let recipient = message.recipient {
            byRecipient[recipient, default: []].append(message)
        } else {
            forAll.append(message)
        }
    }

    package var all: [InboxMessage] {
        (forAll + byRecipient.values.flatMap { $0 }).sorted { $0.revision > $1.revision }
    }

    /// Whether a message has this id. Without `forHardIDs`, messages for one `registered` id do not count.
    package func contains(_ id: String, forHardIDs: Bool) -> Bool {
        ids[id].map { forHardIDs || !$0 } ?? false
    }

    /// Unexpired messages for all customers and for customers with any of these ids, newest first.
    package func messages(for identifiers: [CustomerIdentifier], atMilliseconds now: Int64) -> [InboxMessage]
    {
        let all = forAll + identifiers.flatMap { byRecipient[$0] ?? [] }
        return all.filter { message in message.expiresMilliseconds.map { $0 > now } ?? true }
            .sorted { ($0.createdMilliseconds, $0.revision) > ($1.createdMilliseconds, $1.revision) }
    }
}
