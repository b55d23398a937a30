/// The search for the one event that makes a server reject a whole request.
///
/// `probe` is the part to send next, and the mutating methods take its result. With n suspects the search takes at most
/// log2(n) + 1 requests, rounded up. The event that it finds has failed in a request of its own.
struct BatchBisection: Equatable {
    enum Cause: Equatable {
        /// A rejection such as 400. If the server accepts one part, the event is in the other part.
        case rejected
        /// 413. Two parts that were each accepted may be too large together.
        case tooLarge
        /// 500, or a response that does not match the request. The failure may be temporary.
        case serverFault
    }

    enum Finding: Equatable {
        case searching
        case culprit(QueuedEvent)
        case nothing
    }

    let cause: Cause
    private(set) var suspects: [QueuedEvent]

    init(cause: Cause, suspects: [QueuedEvent]) {
        self.cause = cause
        self.suspects = suspects
    }

    var probe: [QueuedEvent] {
        // Probe the second of two suspects. If the second is at fault, the first is sent later with other events.
        if suspects.count == 2, cause != .rejected { return [suspects[1]] }
        return Array(suspects.prefix(max(1, suspects.count / 2)))
    }

    mutating func probeSucceeded() -> Finding {
        let sent = Set(probe.map(\.sequence))
        suspects.removeAll { sent.contains($0.sequence) }
        return suspects.isEmpty ? .nothing : .searching
    }

    /// Call this method only if the server's response to `probe` has the cause `cause`.
    mutating func probeFailed() -> Finding {
        suspects = probe
        return suspects.count == 1 ? .culprit(suspects[0]) : .searching
    }
}
