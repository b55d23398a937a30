/// The size limit of a request: the configured one, or less after a request was too large.
struct BatchSize: Equatable {
    enum State: Equatable {
        case full
        case narrowed(events: Int, bytes: Int)
    }

    private(set) var state = State.full

    func events(_ configured: Int) -> Int {
        if case .narrowed(let events, _) = state { events } else { configured }
    }

    func bytes(_ configured: Int) -> Int {
        if case .narrowed(_, let bytes) = state { bytes } else { configured }
    }

    mutating func narrow(_ events: [QueuedEvent]) {
        guard events.count > 1 else { return }
        state = .narrowed(
            events: max(1, events.count / 2), bytes: max(1, events.reduce(0) { $0 + $1.body.count } / 2))
    }

    /// For a new session, or after a single event was too large.
    mutating func widen() { state = .full }

    mutating func configured(events: Int) {
        guard case .narrowed(_, let bytes) = state else { return }
        state = .narrowed(events: events, bytes: bytes)
    }
}
