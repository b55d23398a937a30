internal import Foundation

/// A round of the sender: it reads and sends until nothing is left to do.
struct Round: Equatable {
    enum State: Equatable {
        /// Stale means that events may have been stored since the last claim began.
        case reading(isStale: Bool)
        case awaitingTokens
        case over(FlushResult.Ending)
    }

    private(set) var state = State.reading(isStale: true)
    /// True if a flush waits for the end of the round, which then also waits for the token provider.
    private var isFlush = false
    /// The uptime at which the wait for the token provider ends; nil for no limit.
    private var patience: TimeInterval?

    var ending: FlushResult.Ending? {
        if case .over(let ending) = state { ending } else { nil }
    }

    mutating func flush(patience: TimeInterval?) {
        state = .reading(isStale: true)
        isFlush = true
        if let patience { self.patience = patience }
    }

    mutating func readAgain() {
        if ending == nil { state = .reading(isStale: true) }
    }

    mutating func claimBegan() { state = .reading(isStale: false) }

    mutating func nothingWasClaimed(awaitsTokens: Bool, hasSuspects: Bool) {
        guard state == .reading(isStale: false) else { return }
        if isFlush, awaitsTokens {
            state = .awaitingTokens
        } else {
            state = .over(hasSuspects ? .interrupted : .drained)
        }
    }

    mutating func end(_ ending: FlushResult.Ending) { state = .over(ending) }

    /// The uptime until which to wait for the token provider, infinity for no limit; nil to continue at once.
    mutating func idle(at now: TimeInterval, awaitsTokens: Bool, next: TimeInterval?) -> TimeInterval? {
        guard state == .awaitingTokens else { return nil }
        guard awaitsTokens else {
            state = .over(.drained)
            return nil
        }
        let patience = patience ?? .infinity
        if patience <= now {
            state = .over(.waitingForTokenProvider)
            return nil
        }
        // Stop waiting when other work becomes due.
        let instant = next ?? .infinity
        return instant <= now ? nil : min(patience, instant)
    }
}
