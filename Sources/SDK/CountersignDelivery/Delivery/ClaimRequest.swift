struct ClaimRequest: Equatable, Sendable {
    var blockedUsers = BlockedUsers()
    var excluded: Set<Int64> = []
    var maximumEvents: Int
    /// One event is read even if it is longer.
    var maximumBytes: Int
    var newestFirst = false
}
