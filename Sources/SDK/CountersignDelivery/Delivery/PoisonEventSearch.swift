internal import Foundation

/// Finds events that make a server reject requests: the search in the current request, and the suspects that wait.
struct PoisonEventSearch {
    /// After this many consecutive rejections of single events, the cause is probably not the events.
    private static let maximumRejections = 3

    private var bisection: BatchBisection?
    /// Until this uptime, quarantining an event for a server fault takes more failures.
    private var flakyUntil: TimeInterval = -.infinity
    /// Ordered by their last try. Suspects stay in the queue, and normal batches exclude them.
    private(set) var suspects: [PoisonEvent] = []
    private var rejectionsInARow = 0

    var probe: [QueuedEvent]? { bisection?.probe }

    var isFault: Bool { suspects.last?.cause == .serverFault }

    var isOfEverything: Bool { rejectionsInARow >= Self.maximumRejections }

    mutating func endSearch() { bisection = nil }

    mutating func reset() {
        bisection = nil
        suspects = []
    }

    mutating func resetRejections() { rejectionsInARow = 0 }

    /// Allows an immediate retry of each suspect.
    mutating func resume() {
        for index in suspects.indices { suspects[index].retryAt = -.infinity }
    }

    mutating func accepted(_ events: [QueuedEvent], now: TimeInterval) {
        if bisection?.probeSucceeded() == .nothing {
            if bisection?.cause == .serverFault { becomeFlaky(now) }
            bisection = nil
        }
        let sequences = Set(events.map(\.sequence))
        if suspects.contains(where: { $0.cause == .serverFault && sequences.contains($0.event.sequence) }) {
            // The event was accepted, so the server was at fault.
            becomeFlaky(now)
        }
        suspects.removeAll { sequences.contains($0.event.sequence) }
        for index in suspects.indices { suspects[index].othersWereAccepted() }
        rejectionsInARow = 0
    }

    /// Records that a request failed, and begins or continues the search. Returns the event if it failed alone.
    mutating func narrow(
        _ events: [QueuedEvent], _ cause: BatchBisection.Cause, now: TimeInterval
    ) -> QueuedEvent? {
        let finding: BatchBisection.Finding
        if bisection?.cause == cause, let next = bisection?.probeFailed() {
            finding = next
        } else {
            finding = events.count == 1 ? .culprit(events[0]) : .searching
            bisection = BatchBisection(cause: cause, suspects: events)
        }
        guard case .culprit(let event) = finding else {
            if cause == .serverFault { serverFailed(on: events, now: now) }
            return nil
        }
        bisection = nil
        if cause == .serverFault { serverFailed(on: [event], now: now) }
        return event
    }

    /// Returns true if the event should go to quarantine.
    mutating func failedAlone(
        _ event: QueuedEvent, _ cause: BatchBisection.Cause, _ retry: RetryPolicy, now: TimeInterval,
        fraction: Double
    ) -> Bool {
        var found = PoisonEvent(event: event, cause: cause)
        if let index = suspects.firstIndex(where: { $0.event.sequence == event.sequence }) {
            let known = suspects.remove(at: index)
            if known.cause == cause { found = known }
        } else {
            rejectionsInARow += 1
        }
        // Two events at the same time are rarely both at fault.
        let isFlaky = now < flakyUntil || suspects.contains { $0.cause == .serverFault }
        found.failedAlone(isFlaky: cause == .serverFault && isFlaky)
        if found.isConfirmed { return true }
        found.retryAt =
            now
            + RetryPolicy(baseDelay: retry.baseDelay, maximumDelay: retry.maximumServerDelay).delay(
                afterFailure: found.tries, fraction: fraction)
        suspects.append(found)
        return false
    }

    private mutating func becomeFlaky(_ now: TimeInterval) {
        flakyUntil = now + PoisonEvent.flakyDuration
    }

    /// A flaky server that fails on `events` may also have failed on other suspects, so their failures do not count.
    private mutating func serverFailed(on events: [QueuedEvent], now: TimeInterval) {
        guard now < flakyUntil else { return }
        let sequences = Set(events.map(\.sequence))
        for index in suspects.indices where !sequences.contains(suspects[index].event.sequence) {
            suspects[index].resetCounts()
        }
    }
}
