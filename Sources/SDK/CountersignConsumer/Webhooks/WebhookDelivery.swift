public import Foundation

/// What a gateway has delivered to a webhook. There is one only for a body whose signature is good.
public struct WebhookDelivery: Sendable {
    /// The same when the same delivery is tried again: who remembers the last ids drops what they have had.
    public let id: String
    /// When it was signed, to the second.
    public let signed: Date
    /// What it is: `events`, `test`, or the kind of an alert.
    public let type: String
    /// The app's id; nil for a test.
    public let app: String?
    /// The events in the order of storing; none unless `type` is `events`.
    public let events: [ConsumedEvent]
    /// True if they were delivered before and an operator has asked for them again.
    public let isReplay: Bool
    /// The body as it came.
    public let body: Data
}
