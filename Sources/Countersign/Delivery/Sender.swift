internal import Foundation

/// Decides what is sent when, and what an answer means for the queue: a state machine without I/O, clock or randomness.
///
/// Whoever drives it asks `next(now:)` for an action, carries it out, and reports how that went with the method that the
/// action names. Other events (`stored`, `flush`, `tokenChanged`, …) may be reported at any moment in between. Instants
/// are seconds of `ClientClock.uptime`.
struct Sender {
    private struct Round: Equatable {
        /// True when events may have been stored since the last claim began.
        var mustClaimAgain = true
        /// True when somebody waits for its end, which is then also the end of calls of the token provider.
        var isFlush = false
        /// True when nothing is left to do but to wait for the token provider.
        var isIdle = false
        /// When to give up that wait.
        var patience: TimeInterval?
        var ending: FlushResult.Ending?
    }

    private struct Current: Equatable {
        let events: [QueuedEvent]
        var isAuthorized = false
        var generation = 0
        /// Why the token provider had nothing better than this token, or than none; nil if it was not needed.
        var providerProblem: ServerAnswer.Explanation?

        var lane: UserKey { UserKey(events.first?.userID) }
    }

    private var settings: Settings
    private var round: Round?
    private var current: Current?
    private var unsettled: Settlement?
    /// Not before this instant, after a try to settle has failed.
    private var settleAt: TimeInterval?
    private var settleFailures = 0
    /// The newest token of each user.
    private var generations: [UserKey: Int] = [:]
    private var isolation: Isolation?
    /// Events that failed alone, in the order of their last try. They stay in the queue and are passed over.
    private var suspects: [Suspect] = []
    /// Until then a fault of the server says little about an event.
    private var isFlakyUntil: TimeInterval = -.infinity
    private var pendingEvents = 0
    private var pendingSince: TimeInterval?
    private var wantsRound = false
    private var batchEvents: Int
    private var batchBytes: Int
    private var refusalsInARow = 0
    /// Answers in a row after which settings had to change.
    private var configurationFailures = 0
    private var resumption = Resumption()

    /// Users with a token problem.
    private(set) var lanes: [UserKey: Lane] = [:]
    /// Failures of the server or the network in a row.
    private(set) var failures = 0
    /// No request before this instant.
    private(set) var retryAt: TimeInterval?
    /// Why nothing gets through until somebody changes settings.
    private(set) var configurationProblem: ServerAnswer.Explanation?
    /// The last failure of any kind since something was accepted.
    private(set) var lastProblem: ServerAnswer.Explanation?

    init(settings: Settings) {
        self.settings = settings
        batchEvents = settings.batchEvents
        batchBytes = settings.batchBytes
    }

    // MARK: What to do

    mutating func next(now: TimeInterval) -> Action {
        if let unsettled {
            if let settleAt, settleAt > now { return .wait(until: settleAt) }
            return .settle(unsettled)
        }
        if round == nil {
            guard wantsRound(at: now) else { return .wait(until: nextInstant) }
            retryAt = nil
            round = Round()
        }
        if let instant = idleUntil(now) { return .wait(until: instant.isFinite ? instant : nil) }
        if let ending = round?.ending {
            round = nil
            return .finish(ending)
        }
        // Not earlier: who wanted one after the last claim of a round that ends would be forgotten.
        wantsRound = false
        if current == nil, let isolation { current = Current(events: isolation.probe) }
        if let current {
            guard current.isAuthorized else {
                return .authorize(current.lane, rejectedGeneration: lanes[current.lane]?.rejectedGeneration)
            }
            let lane = lanes[current.lane]
            return .send(
                current.events,
                attempt: failures + (lane?.failures ?? 0) + (lane?.providerFailures ?? 0) + 1)
        }
        if let suspect = suspects.first(where: { canTry($0) && $0.isRipe }) {
            current = Current(events: [suspect.event])
            return next(now: now)
        }
        round?.mustClaimAgain = false
        round?.isIdle = false
        pendingEvents = 0
        pendingSince = nil
        for key in lanes.keys { lanes[key]?.lapse(at: now) }
        var request = ClaimRequest(maximumEvents: batchEvents, maximumBytes: batchBytes)
        request.newestFirst = settings.newestFirst
        request.blockedUsers = Set(lanes.filter { $0.value.isBlocked }.keys)
        request.excluded = Set(suspects.map(\.event.sequence))
        return .claim(request)
    }

    /// True while the token provider is asked for somebody, whose events may be sent when it returns.
    var awaitsTokens: Bool { lanes.values.contains(where: \.awaitsToken) }

    /// Until when a flush waits for the token provider, infinity being as long as that takes; nil if it does not.
    private mutating func idleUntil(_ now: TimeInterval) -> TimeInterval? {
        guard let round, round.isIdle, !round.mustClaimAgain, round.ending == nil, current == nil else {
            return nil
        }
        guard awaitsTokens else {
            self.round?.ending = .drained
            return nil
        }
        let patience = round.patience ?? .infinity
        if patience <= now {
            self.round?.ending = .waitingForTokenProvider
            return nil
        }
        // What becomes due meanwhile is not held up.
        let instant = nextInstant ?? .infinity
        return instant <= now ? nil : min(patience, instant)
    }

    private func wantsRound(at now: TimeInterval) -> Bool {
        if settings.flushPolicy.isManual { return false }
        if let retryAt { return retryAt <= now }
        if wantsRound { return true }
        if let count = settings.flushPolicy.eventCount, pendingEvents >= count { return true }
        return nextInstant.map { $0 <= now } ?? false
    }

    private var nextInstant: TimeInterval? {
        if settings.flushPolicy.isManual { return nil }
        if let retryAt { return retryAt }
        var instants = lanes.values.compactMap { $0.isPaused ? nil : $0.blockedUntil }
        instants += suspects.filter(canTry).map(\.retryAt)
        if let pendingSince, let interval = settings.flushPolicy.interval {
            instants.append(pendingSince + interval)
        }
        return instants.min()
    }

    // MARK: What happened around it

    /// Events have become durable.
    mutating func stored(_ count: Int, now: TimeInterval) {
        guard count > 0 else { return }
        pendingEvents += count
        pendingSince = pendingSince ?? now
        round?.mustClaimAgain = true
    }

    /// Somebody wants everything sent now.
    ///
    /// - Parameter patience: Until when to wait for a call of the token provider that is under way already: it may be the
    ///   provider that waits for this.
    mutating func flush(patience: TimeInterval? = nil) {
        resume()
        if round == nil { round = Round() }
        round?.mustClaimAgain = true
        round?.ending = nil
        round?.isFlush = true
        if let patience, awaitsTokens { round?.patience = patience }
    }

    /// A session began: what was paused gets a new chance, with a fresh count.
    mutating func sessionStarted() {
        resume()
        for key in lanes.keys { lanes[key]?.forgive() }
        failures = 0
        refusalsInARow = 0
        configurationFailures = 0
        batchEvents = settings.batchEvents
        batchBytes = settings.batchBytes
        wantsRound = true
    }

    /// Sends soon, whatever the flush policy waits for.
    mutating func sendSoon() {
        wantsRound = true
    }

    /// Works in another way from now on.
    mutating func configure(flushPolicy: FlushPolicy, batchEvents: Int, newestFirst: Bool) {
        settings.flushPolicy = flushPolicy
        settings.newestFirst = newestFirst
        settings.batchEvents = batchEvents
        self.batchEvents = batchEvents
    }

    private mutating func resume() {
        for index in suspects.indices { suspects[index].retryAt = -.infinity }
        retryAt = nil
        configurationProblem = nil
        for key in lanes.keys { lanes[key]?.unblock() }
    }

    /// The app goes to the background.
    mutating func enteredBackground() {
        if settings.flushPolicy.onBackground { wantsRound = true }
    }

    /// The app has handed over another token of this user.
    mutating func tokenChanged(for user: UserKey, generation: Int, now: TimeInterval) {
        generations[user] = generation
        guard var lane = lanes[user] else { return }
        lane.forgive()
        lane.isPaused = false
        lane.awaitsToken = false
        // Each new token may resume at once, but not in a circle: rejected, new token, rejected, …
        lane.blockedUntil = resumption.take(at: now)
        lanes[user] = lane
        if lane.blockedUntil == nil { wantsRound = true }
    }

    /// The token provider has returned, with a token or without one, or its time is up.
    mutating func tokenSought(for user: UserKey) {
        guard lanes[user]?.awaitsToken == true else { return }
        lanes[user]?.awaitsToken = false
        if lanes[user] == Lane() { lanes[user] = nil }
        round?.mustClaimAgain = true
        wantsRound = true
    }

    /// The queue was emptied, or another user's data must not be touched any more.
    mutating func reset() {
        current = nil
        isolation = nil
        suspects = []
        settled()
        lanes = [:]
    }

    // MARK: How actions went

    mutating func claimed(_ events: [QueuedEvent], now: TimeInterval, fraction: Double) {
        if !events.isEmpty {
            current = Current(events: events)
        } else if let suspect = suspects.first(where: { canTry($0) && $0.retryAt <= now }) {
            // There is no other event to tell a bad one from a server that is down.
            current = Current(events: [suspect.event])
        } else if round?.mustClaimAgain != true {
            if round?.isFlush == true, awaitsTokens {
                round?.isIdle = true
            } else {
                round?.ending = suspects.isEmpty ? .drained : .interrupted
            }
        }
    }

    /// The queue could not be read, or the lease not be renewed.
    mutating func claimFailed(_ problem: ServerAnswer.Explanation, now: TimeInterval, fraction: Double) {
        backOff(problem, serverDelay: nil, now: now, fraction: fraction)
    }

    /// Another process is sending.
    mutating func leased(until instant: TimeInterval) {
        current = nil
        retryAt = instant
        round?.ending = .otherProcessIsSending
    }

    /// - Parameter generation: Of the token to send with; 0 if there is none.
    mutating func authorized(generation: Int) {
        guard let lane = current?.lane else { return }
        current?.isAuthorized = true
        current?.generation = generation
        generations[lane] = generation
        lanes[lane]?.providerFailures = 0
    }

    /// The token provider is asked; `tokenSought` is to follow. Other users' events go on.
    mutating func authorizationPending() {
        guard let current else { return }
        lanes[current.lane, default: Lane()].awaitsToken = true
        isolation = nil
        self.current = nil
    }

    /// The token provider has failed, or gave a token that is no better: the server is the judge of the last one, as it
    /// may have stopped to ask for any. One that it has refused already is sent again after a wait only.
    ///
    /// `generation` is that of the last token; 0 if there is none.
    mutating func authorizationFailed(
        _ problem: ServerAnswer.Explanation, generation: Int, now: TimeInterval, fraction: Double
    ) -> Consequence? {
        guard let current else { return nil }
        let lane = lanes[current.lane]
        if lane?.rejectedGeneration == generation, lane?.mayResend != true {
            parkForProvider(current, problem: problem, now: now, fraction: fraction)
            return Consequence(batch: batch(current, .tokenProblem, problem.code))
        }
        let failures = lane?.providerFailures ?? 0
        authorized(generation: generation)
        lanes[current.lane]?.providerFailures = failures
        self.current?.providerProblem = problem
        return nil
    }

    /// There is no credential to send with before `instant`, or if that is nil, before the app hands over another one.
    mutating func authorizationDeferred(
        _ problem: ServerAnswer.Explanation, until instant: TimeInterval?
    ) -> Consequence? {
        guard let current else { return nil }
        var lane = lanes[current.lane] ?? Lane()
        lane.problem = problem
        lane.isPaused = instant == nil
        lane.blockedUntil = instant
        lanes[current.lane] = lane
        lastProblem = problem
        isolation = nil
        self.current = nil
        return Consequence(batch: batch(current, .tokenProblem, problem.code))
    }

    /// There was no answer.
    mutating func failed(
        _ error: HTTPTransportError, now: TimeInterval, fraction: Double
    ) -> Consequence? {
        guard let current else { return nil }
        let problem = ServerAnswer.Explanation(error.code.rawValue, error.detail)
        if error.code == .notPermitted {
            // No stray answer can be the cause, so there is no early try.
            stop(
                problem, serverDelay: settings.networkRetry.maximumServerDelay, now: now, fraction: fraction)
            return Consequence(batch: batch(current, .configurationProblem, problem.code))
        }
        backOff(problem, serverDelay: nil, now: now, fraction: fraction)
        return Consequence(batch: batch(current, .retryLater, problem.code))
    }

    mutating func answered(
        _ answer: ServerAnswer, now: TimeInterval, fraction: Double
    ) -> Consequence? {
        guard let current else { return nil }
        switch answer.meaning {
        case .accepted(let duplicates, let rejected, let warning):
            return accept(
                current, duplicates: duplicates, rejected: rejected, warning: warning, now: now,
                fraction: fraction)
        case .tokenProblem(let verdict):
            return refuseToken(
                current, verdict: verdict, retryAfter: answer.retryAfter, now: now, fraction: fraction)
        case .tooLarge:
            let problem = ServerAnswer.Explanation("too_large", "the server takes no request of this size")
            if current.events.count > 1 {
                batchEvents = max(1, current.events.count / 2)
                batchBytes = max(1, current.events.reduce(0) { $0 + $1.body.count } / 2)
            }
            return narrow(current, .tooLarge, problem, now: now, fraction: fraction)
        case .refused(let problem):
            return narrow(current, .refused, problem, now: now, fraction: fraction)
        case .serverFault(let problem), .notUnderstood(let problem):
            let consequence = narrow(current, .serverFault, problem, now: now, fraction: fraction)
            if unsettled == nil {
                backOff(problem, serverDelay: answer.retryAfter, now: now, fraction: fraction)
            }
            return consequence
        case .configurationProblem(let problem):
            stop(problem, serverDelay: answer.retryAfter, now: now, fraction: fraction)
            return Consequence(batch: batch(current, .configurationProblem, problem.code))
        case .tryLater(let problem):
            backOff(problem, serverDelay: answer.retryAfter, now: now, fraction: fraction)
            return Consequence(batch: batch(current, .retryLater, problem.code))
        }
    }

    mutating func settled() {
        unsettled = nil
        settleAt = nil
        settleFailures = 0
    }

    /// The queue could not be written: the server has the events, so they are not sent again before this is through.
    mutating func settleFailed(_ problem: ServerAnswer.Explanation, now: TimeInterval, fraction: Double) {
        settleFailures += 1
        settleAt = now + settings.networkRetry.delay(afterFailure: settleFailures, fraction: fraction)
        lastProblem = problem
    }

    // MARK: Answers one by one

    private mutating func accept(
        _ current: Current, duplicates: Int, rejected: [ServerAnswer.Rejection],
        warning: ServerAnswer.TokenVerdict?, now: TimeInterval, fraction: Double
    ) -> Consequence {
        let reasons = Dictionary(rejected.map { ($0.index, $0.explanation) }) { first, _ in first }
        if reasons.count == current.events.count {
            return refuseAll(current, reasons, now: now, fraction: fraction)
        }
        var settlement = Settlement(duplicates: duplicates)
        for (index, event) in current.events.enumerated() {
            if let reason = reasons[index] {
                settlement.quarantined.append((event, .init(code: reason.code, reason: reason.reason)))
            } else {
                settlement.delivered.append(event)
            }
        }
        if isolation?.probeSucceeded() == .nothing {
            if isolation?.cause == .serverFault { isFlakyUntil = now + Suspect.flakyDuration }
            isolation = nil
        }
        let sequences = Set(current.events.map(\.sequence))
        if suspects.contains(where: { $0.cause == .serverFault && sequences.contains($0.event.sequence) }) {
            // It was not the event, then.
            isFlakyUntil = now + Suspect.flakyDuration
        }
        suspects.removeAll { sequences.contains($0.event.sequence) }
        for index in suspects.indices { suspects[index].othersWereAccepted() }
        unsettled = settlement
        self.current = nil
        lanes[current.lane] = nil
        failures = 0
        retryAt = nil
        configurationProblem = nil
        configurationFailures = 0
        refusalsInARow = 0
        resumption = Resumption()
        lastProblem = nil
        return Consequence(
            batch: FlushResult.Batch(
                userID: current.lane.userID, eventCount: current.events.count,
                deliveredCount: current.events.count - rejected.count, outcome: .delivered, code: ""),
            failure: warning, isOptional: warning != nil)
    }

    /// The server has refused one by one all events of a request: no event was accepted, so each is only suspected.
    private mutating func refuseAll(
        _ current: Current, _ reasons: [Int: ServerAnswer.Explanation], now: TimeInterval, fraction: Double
    ) -> Consequence {
        self.current = nil
        isolation = nil
        var condemned: [(event: QueuedEvent, verdict: Settlement.Verdict)] = []
        for (index, event) in current.events.enumerated() {
            let reason = reasons[index] ?? .init("refused", "")
            lastProblem = reason
            condemned += suspect(event, .refused, reason, now: now, fraction: fraction)
        }
        return conclude(current, condemned, now: now, fraction: fraction)
    }

    private mutating func refuseToken(
        _ current: Current, verdict: ServerAnswer.TokenVerdict, retryAfter: TimeInterval?,
        now: TimeInterval, fraction: Double
    ) -> Consequence {
        isolation = nil
        let result = batch(current, .tokenProblem, verdict.reason)
        if let newest = generations[current.lane], newest > current.generation {
            // A late answer about a token that has been replaced since says nothing about the new one.
            self.current = nil
            return Consequence(batch: result)
        }
        lanes[current.lane, default: Lane()].rejectedGeneration = current.generation
        lanes[current.lane]?.mayResend = false
        if let problem = current.providerProblem {
            parkForProvider(current, problem: problem, serverDelay: retryAfter, now: now, fraction: fraction)
            return Consequence(batch: result, failure: verdict)
        }
        if settings.hasTokenProvider, lanes[current.lane]?.failures == 0 {
            // One replacement before the first wait; a server that always says 401 must not loop us.
            lanes[current.lane]?.failures = 1
            lanes[current.lane]?.problem = .init(verdict.reason, "the server refused the token")
            self.current = nil
        } else {
            park(
                current, problem: .init(verdict.reason, "the server refused the token"),
                serverDelay: retryAfter, now: now, fraction: fraction)
        }
        return Consequence(batch: result, failure: verdict)
    }

    private mutating func park(
        _ current: Current, problem: ServerAnswer.Explanation, serverDelay: TimeInterval? = nil,
        now: TimeInterval, fraction: Double
    ) {
        var lane = lanes[current.lane] ?? Lane()
        lane.failures += 1
        lane.problem = problem
        let isTooOften = lane.failures >= settings.authenticationRetry.maximumFailures
        // Tokens of a provider change by themselves, and a process without sessions would never ask for another.
        lane.isPaused = isTooOften && !settings.hasTokenProvider
        lane.blockedUntil =
            now
            + (isTooOften
                ? settings.authenticationRetry.maximumServerDelay
                : settings.authenticationRetry.delay(
                    afterFailure: lane.failures, serverDelay: serverDelay, fraction: fraction))
        leave(lane, of: current, problem: problem)
    }

    /// A failing provider is like a failing network: the waits grow, and never end for good.
    private mutating func parkForProvider(
        _ current: Current, problem: ServerAnswer.Explanation, serverDelay: TimeInterval? = nil,
        now: TimeInterval, fraction: Double
    ) {
        var lane = lanes[current.lane] ?? Lane()
        lane.providerFailures += 1
        lane.problem = problem
        lane.blockedUntil =
            now
            + settings.networkRetry.delay(
                afterFailure: lane.providerFailures, serverDelay: serverDelay, fraction: fraction)
        leave(lane, of: current, problem: problem)
    }

    private mutating func leave(_ lane: Lane, of current: Current, problem: ServerAnswer.Explanation) {
        lanes[current.lane] = lane
        lastProblem = problem
        isolation = nil
        self.current = nil
    }

    /// Goes on in smaller parts until one event is found that cannot be delivered.
    private mutating func narrow(
        _ current: Current, _ cause: Isolation.Cause, _ problem: ServerAnswer.Explanation,
        now: TimeInterval, fraction: Double
    ) -> Consequence {
        self.current = nil
        lastProblem = problem
        var search = isolation.flatMap { $0.cause == cause ? $0 : nil }
        let finding: Isolation.Finding
        if search != nil {
            finding = search?.probeFailed() ?? .nothing
        } else {
            search = Isolation(cause: cause, suspects: current.events)
            finding = current.events.count == 1 ? .culprit(current.events[0]) : .searching
        }
        isolation = search
        guard case .culprit(let event) = finding else {
            if cause == .serverFault { serverFailed(on: current.events, now: now) }
            return Consequence(
                batch: batch(current, cause == .serverFault ? .retryLater : .refused, problem.code))
        }
        isolation = nil
        if cause == .tooLarge {
            batchEvents = settings.batchEvents
            batchBytes = settings.batchBytes
        }
        if cause == .serverFault { serverFailed(on: [event], now: now) }
        return conclude(
            current, suspect(event, cause, problem, now: now, fraction: fraction), now: now,
            fraction: fraction)
    }

    /// Faults on other events point to the server: while it is flaky, earlier evidence against a suspect does not count.
    private mutating func serverFailed(on events: [QueuedEvent], now: TimeInterval) {
        guard now < isFlakyUntil else { return }
        let sequences = Set(events.map(\.sequence))
        for index in suspects.indices where !sequences.contains(suspects[index].event.sequence) {
            suspects[index].evidenceIsVoid()
        }
    }

    /// Takes down that an event failed alone.
    ///
    /// - Returns: The event with its verdict if that is enough to set it aside, or nothing.
    private mutating func suspect(
        _ event: QueuedEvent, _ cause: Isolation.Cause, _ problem: ServerAnswer.Explanation,
        now: TimeInterval, fraction: Double
    ) -> [(event: QueuedEvent, verdict: Settlement.Verdict)] {
        var found = Suspect(event: event, cause: cause)
        if let index = suspects.firstIndex(where: { $0.event.sequence == event.sequence }) {
            let known = suspects.remove(at: index)
            if known.cause == cause { found = known }
        } else {
            refusalsInARow += 1
        }
        // Two at a time are rarely both at fault.
        let isFlaky = now < isFlakyUntil || suspects.contains { $0.cause == .serverFault }
        found.failedAlone(isFlaky: cause == .serverFault && isFlaky)
        guard !found.isCondemned else {
            return [(event, Settlement.Verdict(code: problem.code, reason: problem.reason))]
        }
        found.retryAt =
            now
            + RetryPolicy(
                baseDelay: settings.networkRetry.baseDelay,
                maximumDelay: settings.networkRetry.maximumServerDelay
            ).delay(afterFailure: found.tries, fraction: fraction)
        suspects.append(found)
        return []
    }

    private mutating func conclude(
        _ current: Current, _ condemned: [(event: QueuedEvent, verdict: Settlement.Verdict)],
        now: TimeInterval, fraction: Double
    ) -> Consequence {
        let problem = lastProblem ?? .init("refused", "")
        if !condemned.isEmpty {
            unsettled = Settlement(quarantined: condemned)
            return Consequence(batch: batch(current, .quarantined, problem.code))
        }
        let isFault = suspects.last?.cause == .serverFault
        if !isFault, refusalsInARow >= Self.maximumRefusals {
            stop(
                .init(problem.code, "the server refuses every event: \(problem.reason)"),
                serverDelay: settings.networkRetry.maximumServerDelay, now: now, fraction: fraction)
        }
        return Consequence(batch: batch(current, isFault ? .retryLater : .refused, problem.code))
    }

    /// Events refused one after the other, with none accepted in between, before it must be something else than them.
    private static let maximumRefusals = 3

    /// False while its user's events wait for something.
    private func canTry(_ suspect: Suspect) -> Bool {
        lanes[UserKey(suspect.event.userID)]?.isBlocked != true
    }

    private func batch(
        _ current: Current, _ outcome: FlushResult.Outcome, _ code: String
    ) -> FlushResult.Batch {
        FlushResult.Batch(
            userID: current.lane.userID, eventCount: current.events.count, deliveredCount: 0,
            outcome: outcome, code: code)
    }

    private mutating func backOff(
        _ problem: ServerAnswer.Explanation, serverDelay: TimeInterval?, now: TimeInterval, fraction: Double
    ) {
        failures += 1
        retryAt =
            now
            + settings.networkRetry.delay(
                afterFailure: failures, serverDelay: serverDelay, fraction: fraction)
        lastProblem = problem
        current = nil
        round?.ending = .interrupted
    }

    private mutating func stop(
        _ problem: ServerAnswer.Explanation, serverDelay: TimeInterval? = nil, now: TimeInterval,
        fraction: Double
    ) {
        configurationProblem = problem
        lastProblem = problem
        configurationFailures += 1
        // One request now and then: a server may be put right while the app runs on, and one stray answer of something on
        // the way is over in seconds.
        let delay = settings.configurationRetry.delay(
            afterFailure: configurationFailures, serverDelay: serverDelay, fraction: max(fraction, 0.5))
        retryAt = now + min(delay, settings.networkRetry.maximumServerDelay)
        isolation = nil
        current = nil
        round?.ending = .configurationProblem
    }
}
