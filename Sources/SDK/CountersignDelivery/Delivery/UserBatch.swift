/// Events of one user that go in one request.
struct UserBatch: Equatable {
    let events: [QueuedEvent]
    private(set) var isAuthorized = false
    /// 0 without a token.
    private(set) var generation = 0
    /// The reason why there is no newer token.
    private(set) var providerProblem: ServerAnswer.Explanation?

    var user: UserKey { UserKey(events.first?.userID) }

    mutating func authorize(_ generation: Int, providerProblem: ServerAnswer.Explanation? = nil) {
        isAuthorized = true
        self.generation = generation
        self.providerProblem = providerProblem
    }

    func result(_ outcome: FlushResult.Outcome, _ code: String, delivered: Int = 0) -> FlushResult.Batch {
        FlushResult.Batch(
            userID: user.userID, eventCount: events.count, deliveredCount: delivered, outcome: outcome,
            code: code)
    }
}
