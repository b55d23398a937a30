/// The size limit of a request: the configured one, or less after a request was too large.
struct BatchSize {
    private var narrowed: (events: Int, bytes: Int)?

    func events(_ configured: Int) -> Int { narrowed?.events ?? configured }

    func bytes(_ configured: Int) -> Int { narrowed?.bytes ?? configured }

    mutating func narrow(_ events: [QueuedEvent]) {
        guard events.count > 1 else { return }
        narrowed = (
            events: max(1, events.count / 2), bytes: max(1, events.reduce(0) { $0 + $1.body.count } / 2)
        )
    }

    /// For a new session, or after a single event was too large.
    mutating func widen() { narrowed = nil }

    mutating func configured(events: Int) { narrowed?.events = events }
}
