/// Which events to read from the queue.
struct ClaimRequest: Equatable, Sendable {
    /// Users whose events wait for something.
    var blockedUsers = BlockedUsers()
    /// Single events to pass over.
    var excluded: Set<Int64> = []
    var maximumEvents: Int
    /// The sum of the bodies; one event is read even if it alone is longer.
    var maximumBytes: Int
    /// True to begin with the newest event.
    var newestFirst = false
}
