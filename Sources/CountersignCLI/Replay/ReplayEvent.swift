internal import CountersignCore

/// One event to be recorded by a device.
struct ReplayEvent: Sendable, Equatable {
    /// Whose it is.
    var userID: String
    var kind: EventKind = .track
    /// What it is called, such as `Order Completed`.
    var name: String
    var properties: JSONObject
}
