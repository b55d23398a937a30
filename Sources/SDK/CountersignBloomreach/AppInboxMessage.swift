public import CountersignCore
public import Foundation

/// A message of the App Inbox, with the customer it was fetched for.
///
/// Missing members have defaults, and unknown ones are in `content` or ignored. A message without an ID is skipped.
public struct AppInboxMessage: Sendable, Hashable {
    /// The message's ID within the project.
    public let id: String
    /// `push`, `html`, or a type of a newer server; `unknown` if missing.
    public let type: String
    /// Whether the message was read, on this or another device.
    public internal(set) var isRead: Bool
    /// The creation date.
    public let createdAt: Date
    /// The expiry date; nil for a message that does not expire.
    public let expiresAt: Date?
    /// The content as the server sent it.
    public let content: JSONObject
    /// The customer IDs of the request that fetched the message. `markAsRead` sends them, even if the IDs have changed.
    public let customerIDs: [String: String]
    /// The sync token of the response with the message. Without it (nil), the message cannot be marked as read.
    public let syncToken: String?
    let projectToken: String

    /// The title.
    public var title: String? { content["title"]?.string }
    /// The text of a push message, or the HTML.
    public var message: String? { content["message"]?.string }
    /// The line below the title.
    public var preHeader: String? { content["pre_header"]?.string }
    /// The URL of the image.
    public var imageURL: String? { content["image"]?.string }

    init?(_ value: JSONValue, customerIDs: [String: String], syncToken: String?, projectToken: String) {
        guard let id = value["id"]?.string, !id.isEmpty else { return nil }
        self.id = id
        type = value["type"]?.string ?? "unknown"
        isRead = value["is_read"]?.bool ?? false
        createdAt = Date(timeIntervalSince1970: value["create_time"]?.numeric ?? 0)
        expiresAt = value["expire_time"]?.numeric.map(Date.init(timeIntervalSince1970:))
        content = value["content"]?.object ?? [:]
        self.customerIDs = customerIDs
        self.syncToken = syncToken
        self.projectToken = projectToken
    }

    /// In the server's format, with the customer IDs and the sync token, for the cache.
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

    init?(cached value: JSONValue, of projectToken: String) {
        self.init(
            value, customerIDs: Dictionary(value["customer_ids"]?.object?.compactMapValues(\.string) ?? [:]),
            syncToken: value["sync_token"]?.string, projectToken: projectToken)
    }
}
