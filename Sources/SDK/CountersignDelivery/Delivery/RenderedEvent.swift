internal import Foundation

/// An event in the format of the queue: a record of the write-ahead log.
struct RenderedEvent {
    /// 0 until it is appended.
    var sequence: Int64 = 0
    let messageID: String
    let userID: String?
    let sessionID: String
    let body: [UInt8]
    /// `ClientClock.uptime` when the event was rendered, in seconds; nil if unknown.
    var uptime: TimeInterval?
    /// The device id in `body`, if it was created before the queue file could be read.
    var provisionalID: String?

    func numbered(_ sequence: Int64) -> RenderedEvent {
        var event = self
        event.sequence = sequence
        return event
    }

    /// Replaces the provisional id in the body. The id is random, so no other text of the body equals it.
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
            sequence: sequence, messageID: messageID, userID: userID, sessionID: sessionID, body: body,
            uptime: uptime)
    }
}
