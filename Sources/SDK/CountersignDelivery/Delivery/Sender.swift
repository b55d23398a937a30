internal import Foundation

/// A state machine that decides what to send and when, and applies the server's responses. It has no I/O, clock or
/// randomness.
///
/// The engine asks `next(now:)` for an action, runs it, and reports the result with a method named at the action.
/// Other events (`stored`, `flush`, `tokenChanged`, …) can be reported at any time. Instants are seconds of
/// `ClientClock.uptime`.
struct Sender {
    var settings: Settings
    /// Nil between two rounds.
    var round: Round?
    var current: UserBatch?
    var pendingOutcome = PendingOutcome()
    var poisonEvents = PoisonEventSearch()
    var batchSize = BatchSize()
    var users = UserBackoffs()
    var breaker = CircuitBreaker()
    private var backlog = Backlog()

    /// The last problem of a request or the queue; nil after an accepted request.
    var lastProblem: ServerAnswer.Explanation?

    init(settings: Settings) {
        self.settings = settings
    }

    // MARK: The next action

    mutating func next(now: TimeInterval) -> Action {
        if let outcome = pendingOutcome.outcome {
            let instant = pendingOutcome.retryAt
            return instant > now ? .wait(until: instant) : .apply(outcome)
        }
        if round == nil {
            guard wantsRound(at: now) else { return .wait(until: nextInstant) }
            breaker.lapse()
            round = Round()
        }
        if let instant = idleUntil(now) { return .wait(until: instant.isFinite ? instant : nil) }
        if let ending = round?.ending {
            round = nil
            return .finish(ending)
        }
        // Clear the flag only here. Clearing it earlier would lose a request made after the round's last claim.
        backlog.isUrgent = false
        if current == nil, let probe = poisonEvents.probe { current = UserBatch(events: probe) }
        if current == nil, let suspect = poisonEvents.suspects.first(where: { canTry($0) && $0.mayRetry }) {
            current = UserBatch(events: [suspect.event])
        }
        if let current {
            let backoff = users[current.user]
            guard current.isAuthorized else {
                return .authorize(current.user, rejectedGeneration: backoff?.rejectedGeneration)
            }
            return .send(
                current.events,
                attempt: breaker.failures + (backoff?.failures ?? 0) + (backoff?.providerFailures ?? 0) + 1)
        }
        return claim(now)
    }

    private mutating func claim(_ now: TimeInterval) -> Action {
        round?.claimBegan()
        backlog.claimBegan()
        users.lapse(at: now)
        var request = ClaimRequest(
            maximumEvents: batchSize.events(settings.batchEvents),
            maximumBytes: batchSize.bytes(settings.batchBytes))
        request.newestFirst = settings.newestFirst
        request.blockedUsers = users.blocked
        request.excluded = Set(poisonEvents.suspects.map(\.event.sequence))
        return .claim(request)
    }

    /// The uptime until which a flush waits for the token provider. Infinity waits without a limit; nil does not wait.
    private mutating func idleUntil(_ now: TimeInterval) -> TimeInterval? {
        guard current == nil else { return nil }
        let next = nextInstant
        return round?.idle(at: now, awaitsTokens: users.awaitTokens, next: next)
    }

    private func wantsRound(at now: TimeInterval) -> Bool {
        if settings.flushPolicy.isManual { return false }
        if let end = breaker.end { return end <= now }
        if backlog.isUrgent || backlog.isFull(settings.flushPolicy) { return true }
        return nextInstant.map { $0 <= now } ?? false
    }

    private var nextInstant: TimeInterval? {
        if settings.flushPolicy.isManual { return nil }
        if let end = breaker.end { return end }
        let instants = poisonEvents.suspects.filter(canTry).map(\.retryAt)
        return (instants + [users.nextInstant, backlog.dueAt(settings.flushPolicy)].compactMap(\.self)).min()
    }

    func canTry(_ suspect: PoisonEvent) -> Bool { !users.isBlocked(UserKey(suspect.event.userID)) }

    // MARK: Notifications

    /// Reports that events were written to the log or the queue file.
    mutating func stored(_ count: Int, now: TimeInterval) {
        guard count > 0 else { return }
        backlog.stored(count, now: now)
        round?.readAgain()
    }

    /// Sends everything, despite back-off.
    mutating func flush(patience: TimeInterval? = nil) {
        resume()
        if round == nil { round = Round() }
        round?.flush(patience: users.awaitTokens ? patience : nil)
    }

    /// Resets failure counts and ends all pauses.
    mutating func sessionStarted() {
        resume()
        users.resetFailures()
        breaker.resetFailures()
        poisonEvents.resetRejections()
        batchSize.widen()
        sendSoon()
    }

    mutating func sendSoon() { backlog.isUrgent = true }

    mutating func configure(flushPolicy: FlushPolicy, batchEvents: Int, newestFirst: Bool) {
        settings.flushPolicy = flushPolicy
        settings.newestFirst = newestFirst
        settings.batchEvents = batchEvents
        batchSize.configured(events: batchEvents)
    }

    private mutating func resume() {
        poisonEvents.resume()
        breaker.resume()
        users.unblock()
    }

    mutating func enteredBackground() {
        if settings.flushPolicy.onBackground { sendSoon() }
    }

    mutating func tokenChanged(for user: UserKey, generation: Int, now: TimeInterval) {
        guard users.tokenChanged(for: user, generation: generation, now: now) else { return }
        round?.readAgain()
        sendSoon()
    }

    /// Also called when the token provider call has timed out.
    mutating func tokenResolved(for user: UserKey) {
        guard users.tokenResolved(for: user) else { return }
        round?.readAgain()
        sendSoon()
    }

    /// Drops the user's batch in progress, which is claimed again and gets another token.
    mutating func tokenRemoved(for user: UserKey) {
        if current?.user == user { setAside() }
    }

    /// Drops the batch in progress and the back-off of all users after a wipe.
    mutating func reset() {
        current = nil
        poisonEvents.reset()
        pendingOutcome.applied()
        users.clear()
    }
}
