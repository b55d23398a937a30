struct DeliveryOutcome: Equatable, Sendable {
    /// An event that a server will never accept.
    struct Rejected: Equatable, Sendable {
        let event: QueuedEvent
        let reason: ServerAnswer.Explanation
    }

    var delivered: [QueuedEvent] = []
    var quarantined: [Rejected] = []
    var duplicates = 0
}
