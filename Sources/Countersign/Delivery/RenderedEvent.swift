internal import Foundation

/// One event, ready to be stored.
struct RenderedEvent {
    let messageID: String
    let userID: String?
    let sessionID: String
    let body: [UInt8]
    /// When it was recorded, in seconds of `ClientClock.uptime`; nil for now.
    var uptime: TimeInterval?
}
