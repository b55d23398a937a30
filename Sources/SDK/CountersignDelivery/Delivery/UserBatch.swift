/// Events of one user that go in one request.
struct UserBatch: Equatable {
    enum State: Equatable {
        case addressed
        /// `generation` is 0 without a token. `providerProblem` is the reason why there is no newer token.
        case authorized(generation: Int, providerProblem: ServerAnswer.Explanation?)
    }

    let events: [QueuedEvent]
    private(set) var state = State.addressed

    var user: UserKey { UserKey(events.first?.userID) }

    var isAuthorized: Bool { state != .addressed }

    var generation: Int {
        if case .authorized(let generation, _) = state { generation } else { 0 }
    }

    var providerProblem: ServerAnswer.Explanation? {
        if case .authorized(_, let problem) = state { problem } else { nil }
    }

    init(events: [QueuedEvent]) {
        self.events = events
    }

    mutating func authorize(_ generation: Int, providerProblem: ServerAnswer.Explanation? = nil) {
        state = .authorized(generation: generation, providerProblem: providerProblem)
    }

    func result(_ outcome: FlushResult.Outcome, _ code: String, delivered: Int = 0) -> FlushResult.Batch {
        FlushResult.Batch(
            userID: user.userID, eventCount: events.count, deliveredCount: delivered, outcome: outcome,
            code: code)
    }
}
