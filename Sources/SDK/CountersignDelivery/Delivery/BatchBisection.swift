/// The search for the one event that makes a server reject a whole request.
///
/// A value without I/O: `probe` is what to send next, and the two mutating methods take the answer. With n suspects it
/// takes at most log2(n) + 1 requests. The event found has failed alone.
struct BatchBisection: Equatable {
    /// Why requests with the culprit fail.
    enum Cause: Equatable {
        /// 400 and the like. When one part is accepted, the culprit is in the other.
        case refused
        /// 413. Two parts that are accepted one by one may well be too large together.
        case tooLarge
        /// 500, or an answer of a server's own that makes no sense. It may have been a bad moment.
        case serverFault
    }

    enum Finding: Equatable {
        case searching
        /// This one.
        case culprit(QueuedEvent)
        /// All were accepted in the end.
        case nothing
    }

    let cause: Cause
    private(set) var suspects: [QueuedEvent]

    init(cause: Cause, suspects: [QueuedEvent]) {
        self.cause = cause
        self.suspects = suspects
    }

    /// The next part to send.
    var probe: [QueuedEvent] {
        // Probe the second of the last two. If it is at fault, the first is sent together with later events.
        if suspects.count == 2, cause != .refused { return [suspects[1]] }
        return Array(suspects.prefix(max(1, suspects.count / 2)))
    }

    /// `probe` was accepted.
    mutating func probeSucceeded() -> Finding {
        let sent = Set(probe.map(\.sequence))
        suspects.removeAll { sent.contains($0.sequence) }
        return suspects.isEmpty ? .nothing : .searching
    }

    /// `probe` failed with the same cause.
    mutating func probeFailed() -> Finding {
        suspects = probe
        return suspects.count == 1 ? .culprit(suspects[0]) : .searching
    }
}
