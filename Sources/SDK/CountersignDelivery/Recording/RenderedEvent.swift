internal import Foundation

/// One event, ready to be stored.
struct RenderedEvent {
    let messageID: String
    let userID: String?
    let sessionID: String
    let body: [UInt8]
    /// When it was recorded, in seconds of `ClientClock.uptime`; nil for now.
    var uptime: TimeInterval?
    /// The device id in `body` if it was made before the queue file could be asked for the device's real one, which then
    /// replaces it (``withDeviceID(_:)``). Nil if `body` has the real one, or none.
    var provisionalID: String?

    /// The event with the device's real id in place of the provisional one, which is random and so stands nowhere else.
    func withDeviceID(_ deviceID: String) -> RenderedEvent {
        guard let provisionalID, provisionalID != deviceID else { return self }
        let old = Array(provisionalID.utf8)
        var body: [UInt8] = []
        body.reserveCapacity(self.body.count)
        var rest = self.body[...]
        while let byte = rest.first {
            if byte == old.first, rest.starts(with: old) {
                body += deviceID.utf8
                rest = rest.dropFirst(old.count)
            } else {
                body.append(byte)
                rest = rest.dropFirst()
            }
        }
        return RenderedEvent(
            messageID: messageID, userID: userID, sessionID: sessionID, body: body, uptime: uptime)
    }
}
