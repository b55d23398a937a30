public import CountersignCore
public import Foundation

/// A message of the App Inbox, and for whom it was fetched.
///
/// Read leniently: all that a server leaves out has a default, and what it adds is in `content` or ignored. A message
/// without an id is skipped.
public struct AppInboxMessage: Sendable, Hashable {
    /// Names the message within the project.
    public let id: String
    /// `push`, `html`, or a word of a newer server; `unknown` if there is none.
    public let type: String
    /// Whether it was read, on this or another device.
    public internal(set) var isRead: Bool
    /// When it was made.
    public let createdAt: Date
    /// When it is no longer to be shown; nil if it stays.
    public let expiresAt: Date?
    /// What it shows, as the server sent it.
    public let content: JSONObject
    /// The ids that it was fetched for: it is marked as read for these, whoever uses the app by then.
    public let customerIDs: [String: String]
    /// The sync token that it came with; nil if there was none, and then it cannot be marked as read.
    public let syncToken: String?

    /// The title.
    public var title: String? { content["title"]?.string }
    /// The text of a push message, or the HTML.
    public var message: String? { content["message"]?.string }
    /// The line below the title.
    public var preHeader: String? { content["pre_header"]?.string }
    /// Where its image is.
    public var imageURL: String? { content["image"]?.string }

    init?(_ value: JSONValue, customerIDs: [String: String], syncToken: String?) {
        guard let id = value["id"]?.string, !id.isEmpty else { return nil }
        self.id = id
        type = value["type"]?.string ?? "unknown"
        isRead = value["is_read"]?.bool ?? false
        createdAt = Date(timeIntervalSince1970: value["create_time"]?.numeric ?? 0)
        expiresAt = value["expire_time"]?.numeric.map(Date.init(timeIntervalSince1970:))
        content = value["content"]?.object ?? [:]
        self.customerIDs = customerIDs
        self.syncToken = syncToken
    }

    /// As the server sends it; with its ids and sync token, for the cache.
    package var json: JSONValue {
        var members: JSONObject = [
            "id": .string(id), "type": .string(type), "is_read": .bool(isRead),
            "create_time": .number(createdAt.timeIntervalSince1970), "content": .object(content),
            "customer_ids": .object(JSONObject(customerIDs.mapValues { .string($0) })),
        ]
        if let expiresAt { members["expire_time"] = .number(expiresAt.timeIntervalSince1970) }
        if let syncToken { members["sync_token"] = .string(syncToken) }
        return .object(members)
    }

    init?(cached value: JSONValue) {
        self.init(
            value, customerIDs: Dictionary(value["customer_ids"]?.object?.compactMapValues(\.string) ?? [:]),
            syncToken: value["sync_token"]?.string)
    }
}
