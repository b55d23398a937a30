public import Foundation

/// A gateway's delivery to a webhook. Created only for a body with a valid signature.
public struct WebhookDelivery: Sendable {
    /// The delivery's ID, the same for each retry. Store recent IDs to ignore repeated deliveries.
    public let id: String
    /// The time of signing, in whole seconds.
    public let signed: Date
    /// The type: `events`, `test`, or the kind of an alert.
    public let type: String
    /// The app's id; nil for a test.
    public let app: String?
    /// The events in storage order; empty unless `type` is `events`.
    public let events: [ConsumedEvent]
    /// Whether an operator has requested a repeated delivery of these events.
    public let isReplay: Bool
    /// The body's bytes as received.
    public let body: Data
}
