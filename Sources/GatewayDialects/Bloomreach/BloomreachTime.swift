internal import CountersignCore
internal import CountersignJOSE
internal import GatewayHTTP

/// When an event of this dialect happened, and how its sender said so.
struct BloomreachTime {
    enum Source {
        /// `timestamp`: an instant, the same at every try.
        case instant
        /// `age`, counted again at every try.
        case age(Double)
        /// Neither: when the request came.
        case none
    }

    let source: Source
    /// Milliseconds since 1970.
    let milliseconds: Int64
    /// Milliseconds since 1970.
    let receivedMilliseconds: Int64

    /// The year 10000, from which on dates have no four-digit year.
    static let end = 253_402_300_800.0

    init(_ root: JSONNode, _ call: BloomreachCall) throws(BloomreachRefusal) {
        receivedMilliseconds = call.request.receivedMilliseconds
        if let node = root["timestamp"], !node.isNull {
            source = .instant
            if let seconds = node.double, seconds >= 0, seconds < Self.end {
                milliseconds = Milliseconds(seconds * 1_000).count
            } else if let text = node.utf8, let parsed = RFC3339.milliseconds(text) {
                milliseconds = parsed
            } else {
                throw call.refuse(
                    "Field 'timestamp' must be seconds since 1970 or a time such as 2026-11-21T08:30:00Z.")
            }
        } else if let node = root["age"], !node.isNull {
            guard let seconds = node.double, abs(seconds) < Self.end else {
                throw call.refuse("Field 'age' must be the seconds that have passed since.")
            }
            source = .age(seconds)
            // A clock that was set back in between makes an age negative: then it happened just now.
            milliseconds = receivedMilliseconds - Milliseconds(max(0, seconds) * 1_000).count
        } else {
            source = .none
            milliseconds = receivedMilliseconds
        }
    }
}
