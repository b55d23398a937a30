internal import CountersignCore

/// What an operator allows and keeps for an app beside its tokens.
public struct AppRules: Sendable, Equatable {
    /// Web pages that may call the app, such as `https://shop.example`; `*` is every page. Empty: none.
    public var origins: [String] = []
    /// Events older than this many days are deleted; nil keeps them.
    public var retentionDays: Int?
    /// The oldest events are deleted while the app's events have more bytes than this; nil keeps them.
    public var retentionBytes: Int?

    /// No page, and everything is kept.
    public init() {}
}

extension AppRules {
    /// The rules as the audit log and the admin API have them.
    var json: JSONValue {
        [
            "origins": .array(origins.map { .string($0) }),
            "retention_days": retentionDays.map { .integer(Int64($0)) } ?? .null,
            "retention_bytes": retentionBytes.map { .integer(Int64($0)) } ?? .null,
        ]
    }
}
