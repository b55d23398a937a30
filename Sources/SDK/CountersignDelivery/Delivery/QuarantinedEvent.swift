public import Foundation

/// An event in quarantine, because a server rejected it or because it is damaged or too large.
public struct QuarantinedEvent: Sendable, Hashable {
    /// The event's message id.
    public let messageID: String
    /// The user; nil if no user was set.
    public let userID: String?
    /// The code of the reason, such as `event_too_large`.
    public let code: String
    /// The reason as text, from the server or the SDK.
    public let reason: String
    /// The time at which the SDK moved the event to quarantine, by the device's clock.
    public let date: Date
    /// The event as JSON, or any bytes if the event is damaged.
    public let body: [UInt8]
}
