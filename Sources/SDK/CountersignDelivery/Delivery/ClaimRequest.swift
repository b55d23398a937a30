/// A request for events from the queue.
struct ClaimRequest: Equatable, Sendable {
    /// Users whose events must not be sent now.
    var blockedUsers = BlockedUsers()
    /// The sequence numbers of events to skip.
    var excluded: Set<Int64> = []
    var maximumEvents: Int
    /// The maximum of all bodies together. One event is read even if it is longer.
    var maximumBytes: Int
    /// True to begin with the newest event.
    var newestFirst = false
}
