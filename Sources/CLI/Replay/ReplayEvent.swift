internal import CountersignCore

struct ReplayEvent: Sendable, Equatable {
    var userID: String
    var kind: EventKind = .track
    var name: String
    var properties: JSONObject
}
