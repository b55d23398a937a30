internal import CountersignCore

/// One event to be recorded by a device.
struct ReplayEvent: Sendable, Equatable {
    var userID: String
    var kind: EventKind = .track
    /// The name, such as `Order Completed`.
    var name: String
    var properties: JSONObject
}
