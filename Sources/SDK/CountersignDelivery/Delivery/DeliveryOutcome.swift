struct DeliveryOutcome: Equatable, Sendable {
    /// The reason why a server will never accept an event.
    struct Verdict: Equatable, Sendable {
        let code: String
        let reason: String
    }

    var delivered: [QueuedEvent] = []
    var quarantined: [(event: QueuedEvent, verdict: Verdict)] = []
    var duplicates = 0

    static func == (left: DeliveryOutcome, right: DeliveryOutcome) -> Bool {
        left.delivered == right.delivered && left.duplicates == right.duplicates
            && left.quarantined.map(\.event) == right.quarantined.map(\.event)
            && left.quarantined.map(\.verdict) == right.quarantined.map(\.verdict)
    }
}
