package import CountersignCore
internal import CountersignJOSE

/// What an app is to clients of the Bloomreach dialect.
package struct Project: Sendable {
    package var settings: ProjectSettings
    package var customerTokenKeys: [CustomerTokenKey] = []
    /// All in the order in which they were added.
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

/// A private key whose holder may sign customer tokens with HS256.
package struct CustomerTokenKey: Sendable {
    /// What stands in `kid`.
    package let id: String
    package let secret: [UInt8]

    package init(id: String, secret: [UInt8]) {
        self.id = id
        self.secret = secret
    }
}

/// Something that is answered as the operator wrote it.
package struct ProjectItem: Sendable {
    /// What kind of thing it is.
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

/// An App Inbox message as kept.
package struct InboxMessage: Sendable {
    package let id: String
    /// Counts up over all messages and all changes to them.
    package let revision: Int64
    /// Who gets it; nil for everybody.
    package let recipient: CustomerIdentifier?
    /// `html` or `push`.
    package let type: String
    /// The content as JSON.
    package let content: [UInt8]
    package let createdMilliseconds: Int64
    /// Milliseconds since 1970 from which on it is not shown; nil when it stays.
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
    /// The message as operators write it.
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

/// The App Inbox messages of a project, found by who gets them.
package struct InboxContents: Sendable {
    /// Rises when the operator ends all sync tokens.
    package var epoch: Int64 = 1
    /// The newest revision.
    package private(set) var revision: Int64 = 0
    private(set) var forEverybody: [InboxMessage] = []
    private(set) var byRecipient: [CustomerIdentifier: [InboxMessage]] = [:]
    private var ids: BytewiseSet = []

    package mutating func add(_ message: InboxMessage) {
        ids.insert(message.id)
        revision = max(revision, message.revision)
        if let recipient = message.recipient {
            byRecipient[recipient, default: []].append(message)
        } else {
            forEverybody.append(message)
        }
    }

    /// Every message, the newest change first.
    package var all: [InboxMessage] {
        (forEverybody + byRecipient.values.flatMap { $0 }).sorted { $0.revision > $1.revision }
    }

    /// True when there is a message with this id.
    package func contains(_ id: String) -> Bool { ids.contains(id) }

    /// What these ids may see at this time, newest first.
    package func messages(for identifiers: [CustomerIdentifier], atMilliseconds now: Int64) -> [InboxMessage]
    {
        let all = forEverybody + identifiers.flatMap { byRecipient[$0] ?? [] }
        return all.filter { message in message.expiresMilliseconds.map { $0 > now } ?? true }
            .sorted { ($0.createdMilliseconds, $0.revision) > ($1.createdMilliseconds, $1.revision) }
    }
}
