internal import Foundation

/// Decides what is sent when, and what an answer means for the queue: a state machine without I/O, clock or randomness.
///
/// Whoever drives it asks `next(now:)` for an action, carries it out, and reports how that went with the method that the
/// action names. Other events (`stored`, `flush`, `tokenChanged`, …) may be reported at any moment in between. Instants
/// are seconds of `ClientClock.uptime`.
///
/// Each of its parts is a separate machine, and knows nothing of the others.
struct Sender {
    enum State: Equatable {
        case resting
        case inRound(Round)
    }

    var settings: Settings
    private(set) var state = State.resting
    /// The events that are on their way.
    var current: Parcel?
    var settling = Settling()
    var suspicion = Suspicion()
    var batchSize = BatchSize()
    var users = Lanes()
    var pause = Pause()
    private var backlog = Backlog()

    /// The last failure of any kind since something was accepted.
    var lastProblem: ServerAnswer.Explanation?

    init(settings: Settings) {
        self.settings = settings
    }

    // MARK: What to do

    mutating func next(now: TimeInterval) -> Action {
        switch settling.state {
        case .none: break
        case .waiting(_, let instant, _) where instant > now: return .wait(until: instant)
        case .due(let settlement), .waiting(let settlement, _, _): return .settle(settlement)
        }
        if state == .resting {
            guard wantsRound(at: now) else { return .wait(until: nextInstant) }
            pause.lapse()
            state = .inRound(Round())
        }
        if let instant = idleUntil(now) { return .wait(until: instant.isFinite ? instant : nil) }
        if case .inRound(let round) = state, let ending = round.ending {
            state = .resting
            return .finish(ending)
        }
        // Not earlier: who wanted one after the last claim of a round that ends would be forgotten.
        backlog.isUrgent = false
        if current == nil, let probe = suspicion.probe { current = Parcel(events: probe) }
        if current == nil, let suspect = suspicion.suspects.first(where: { canTry($0) && $0.isRipe }) {
            current = Parcel(events: [suspect.event])
        }
        if let current {
            let lane = users[current.user]
            guard current.isAuthorized else {
                return .authorize(current.user, rejectedGeneration: lane?.rejectedGeneration)
            }
            return .send(
                current.events,
                attempt: pause.failures + (lane?.failures ?? 0) + (lane?.providerFailures ?? 0) + 1)
        }
        return claim(now)
    }

    private mutating func claim(_ now: TimeInterval) -> Action {
        inRound { $0.claimBegan() }
        backlog.claimBegan()
        users.lapse(at: now)
        var request = ClaimRequest(
            maximumEvents: batchSize.events(settings.batchEvents),
            maximumBytes: batchSize.bytes(settings.batchBytes))
        request.newestFirst = settings.newestFirst
        request.blockedUsers = users.blocked
        request.excluded = Set(suspicion.suspects.map(\.event.sequence))
        return .claim(request)
    }

    /// Until when a flush waits for the token provider, infinity being as long as that takes; nil if it does not.
    private mutating func idleUntil(_ now: TimeInterval) -> TimeInterval? {
        guard current == nil else { return nil }
        let (awaitsTokens, next) = (awaitsTokens, nextInstant)
        var instant: TimeInterval?
        inRound { instant = $0.idle(at: now, awaitsTokens: awaitsTokens, next: next) }
        return instant
    }

    private func wantsRound(at now: TimeInterval) -> Bool {
        if settings.flushPolicy.isManual { return false }
        if let end = pause.end { return end <= now }
        if backlog.isUrgent || backlog.isFull(settings.flushPolicy) { return true }
        return nextInstant.map { $0 <= now } ?? false
    }

    private var nextInstant: TimeInterval? {
        if settings.flushPolicy.isManual { return nil }
        if let end = pause.end { return end }
        let instants = suspicion.suspects.filter(canTry).map(\.retryAt)
        return (instants + [users.nextInstant, backlog.dueAt(settings.flushPolicy)].compactMap(\.self)).min()
    }

    /// False while its user's events wait for something.
    func canTry(_ suspect: Suspect) -> Bool { !users.isBlocked(UserKey(suspect.event.userID)) }

    mutating func inRound(_ body: (inout Round) -> Void) {
        guard case .inRound(var round) = state else { return }
        body(&round)
        state = .inRound(round)
    }

    // MARK: What it says of itself

    /// Users with a token problem.
    var lanes: [UserKey: Lane] { users.all }

    /// True while the token provider is asked for somebody, whose events may be sent when it returns.
    var awaitsTokens: Bool { users.awaitTokens }

    /// No request before this instant.
    var retryAt: TimeInterval? { pause.end }

    /// Why nothing gets through until somebody changes settings.
    var configurationProblem: ServerAnswer.Explanation? { pause.configurationProblem }

    // MARK: What happened around it

    /// Events have become durable.
    mutating func stored(_ count: Int, now: TimeInterval) {
        guard count > 0 else { return }
        backlog.stored(count, now: now)
        inRound { $0.readAgain() }
    }

    /// Somebody wants everything sent now.
    mutating func flush(patience: TimeInterval? = nil) {
        resume()
        if state == .resting { state = .inRound(Round()) }
        let patience = awaitsTokens ? patience : nil
        inRound { $0.flush(patience: patience) }
    }

    /// A session began: what was paused gets a new chance, with a fresh count.
    mutating func sessionStarted() {
        resume()
        users.forgive()
        pause.forgive()
        suspicion.forgiveRefusals()
        batchSize.widen()
        sendSoon()
    }

    /// Sends soon, whatever the flush policy waits for.
    mutating func sendSoon() { backlog.isUrgent = true }

    /// Works in another way from now on.
    mutating func configure(flushPolicy: FlushPolicy, batchEvents: Int, newestFirst: Bool) {
        settings.flushPolicy = flushPolicy
        settings.newestFirst = newestFirst
        settings.batchEvents = batchEvents
        batchSize.configured(events: batchEvents)
    }

    private mutating func resume() {
        suspicion.resume()
        pause.resume()
        users.unblock()
    }

    /// The app goes to the background.
    mutating func enteredBackground() {
        if settings.flushPolicy.onBackground { sendSoon() }
    }

    /// The app has handed over another token of this user.
    mutating func tokenChanged(for user: UserKey, generation: Int, now: TimeInterval) {
        if users.tokenChanged(for: user, generation: generation, now: now) { sendSoon() }
    }

    /// The token provider has returned, with a token or without one, or its time is up.
    mutating func tokenSought(for user: UserKey) {
        guard users.tokenSought(for: user) else { return }
        inRound { $0.readAgain() }
        sendSoon()
    }

    /// The token of this user is forgotten: what was about to be sent under it, or for want of any, asks again.
    mutating func tokenForgotten(for user: UserKey) {
        if current?.user == user { setAside() }
    }

    /// The queue was emptied, or another user's data must no longer be touched.
    mutating func reset() {
        current = nil
        suspicion.reset()
        settling.settled()
        users.clear()
    }
}
