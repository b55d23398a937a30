public import Foundation

/// An event that a server will never take as it is.
public struct QuarantinedEvent: Sendable, Hashable {
    /// The event's message id.
    public let messageID: String
    /// The user; nil if no user was set.
    public let userID: String?
    /// Why, as a stable word such as `event_too_large`.
    public let code: String
    /// Why, in the server's words.
    public let reason: String
    /// When it was set aside, by the device's clock.
    public let date: Date
    /// The event as JSON.
    public let body: [UInt8]
}
