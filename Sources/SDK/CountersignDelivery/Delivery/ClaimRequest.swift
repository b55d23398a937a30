struct ClaimRequest: Equatable, Sendable {
    var blockedUsers = BlockedUsers()
    var excluded: Set<Int64> = []
    var maximumEvents: Int
    /// The first event is claimed even if it is longer.
    var maximumBytes: Int
    var newestFirst = false
}
