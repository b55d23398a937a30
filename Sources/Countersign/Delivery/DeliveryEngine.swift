internal import CountersignCore
internal import Foundation

/// Carries out what `Sender` decides: one loop, one request at a time.
actor DeliveryEngine {
    enum Command: Sendable {
        case stored(Int)
        case token(SignedToken, user: UserKey)
        /// From a token provider that took longer than it may; `generation` is the newest token when it was called.
        case lateToken(SignedToken, user: UserKey, generation: Int)
        case sessionStarted
        case flush(CheckedContinuation<FlushResult, Never>)
    }

    nonisolated let inbox = Inbox<Command>()
    nonisolated let failures = Broadcast<AuthenticationFailure>()

    private let configuration: CountersignConfiguration
    private let storage: Storage
    private let dialect: any DeliveryDialect
    private let transport: any HTTPTransport
    private let clock: any ClientClock
    private let random: @Sendable () -> Double

    private var sender: Sender
    private var tokens = TokenBook()
    private var ledger = FailureLedger()
    private var providerCalls: [UserKey: TokenProviderCall] = [:]
    /// What the last refusal of a user's token said.
    private var verdicts: [UserKey: ServerAnswer.TokenVerdict] = [:]
    private var currentToken: SignedToken?
    private var clockOffset: TimeInterval = 0
    private var batches: [FlushResult.Batch] = []
    private var flushes: [CheckedContinuation<FlushResult, Never>] = []
    private var runner: Task<Void, Never>?
    private var isClosed = false

    init(
        configuration: CountersignConfiguration, storage: Storage, dialect: any DeliveryDialect,
        transport: any HTTPTransport, clock: any ClientClock, random: @escaping @Sendable () -> Double
    ) {
        self.configuration = configuration
        self.storage = storage
        self.dialect = dialect
        self.transport = transport
        self.clock = clock
        self.random = random
        sender = Sender(
            settings: Sender.Settings(
                flushPolicy: configuration.flushPolicy, networkRetry: configuration.networkRetry,
                authenticationRetry: configuration.authenticationRetry,
                batchEvents: configuration.batchEvents, batchBytes: configuration.batchBytes,
                hasTokenProvider: configuration.tokenProvider != nil))
    }

    func start() {
        guard runner == nil, !isClosed else { return }
        runner = Task { await run() }
    }

    /// Ends a request that is under way and the loop. Events of that request stay in the queue.
    func stop() async {
        isClosed = true
        runner?.cancel()
        inbox.wake()
        await runner?.value
        // A flush that came after the loop had ended.
        for command in inbox.take() { await handle(command) }
        finishFlushes(.closed, queued: 0)
        failures.finish()
    }

    nonisolated func flush() async -> FlushResult {
        await withCheckedContinuation { inbox.post(.flush($0)) }
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
            take(token, for: user)
        case .lateToken(let token, let user, let generation):
            if (tokens[user]?.generation ?? 0) == generation { take(token, for: user) }
        case .sessionStarted:
            sender.sessionStarted()
        case .flush(let continuation):
            sender.flush()
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

    private func wait(until instant: TimeInterval?) async {
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

    private func claim(_ request: ClaimRequest) async {
        do {
            let events = try await storage.perform { queue in try queue.claim(request) }
            sender.claimed(events, now: clock.uptime, fraction: random())
        } catch {
            sender.claimFailed(.init("queue", "\(error)"), now: clock.uptime, fraction: random())
        }
    }

    private func settle(_ settlement: Settlement) async {
        do {
            try await storage.perform { [clock] queue in try queue.settle(settlement, at: clock.now) }
            sender.settled()
        } catch {
            sender.settleFailed(.init("queue", "\(error)"), now: clock.uptime, fraction: random())
        }
    }

    private func finish(_ ending: FlushResult.Ending) async {
        let queued = try? await storage.perform { queue in try queue.value(of: .rows) }
        finishFlushes(ending, queued: queued ?? 0)
    }

    private func finishFlushes(_ ending: FlushResult.Ending, queued: Int) {
        let result = FlushResult(batches: batches, ending: ending, queued: queued)
        batches = []
        for flush in flushes { flush.resume(returning: result) }
        flushes = []
    }

    // MARK: Tokens

    private func take(_ token: SignedToken, for user: UserKey) {
        guard let generation = tokens.set(token, for: user) else { return }
        sender.tokenChanged(for: user, generation: generation, now: clock.uptime)
    }

    private func authorize(_ user: UserKey, rejectedGeneration: Int?) async {
        let entry = tokens[user]
        currentToken = entry?.token
        guard let userID = user.userID, let provider = configuration.tokenProvider else {
            return sender.authorized(generation: entry?.generation ?? 0)
        }
        let reason: TokenRequest.Reason
        if entry == nil {
            reason = .missing
        } else if entry?.generation == rejectedGeneration {
            reason = .rejected
        } else if let entry, isExpired(entry.token) {
            reason = .expired
        } else {
            return sender.authorized(generation: entry?.generation ?? 0)
        }
        let request = TokenRequest(
            userID: userID, reason: reason, code: reason == .rejected ? verdicts[user]?.code : nil)
        let call = providerCall(request, provider: provider, user: user)
        accept(
            await call.outcome(within: configuration.tokenProviderTimeout, on: clock), for: user,
            reason: reason, requestTime: clock.now)
    }

    /// The call that is under way, or a new one.
    private func providerCall(
        _ request: TokenRequest, provider: @escaping TokenProvider, user: UserKey
    ) -> TokenProviderCall {
        let generation = tokens[user]?.generation ?? 0
        let call = TokenProviderCall(request, provider: provider) { [inbox] text in
            guard let token = SignedToken(text) else { return }
            inbox.post(.lateToken(token, user: user, generation: generation))
        }
        providerCalls[user] = call
        return call
    }

    private func accept(
        _ outcome: TokenProviderCall.Outcome, for user: UserKey, reason: TokenRequest.Reason,
        requestTime: Date
    ) {
        let problem: ServerAnswer.Explanation
        switch outcome {
        case .token(let text):
            guard let token = SignedToken(text) else {
                problem = .init("token_malformed", "the provider returned something that is no token")
                break
            }
            if tokens[user]?.token == token {
                problem = .init(
                    "token_unchanged", "the provider returned the token that was refused or has expired")
                break
            }
            if isExpired(token) {
                problem = .init("token_expired", "the provider returned a token that has expired already")
                break
            }
            let generation = tokens.set(token, for: user) ?? 0
            currentToken = token
            return sender.authorized(generation: generation)
        case .none: problem = .init("no_token", "the provider has no token")
        case .failed: problem = .init("provider_failed", "the provider threw an error")
        case .timedOut: problem = .init("provider_timed_out", "the provider took too long")
        }
        let code: AuthErrorCode =
            reason == .missing ? .missingToken : verdicts[user]?.code ?? .expired
        report(
            AuthenticationFailure(
                code: code, reason: problem.code, userID: user.userID, token: tokens[user]?.token,
                isOptional: false, requestTime: requestTime, origin: .provider, clockSkew: nil, occurrences: 1
            ))
        note(sender.authorizationFailed(problem, now: clock.uptime, fraction: random()))
    }

    /// In the server's time: the device clock may be wrong.
    private func isExpired(_ token: SignedToken) -> Bool {
        guard let expiresAt = token.expiresAt else { return false }
        return expiresAt <= clock.now.timeIntervalSince1970 + clockOffset
    }

    private func report(_ failure: AuthenticationFailure) {
        if let news = ledger.record(failure) { failures.send(news) }
    }

    // MARK: Requests

    private func send(_ events: [QueuedEvent], attempt: Int) async {
        let user = UserKey(events.first?.userID)
        let token = currentToken
        let requestTime = clock.now
        let request = dialect.request(for: events, token: token, attempt: attempt, now: requestTime)
        do {
            let response = try await transport.send(request)
            let answer = dialect.read(response, eventCount: events.count)
            if let serverTime = answer.serverTime { clockOffset = serverTime.timeIntervalSince(clock.now) }
            let consequence = sender.answered(answer, now: clock.uptime, fraction: random())
            note(consequence)
            if let verdict = consequence?.failure {
                verdicts[user] = verdict
                report(
                    AuthenticationFailure(
                        code: verdict.code, reason: verdict.reason, userID: user.userID, token: token,
                        isOptional: consequence?.isOptional ?? false, requestTime: requestTime,
                        origin: .server,
                        clockSkew: verdict.clockSkew, occurrences: 1))
            } else if consequence?.batch.outcome == .delivered {
                verdicts[user] = nil
                ledger.succeeded(user)
                failures.forget { UserKey($0.userID) == user }
            }
        } catch {
            note(sender.failed(error, now: clock.uptime, fraction: random()))
        }
    }

    /// Keeps what a flush will report; without a flush nobody asks.
    private func note(_ consequence: Sender.Consequence?) {
        if let consequence, !flushes.isEmpty { batches.append(consequence.batch) }
    }
}
