internal import CountersignCore
internal import Foundation

/// Carries out what `Sender` decides: one loop, one request at a time.
actor DeliveryEngine {
    enum Command: Sendable {
        case stored(Int)
        case token(SignedToken, user: UserKey)
        /// The app passed a text that cannot be a token.
        case malformedToken(user: UserKey)
        /// From a token provider that took longer than it may.
        case lateToken(SignedToken, user: UserKey, TokenDesk.Baseline)
        /// A call of the token provider has ended, or its time is up.
        case tokenSought(TokenProviderCall, TokenProviderCall.Outcome, user: UserKey)
        case forgetToken(user: UserKey, generation: Int, done: CheckedContinuation<Void, Never>)
        /// All events share one access token, and there is another one.
        case accessTokenChanged(generation: Int)
        case sendSoon
        case configure(FlushPolicy, batchEvents: Int, newestFirst: Bool = false)
        case sessionStarted
        case enteredBackground
        case enteredForeground
        case wiped(done: CheckedContinuation<Void, Never>)
        /// Says when there is nothing to do any more for now.
        case idle(CheckedContinuation<Void, Never>)
        case flush(CheckedContinuation<FlushResult, Never>)
    }

    nonisolated let inbox = Inbox<Command>()
    nonisolated let failures = Broadcast<AuthenticationFailure>()

    private let storage: Storage
    private var lease: LeaseHolder { storage.holder }
    private let dialect: any DeliveryDialect
    private let transport: any HTTPTransport
    private let clock: any ClientClock
    private let random: @Sendable () -> Double
    /// Seconds that a flush waits for a call of the token provider that was under way before it. The provider itself may
    /// wait for that flush in a way that nobody can see.
    private let providerPatience: TimeInterval
    private let log: CountersignLog?

    private var sender: Sender
    private let tokens: TokenDesk
    /// The one access token of all events; nil where each user has a token of their own.
    private let accessTokens: AccessTokens?
    /// As of the last action `authorize`.
    private var accessToken: (token: SignedToken?, generation: Int) = (nil, 0)
    private var ledger = FailureLedger()
    private var batches: [FlushResult.Batch] = []
    private var flushes: [CheckedContinuation<FlushResult, Never>] = []
    private var idlers: [CheckedContinuation<Void, Never>] = []
    /// The last one that was logged, until something is delivered.
    private var loggedProblem: ServerAnswer.Explanation?
    private var runner: Task<Void, Never>?
    private var isClosed = false
    /// The longest that a request has been allowed to take, in seconds.
    private var requestTimeout: TimeInterval
    /// As of the last claim.
    private var deviceID = ""

    init(
        configuration: CountersignConfiguration, storage: Storage, dialect: any DeliveryDialect,
        transport: any HTTPTransport, clock: any ClientClock, random: @escaping @Sendable () -> Double,
        accessTokens: AccessTokens? = nil
    ) {
        self.accessTokens = accessTokens
        self.storage = storage
        self.dialect = dialect
        self.transport = transport
        self.clock = clock
        self.random = random
        providerPatience = min(5, configuration.tokenProviderTimeout / 2)
        log = configuration.log
        requestTimeout = configuration.requestTimeout
        tokens = TokenDesk(configuration: configuration, storage: storage, clock: clock)
        sender = Sender(
            settings: Sender.Settings(
                flushPolicy: configuration.flushPolicy, networkRetry: configuration.networkRetry,
                authenticationRetry: configuration.authenticationRetry,
                batchEvents: configuration.batchEvents, batchBytes: configuration.batchBytes,
                hasTokenProvider: configuration.tokenProvider != nil || accessTokens != nil))
    }

    func start() {
        guard runner == nil, !isClosed else { return }
        runner = Task { await run() }
    }

    /// Ends a request that is under way and the loop. Events of that request stay in the queue.
    func stop() async {
        isClosed = true
        runner?.cancel()
        await tokens.stop()
        inbox.wake()
        await runner?.value
        // What came after the loop had ended: nobody must wait for ever.
        for command in inbox.close() { await handle(command) }
        finishFlushes(.closed, queued: 0)
        becomeIdle()
        _ = try? await storage.perform { [lease] queue in try queue.releaseLease(of: lease) }
        failures.finish()
    }

    nonisolated func flush() async -> FlushResult {
        await withCheckedContinuation { continuation in
            guard !inbox.post(.flush(continuation)) else { return }
            continuation.resume(returning: FlushResult(batches: [], ending: .closed, queued: 0))
        }
    }

    /// Returns when everything that was said before is done, the token provider is not being asked, and there is nothing to do
    /// but to wait, such as for the next try.
    nonisolated func idle() async {
        await withCheckedContinuation { continuation in
            if !inbox.post(.idle(continuation)) { continuation.resume() }
        }
    }

    nonisolated func forgetToken(of user: UserKey, generation: Int) async {
        await withCheckedContinuation { continuation in
            guard !inbox.post(.forgetToken(user: user, generation: generation, done: continuation)) else {
                return
            }
            continuation.resume()
        }
    }

    nonisolated func wiped() async {
        await withCheckedContinuation { continuation in
            if !inbox.post(.wiped(done: continuation)) { continuation.resume() }
        }
    }

    /// The generation of a user's newest token; 0 if there is none.
    func generation(of user: UserKey) async -> Int { await tokens.generation(of: user) }

    /// The newest token of a user.
    func token(of user: UserKey) async -> SignedToken? { await tokens.token(of: user) }

    /// Fills in what this side knows.
    func describe(_ given: CountersignSnapshot) async -> CountersignSnapshot {
        var snapshot = given
        let now = clock.uptime
        snapshot.clockOffset = await tokens.clockOffset
        snapshot.parked = sender.lanes.filter { $0.value.isBlocked }.map { user, lane in
            CountersignSnapshot.Parked(
                userID: user.userID, reason: lane.problem?.code ?? "", failures: lane.failures,
                isPaused: lane.isPaused,
                nextAttemptIn: lane.isPaused ? nil : lane.blockedUntil.map { max(0, $0 - now) })
        }.sorted { $0.userID ?? "" < $1.userID ?? "" }
        snapshot.configurationProblem = sender.configurationProblem.map { "\($0.code): \($0.reason)" }
        snapshot.lastError = sender.lastProblem.map { "\($0.code): \($0.reason)" } ?? snapshot.lastError
        snapshot.nextAttemptIn = sender.retryAt.map { max(0, $0 - now) }
        snapshot.authenticationFailures = ledger.total
        return snapshot
    }

    private func run() async {
        let waiting = try? await storage.perform { queue in try queue.value(of: .rows) }
        sender.stored(waiting ?? 0, now: clock.uptime)
        while !Task.isCancelled {
            for command in inbox.take() { await handle(command) }
            await perform(sender.next(now: clock.uptime))
        }
    }

    private func handle(_ command: Command) async {
        switch command {
        case .stored(let count):
            sender.stored(count, now: clock.uptime)
        case .token(let token, let user):
            await take(token, for: user)
        case .malformedToken(let user):
            report(.decodingError, "token_malformed", user: user, token: nil, origin: .app)
        case .lateToken(let token, let user, let baseline):
            if await tokens.baseline(of: user) == baseline { await take(token, for: user) }
        case .tokenSought(let call, let outcome, let user):
            if let failure = await tokens.returned(call, outcome, for: user, fraction: random()) {
                report(
                    failure.code, failure.problem.code, user: user, token: await tokens.token(of: user),
                    origin: .provider, requestTime: failure.requestTime)
            }
            sender.tokenSought(for: user)
            for user in await tokens.takeWaiting() { sender.tokenSought(for: user) }
        case .forgetToken(let user, let generation, let done):
            if await tokens.generation(of: user) == generation { await tokens.forget(user) }
            done.resume()
        case .accessTokenChanged(let generation):
            sender.tokenChanged(for: .anonymous, generation: generation, now: clock.uptime)
        case .sendSoon:
            sender.sendSoon()
        case .configure(let policy, let batchEvents, let newestFirst):
            sender.configure(
                flushPolicy: policy, batchEvents: batchEvents, newestFirst: newestFirst)
        case .sessionStarted:
            sender.sessionStarted()
            await tokens.resume()
            for failure in ledger.sessionStarted(at: clock.uptime) { failures.send(failure) }
        case .enteredBackground:
            ledger.isInBackground = true
            sender.enteredBackground()
        case .enteredForeground:
            for failure in ledger.enteredForeground(at: clock.uptime) { failures.send(failure) }
        case .wiped(let done):
            sender.reset()
            await tokens.forgetAll()
            ledger.removeAll()
            failures.forget { _ in true }
            done.resume()
        case .idle(let continuation):
            idlers.append(continuation)
        case .flush(let continuation):
            await tokens.resume()
            sender.flush(patience: clock.uptime + providerPatience)
            flushes.append(continuation)
        }
    }

    private func perform(_ action: Sender.Action) async {
        switch action {
        case .wait(let instant): await wait(until: instant)
        case .claim(let request): await claim(request)
        case .authorize(let user, let rejected): await authorize(user, rejectedGeneration: rejected)
        case .send(let events, let attempt): await send(events, attempt: attempt)
        case .settle(let settlement): await settle(settlement)
        case .finish(let ending): await finish(ending)
        }
    }

    private func becomeIdle() {
        for idler in idlers { idler.resume() }
        idlers = []
    }

    private func wait(until instant: TimeInterval?) async {
        if !sender.awaitsTokens { becomeIdle() }
        let timer = instant.map { instant in
            Task { [clock, inbox] in
                do {
                    try await clock.sleep(until: instant)
                    inbox.wake()
                } catch {
                    // Something else ended the wait.
                }
            }
        }
        await inbox.wait()
        timer?.cancel()
    }

    // MARK: The queue

    private enum Claim {
        case events([QueuedEvent], deviceID: String)
        case leased(until: TimeInterval)
    }

    private func claim(_ request: ClaimRequest) async {
        do {
            let claim = try await storage.run { [clock, lease, requestTimeout] storage -> Claim in
                // Another process may have said so and not have come to wipe.
                if storage.hasOptedOut { return .events([], deviceID: "") }
                return try storage.withQueue { queue in
                    if let instant = try queue.acquireLease(
                        for: lease, uptime: clock.uptime, request: requestTimeout)
                    {
                        return .leased(until: instant)
                    }
                    let events = try queue.claim(request)
                    // Nothing in the queue file, but something in the log: that is no end.
                    if events.isEmpty, let failure = storage.takeOverFailure { throw failure }
                    return .events(events, deviceID: try queue.anonymousID())
                }
            }
            switch claim {
            case .events(let events, let deviceID):
                self.deviceID = deviceID
                sender.claimed(events, now: clock.uptime, fraction: random())
            case .leased(let instant): sender.leased(until: instant)
            }
        } catch {
            log?(.warning, "queue could not be read", ["error": "\(error)"])
            sender.claimFailed(.init("queue", "\(error)"), now: clock.uptime, fraction: random())
        }
    }

    private func settle(_ settlement: Settlement) async {
        for (event, verdict) in settlement.quarantined {
            log?(.warning, "event quarantined", ["message_id": event.messageID, "code": verdict.code])
        }
        do {
            let pushedOut = try await storage.perform(usesReserve: true) { [clock] queue in
                let before = try queue.value(of: .evictedFromQuarantine)
                try queue.settle(settlement, at: clock.now)
                return try queue.value(of: .evictedFromQuarantine) - before
            }
            if pushedOut > 0 {
                log?(.warning, "quarantine is full, the oldest are gone", ["events": "\(pushedOut)"])
            }
            sender.settled()
        } catch {
            log?(.warning, "queue could not be written", ["error": "\(error)"])
            sender.settleFailed(.init("queue", "\(error)"), now: clock.uptime, fraction: random())
        }
    }

    private func finish(_ ending: FlushResult.Ending) async {
        let queued = try? await storage.perform { [lease] queue -> Int in
            try queue.releaseLease(of: lease)
            return try queue.value(of: .rows)
        }
        finishFlushes(ending, queued: queued ?? 0)
    }

    private func finishFlushes(_ ending: FlushResult.Ending, queued: Int) {
        if !flushes.isEmpty {
            let parked = sender.lanes.filter { $0.value.isBlocked }.keys
            for failure in ledger.flushEnded(parked: Set(parked), at: clock.uptime) { failures.send(failure) }
        }
        let result = FlushResult(batches: batches, ending: ending, queued: queued)
        batches = []
        for flush in flushes { flush.resume(returning: result) }
        flushes = []
    }

    // MARK: Tokens

    private func take(_ token: SignedToken, for user: UserKey) async {
        guard let generation = await tokens.set(token, for: user) else {
            if let code = await tokens.lastCode(of: user) {
                report(code, "token_unchanged", user: user, token: token, origin: .app)
            }
            return
        }
        // In answer to a refusal this is a mistake of the app; otherwise the server is the judge.
        if await tokens.lastCode(of: user) != nil, await tokens.isExpired(token) {
            report(.expired, "token_expired", user: user, token: token, origin: .app)
        }
        sender.tokenChanged(for: user, generation: generation, now: clock.uptime)
    }

    private func authorize(_ user: UserKey, rejectedGeneration: Int?) async {
        if let accessTokens {
            switch await accessTokens.authorize(rejected: rejectedGeneration) {
            case .ready(let token, let generation):
                accessToken = (token, generation)
                sender.authorized(generation: generation)
            case .unavailable(let problem, let instant):
                note(sender.authorizationDeferred(problem, until: instant))
            }
            return
        }
        let decision = await tokens.authorize(
            user, rejectedGeneration: rejectedGeneration,
            returned: { [inbox] call, outcome in inbox.post(.tokenSought(call, outcome, user: user)) },
            late: { [inbox] token, baseline in inbox.post(.lateToken(token, user: user, baseline)) })
        switch decision {
        case .ready(let generation): sender.authorized(generation: generation)
        case .pending: sender.authorizationPending()
        case .unavailable(let generation, let problem):
            note(
                sender.authorizationFailed(
                    problem, generation: generation, now: clock.uptime, fraction: random()))
        }
    }

    private func report(
        _ code: AuthErrorCode, _ reason: String, user: UserKey, token: SignedToken?,
        origin: AuthenticationFailure.Origin, isOptional: Bool = false, requestTime: Date? = nil,
        clockSkew: TimeInterval? = nil
    ) {
        log?(.info, "authentication failure", ["code": "\(code.rawValue)", "reason": reason])
        let failure = AuthenticationFailure(
            code: code, reason: reason, userID: user.userID, token: token, isOptional: isOptional,
            requestTime: requestTime ?? clock.now, origin: origin, clockSkew: clockSkew, occurrences: 1)
        if let news = ledger.record(failure, at: clock.uptime) { failures.send(news) }
    }

    // MARK: Requests

    private func send(_ events: [QueuedEvent], attempt: Int) async {
        let user = UserKey(events.first?.userID)
        let token = accessTokens == nil ? await tokens.token(of: user) : accessToken.token
        let requestTime = clock.now
        let request = dialect.request(
            for: events, token: token, attempt: attempt, deviceID: deviceID, now: requestTime)
        // Finding a token may have taken its time.
        do {
            let lapse = try await storage.perform { [clock, lease] queue in
                try queue.acquireLease(for: lease, uptime: clock.uptime, request: request.timeout)
            }
            if let instant = lapse { return sender.leased(until: instant) }
        } catch {
            log?(.warning, "queue could not be leased", ["error": "\(error)"])
            return sender.claimFailed(.init("queue", "\(error)"), now: clock.uptime, fraction: random())
        }
        requestTimeout = max(requestTimeout, request.timeout)
        do {
            let response = try await transport.send(request)
            var answer = dialect.read(response, for: events)
            if answer.retryAfter == nil, let date = answer.retryDate {
                let serverNow = clock.now + (await tokens.clockOffset)
                answer.retryAfter = max(0, date.timeIntervalSince(serverNow))
            }
            log?(.debug, "answer", ["status": "\(answer.status)", "events": "\(events.count)"])
            if let serverTime = answer.serverTime {
                await tokens.noteServerTime(serverTime)
                await accessTokens?.noteServerTime(serverTime)
            }
            let consequence = sender.answered(answer, now: clock.uptime, fraction: random())
            note(consequence)
            if let verdict = consequence?.failure {
                await tokens.noteVerdict(verdict, for: user)
                var skew = verdict.clockSkew
                if skew == nil, let token { skew = await tokens.clockSkew(token, verdict: verdict) }
                // Sent for want of a better token: that was told already.
                let isKnown = await tokens.providerCode(of: user) == verdict.code
                if isKnown, consequence?.isOptional != true { return }
                report(
                    verdict.code, verdict.reason, user: user, token: token, origin: .server,
                    isOptional: consequence?.isOptional ?? false, requestTime: requestTime,
                    clockSkew: skew)
            } else if consequence?.batch.outcome == .delivered {
                await tokens.noteVerdict(nil, for: user)
                await accessTokens?.accepted(generation: accessToken.generation)
                ledger.succeeded(user)
                failures.forget { UserKey($0.userID) == user }
            }
        } catch {
            log?(.info, "no answer", ["error": "\(error)"])
            note(sender.failed(error, now: clock.uptime, fraction: random()))
        }
    }

    /// Keeps what a flush will report; without a flush nobody asks. Logs what somebody has to change, once.
    private func note(_ consequence: Sender.Consequence?) {
        if let problem = sender.configurationProblem, problem != loggedProblem {
            loggedProblem = problem
            log?(
                .warning, "nothing is sent until settings change",
                ["code": problem.code, "reason": problem.reason])
        }
        if consequence?.batch.outcome == .delivered { loggedProblem = nil }
        if let consequence, !flushes.isEmpty { batches.append(consequence.batch) }
    }
}
