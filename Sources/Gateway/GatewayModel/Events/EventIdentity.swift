/// The app, sender and message id of an event, which together make it unique.
package struct EventIdentity: Sendable {
    package let appID: String
    package let sender: EventSender
    package let messageID: String

    package init(appID: String, sender: EventSender, messageID: String) {
        self.appID = appID
        self.sender = sender
        self.messageID = messageID
    }

    package init(_ event: EventBatch.Event, in appID: String) {
        self.init(
            appID: appID,
            sender: EventSender(
                named: event.sender, userID: event.userID, anonymousID: event.anonymousID),
            messageID: event.messageID)
    }
}

/// The sender of an event: its user or, without one, its device.
package enum EventSender: Sendable {
    /// The sender of an event whose message id was made from its content (``EventBatch/Event/sender``).
    case named(String)
    case user(String)
    case device(String)
    case unknown

    /// `name` is ``EventBatch/Event/sender``, which SQLite and PostgreSQL store in a column of the event.
    package init(named name: String?, userID: String?, anonymousID: String?) {
        self =
            name.map { .named($0) } ?? userID.map { .user($0) } ?? anonymousID.map { .device($0) } ?? .unknown
    }

    /// The sender's name if an event was stored without a user and its message id was made from its content.
    package static let anonymousContent = "content"

    package var parts: (prefix: StaticString, id: String) {
        switch self {
        case .named(let name): ("", name)
        case .user(let id): ("user ", id)
        case .device(let id): ("device ", id)
        case .unknown: ("", "")
        }
    }

    /// Identifies the sender in SQLite and PostgreSQL. Must never change, because duplicates are found by this text.
    package var text: String {
        let (prefix, id) = parts
        return "\(prefix)" + id
    }
}

extension EventBatch.Event {
    /// The name of the sender of an event whose message id was made from its content and its device; nil for other
    /// events. The names of two users differ, so equal content from two users is stored as two events.
    package var sender: String? {
        isIdentifiedByContent ? userID.map { "content " + $0 } ?? EventSender.anonymousContent : nil
    }
}
