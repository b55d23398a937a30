public import Foundation

/// An event that a server will never accept.
public struct QuarantinedEvent: Sendable, Hashable {
    /// The event's message id.
    public let messageID: String
    /// The user; nil if no user was set.
    public let userID: String?
    /// The code of the reason, such as `event_too_large`.
    public let code: String
    /// The reason in the server's words.
    public let reason: String
    /// The time at which it was moved to quarantine, by the device's clock.
    public let date: Date
    /// The event as JSON.
    public let body: [UInt8]
}
