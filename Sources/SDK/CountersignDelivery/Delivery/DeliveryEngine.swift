internal import CountersignCore
internal import CountersignTransport
internal import Foundation

/// Runs the actions of `Sender`: one loop, one request at a time.
package actor DeliveryEngine {
    enum Command: Sendable {
        case stored(Int)
        case credentials(CredentialAction, done: CheckedContinuation<Void, Never>? = nil)
        case sendSoon
        case configure(FlushPolicy, batchEvents: Int, newestFirst: Bool = false)
        case sessionStarted
        case enteredBackground
        case enteredForeground
        case wiped(done: CheckedContinuation<Void, Never>?)
        case idle(CheckedContinuation<TimeInterval?, Never>)
        case flush(CheckedContinuation<FlushResult, Never>)
    }

    nonisolated let inbox = Inbox<Command>()
    package nonisolated let failures = Broadcast<AuthenticationFailure>()

    private let storage: Storage
    private var lease: LeaseOwner { storage.holder }
    private let destination: any Destination
    private let transport: any HTTPTransport
    private let clock: any ClientClock
    private let random: @Sendable () -> Double
    private let patience: TimeInterval
    private let headers: [String: String]
    private let log: CountersignLog?

    private var sender: Sender
    private let source: any CredentialSource
    /// Set by the action `authorize`.
    private var credential: Credential?
    private var throttle = FailureThrottle()
    private var batches: [FlushResult.Batch] = []
    private var flushes: [CheckedContinuation<FlushResult, Never>] = []
    private var idlers: [CheckedContinuation<TimeInterval?, Never>] = []
    /// The configuration problem that was logged last; nil after a delivery.
    private var loggedProblem: ServerAnswer.Explanation?
    private var warned = FirstOccurrences<Warning>()
    private(set) var runner: Task<Void, Never>?
    private var isClosed = false
    /// The longest time limit of a request so far, in seconds.
    private var requestTimeout: TimeInterval
    private var deviceID = ""
    /// The device id for requests while the disk is too full to store one.
    private let temporaryDeviceID = UUIDv7.make()

    init(
        settings: DeliverySettings, storage: Storage, destination: any Destination,
        credentials: any CredentialSource,
        transport: any HTTPTransport, clock: any ClientClock, random: @escaping @Sendable () -> Double
    ) {
        self.storage = storage
        self.destination = destination
        source = credentials
        self.transport = transport
        self.clock = clock
        self.random = random
        patience = settings.patience
        headers = settings.headers
        log = settings.log
        requestTimeout = settings.requestTimeout
        sender = Sender(
            settings: Sender.Settings(
                flushPolicy: settings.flushPolicy, networkRetry: settings.networkRetry,
                authenticationRetry: settings.authenticationRetry, batchEvents: settings.batchEvents,
                batchBytes: settings.batchBytes, hasTokenProvider: credentials.isRenewing))
    }

    func start() {
        guard runner == nil, !isClosed else { return }
        runner = Task { await run() }
    }

    /// Cancels the current request and the loop. Events of that request stay in the queue.
    func stop() async {
        isClosed = true
        runner?.cancel()
        await source.stop()
        inbox.wake()
        await runner?.value
        // Answer commands that arrived after the loop ended, so that their callers do not wait forever.
        for command in inbox.close() { await handle(command) }
        finishFlushes(.closed, queued: 0)
        becomeIdle(until: nil)
        _ = try? await storage.perform(usesReserve: true) { [lease] queue in
            try queue.releaseLease(of: lease)
        }
        failures.finish()
    }

    /// Sends everything that can be sent now, including records in memory, and returns when the sender is done.
    package nonisolated func flush() async -> FlushResult {
        await submit(Command.flush, ifClosed: FlushResult(batches: [], ending: .closed, queued: 0))
    }

    private nonisolated func submit<Answer: Sendable>(
        _ command: (CheckedContinuation<Answer, Never>) -> Command, ifClosed answer: Answer
    ) async -> Answer {
        await withCheckedContinuation { continuation in
            if !inbox.post(command(continuation)) { continuation.resume(returning: answer) }
        }
    }

    /// Waits until earlier commands are done, no user waits for the token provider, and the engine only waits, such as
    /// for a retry. Returns the uptime at which that wait ends, if any.
    @discardableResult
    nonisolated func idle() async -> TimeInterval? { await submit(Command.idle, ifClosed: nil) }

    /// Runs `work` between two steps of the engine, in the order of the calls.
    package nonisolated func post(_ work: @escaping CredentialAction) {
        inbox.post(.credentials(work))
    }

    package nonisolated func perform(_ work: @escaping CredentialAction) async {
        await submit({ .credentials(work, done: $0) }, ifClosed: ())
    }

    nonisolated func wiped() async { await submit({ .wiped(done: $0) }, ifClosed: ()) }

    func describe(_ given: CountersignSnapshot) async -> CountersignSnapshot {
        var snapshot = given
        let now = clock.uptime
        snapshot.clockOffset = await source.clockOffset
        snapshot.parked = sender.users.all.filter { $0.value.isBlocked }.map { user, backoff in
            CountersignSnapshot.Parked(
                userID: user.userID, reason: backoff.problem?.code ?? "", failures: backoff.failures,
                isPaused: backoff.isPaused,
                nextAttemptIn: backoff.isPaused ? nil : backoff.blockedUntil.map { max(0, $0 - now) })
        }.sorted { $0.userID ?? "" < $1.userID ?? "" }
        snapshot.configurationProblem = sender.breaker.configurationProblem.map { "\($0.code): \($0.reason)" }
        snapshot.lastError = sender.lastProblem.map { "\($0.code): \($0.reason)" } ?? snapshot.lastError
        snapshot.nextAttemptIn = sender.breaker.end.map { max(0, $0 - now) }
        snapshot.authenticationFailures = throttle.total
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
        case .credentials(let work, let done):
            for update in await work() { take(update) }
            done?.resume()
        case .sendSoon:
            sender.sendSoon()
        case .configure(let policy, let batchEvents, let newestFirst):
            sender.configure(
                flushPolicy: policy, batchEvents: batchEvents, newestFirst: newestFirst)
        case .sessionStarted:
            sender.sessionStarted()
            await source.resume()
            for failure in throttle.sessionStarted(at: clock.uptime) { failures.send(failure) }
        case .enteredBackground:
            throttle.isInBackground = true
            sender.enteredBackground()
        case .enteredForeground:
            for failure in throttle.enteredForeground(at: clock.uptime) { failures.send(failure) }
        case .wiped(let done):
            sender.reset()
            await source.removeAll()
            throttle.removeAll()
            failures.clearLast { _ in true }
            done?.resume()
        case .idle(let continuation):
            idlers.append(continuation)
        case .flush(let continuation):
            await source.resume()
            sender.flush(patience: clock.uptime + patience)
            flushes.append(continuation)
        }
    }

    private func perform(_ action: Sender.Action) async {
        switch action {
        case .wait(let instant): await wait(until: instant)
        case .claim(let request): await claim(request)
        case .authorize(let user, let rejected): await authorize(user, rejectedGeneration: rejected)
        case .send(let events, let attempt): await send(events, attempt: attempt)
        case .apply(let outcome): await apply(outcome)
        case .finish(let ending): await finish(ending)
        }
    }

    private func becomeIdle(until instant: TimeInterval?) {
        for idler in idlers { idler.resume(returning: instant) }
        idlers = []
    }

    private func wait(until instant: TimeInterval?) async {
        if !sender.users.awaitTokens { becomeIdle(until: instant) }
        let timer = instant.map { instant in
            Task { [clock, inbox] in
                do {
                    try await clock.sleep(until: instant)
                    inbox.wake()
                } catch {
                    // Cancelled, because the wait has ended.
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
            let claim = try await storage.run {
                [clock, lease, requestTimeout, temporaryDeviceID] storage -> Claim in
                // Another process may have opted out and ended before it wiped the queue.
                if storage.hasOptedOut { return .events([], deviceID: "") }
                // The disk may have space again.
                _ = try? storage.deleteDelivered()
                return try storage.withQueue(usesReserve: true) { queue in
                    if let instant = try queue.acquireLease(
                        for: lease, uptime: clock.uptime, request: requestTimeout)
                    {
                        return .leased(until: instant)
                    }
                    var events = try queue.claim(request, undeleted: storage.undeletedSequences)
                    // The write-ahead log may still have events, so the round is not over.
                    if events.isEmpty, let failure = storage.checkpointFailure {
                        try storage.checkpointPart(into: queue)
                        events = try queue.claim(request, undeleted: storage.undeletedSequences)
                        if events.isEmpty { throw failure }
                    }
                    return .events(events, deviceID: try queue.anonymousID(orOnFullDisk: temporaryDeviceID))
                }
            }
            switch claim {
            case .events(let events, let deviceID):
                self.deviceID = deviceID
                sender.claimed(events, now: clock.uptime)
            case .leased(let instant): sender.leased(until: instant)
            }
        } catch {
            log?(.warning, "queue could not be read", ["error": "\(error)"])
            sender.claimFailed(.init("queue", "\(error)"), now: clock.uptime, fraction: random())
        }
    }

    private func apply(_ outcome: DeliveryOutcome) async {
        for rejected in outcome.quarantined {
            log?(
                .warning, "event quarantined",
                ["message_id": rejected.event.messageID, "code": rejected.reason.code])
        }
        do {
            let pushedOut = try await storage.run { storage in try storage.apply(outcome) }
            if pushedOut > 0 {
                log?(.warning, "quarantine full, oldest events deleted", ["events": "\(pushedOut)"])
            }
            sender.applied()
        } catch {
            log?(.warning, "queue could not be written", ["error": "\(error)"])
            sender.applyFailed(.init("queue", "\(error)"), now: clock.uptime, fraction: random())
        }
    }

    private func finish(_ ending: FlushResult.Ending) async {
        let queued = try? await storage.run { [lease] storage in
            // If a full disk prevents the release, the lease expires.
            try? storage.withQueue(usesReserve: true) { queue in try queue.releaseLease(of: lease) }
            return try storage.waitingCount()
        }
        // An unreadable queue may not be empty.
        finishFlushes(queued == nil && ending == .drained ? .interrupted : ending, queued: queued ?? 0)
    }

    private func finishFlushes(_ ending: FlushResult.Ending, queued: Int) {
        if !flushes.isEmpty {
            for failure in throttle.flushEnded(parked: sender.users.blocked.users, at: clock.uptime) {
                failures.send(failure)
            }
        }
        let isParked = ending == .drained && queued > 0 && !sender.users.blocked.isEmpty
        let result = FlushResult(batches: batches, ending: isParked ? .parked : ending, queued: queued)
        batches = []
        for flush in flushes { flush.resume(returning: result) }
        flushes = []
    }

    // MARK: Credentials

    private func take(_ update: CredentialUpdate) {
        switch update {
        case .changed(let user, let generation):
            sender.tokenChanged(for: user, generation: generation, now: clock.uptime)
        case .resolved(let user): sender.tokenResolved(for: user)
        case .removed(let user):
            sender.tokenRemoved(for: user)
            // These failures are about a token that was removed.
            throttle.succeeded(user)
            failures.clearLast { UserKey($0.userID) == user }
        case .failed(let failure): report(failure)
        }
    }

    private func authorize(_ user: UserKey, rejectedGeneration: Int?) async {
        let decision = await source.credential(
            for: user, replacing: rejectedGeneration,
            post: { [inbox] work in inbox.post(.credentials(work)) })
        switch decision {
        case .ready(let credential):
            self.credential = credential
            sender.authorized(generation: credential.generation)
        case .pending: sender.authorizationPending()
        case .doubtful(let credential, let problem):
            self.credential = credential
            note(
                sender.authorizationFailed(
                    problem, generation: credential?.generation, now: clock.uptime, fraction: random()))
        case .unavailable(let problem, let instant):
            note(sender.authorizationDeferred(problem, until: instant))
        }
    }

    private enum Warning: Hashable {
        case token(UserKey, AuthErrorCode, reason: String)
        case unreachable
        case answer(code: String)
    }

    private func report(_ failure: AuthenticationFailure) {
        var values = ["code": "\(failure.code.rawValue)", "reason": failure.reason]
        var level = CountersignLog.Level.info
        let warning = Warning.token(UserKey(failure.userID), failure.code, reason: failure.reason)
        if let remedy = source.remedy, warned.insert(warning) {
            level = .warning
            let isKnown = failure.origin == .server && AuthErrorCode.all.contains(failure.code)
            values["remedy"] = isKnown ? failure.code.fix : remedy
        }
        if failure.isOptional {
            log?(level, "a token was not accepted, but its events were delivered", values)
        } else {
            log?(level, "a token is missing or was not accepted, the user's events wait", values)
        }
        if let failure = throttle.record(failure, at: clock.uptime) { failures.send(failure) }
    }

    // MARK: Requests

    private func send(_ events: [QueuedEvent], attempt: Int) async {
        let user = UserKey(events.first?.userID)
        guard let credential else { return }
        let requestTime = clock.now
        let given = destination.request(for: events, attempt: attempt, deviceID: deviceID, now: requestTime)
        let request = credential.applied(
            to: headers.reduce(given) { $0.setting($1.key, to: $1.value) })
        // Getting a token may have taken long, so renew the lease.
        do {
            let lapse = try await storage.perform { [clock, lease] queue in
                try queue.acquireLease(for: lease, uptime: clock.uptime, request: request.timeout)
            }
            if let instant = lapse { return sender.leased(until: instant) }
        } catch {
            log?(.warning, "queue could not be locked", ["error": "\(error)"])
            return sender.claimFailed(.init("queue", "\(error)"), now: clock.uptime, fraction: random())
        }
        requestTimeout = max(requestTimeout, request.timeout)
        do {
            let response = try await transport.send(request)
            let readable = response.closingTruncatedObject().redacting(credential.token?.rawValue)
            var answer = destination.read(readable, for: events)
            if answer.retryAfter == nil, let date = answer.retryDate {
                let serverNow = clock.now + (await source.clockOffset)
                answer.retryAfter = max(0, date.timeIntervalSince(serverNow))
            }
            log?(.debug, "answer", ["status": "\(answer.status)", "events": "\(events.count)"])
            if let serverTime = answer.serverTime { await source.noteServerTime(serverTime) }
            let consequence = sender.answered(answer, now: clock.uptime, fraction: random())
            note(consequence)
            if let batch = consequence?.batch, batch.outcome == .retryLater,
                warned.insert(.answer(code: batch.code))
            {
                log?(
                    .warning, "the server did not accept events, they stay queued",
                    [
                        "status": "\(answer.status)", "code": batch.code,
                        "reason": sender.lastProblem?.reason ?? "",
                        "remedy": "check the URL and the server; the SDK tries again",
                    ])
            }
            if let consequence, let verdict = consequence.failure {
                let isNew = await source.rejected(credential, of: user, verdict)
                guard isNew || consequence.isOptional else { return }
                let offset = await source.clockOffset
                report(
                    AuthenticationFailure(
                        code: verdict.code, reason: verdict.reason, userID: user.userID,
                        token: credential.token,
                        isOptional: consequence.isOptional, requestTime: requestTime, origin: .server,
                        clockSkew: verdict.clockSkew ?? clockSkew(credential.token, verdict, offset: offset),
                        occurrences: 1))
            } else if consequence?.batch.outcome == .delivered {
                await source.accepted(credential, of: user)
                throttle.succeeded(user)
                failures.clearLast { UserKey($0.userID) == user }
            }
        } catch {
            let consequence = sender.failed(error, now: clock.uptime, fraction: random())
            let isFirst =
                error.code != .cancelled && consequence?.batch.outcome == .retryLater
                && warned.insert(.unreachable)
            log?(
                isFirst ? .warning : .info, "the server was not reached, events stay queued",
                [
                    "code": error.code.rawValue, "reason": error.detail,
                    "remedy": "check the URL and the network; the SDK tries again",
                ])
            note(consequence)
        }
    }

    /// Seconds by which the device clock is ahead. Nil unless the token has expired for the server only.
    private func clockSkew(
        _ token: SignedToken?, _ verdict: ServerAnswer.TokenVerdict, offset: TimeInterval
    ) -> TimeInterval? {
        guard verdict.code == .expired, let expiresAt = token?.expiresAt,
            expiresAt > clock.now.timeIntervalSince1970
        else { return nil }
        return -offset
    }

    private func note(_ consequence: Sender.Consequence?) {
        if let problem = sender.breaker.configurationProblem, problem != loggedProblem {
            loggedProblem = problem
            log?(
                .warning, "nothing is sent until settings change",
                [
                    "code": problem.code, "reason": problem.reason,
                    "remedy": "check the URL, the key and the server's settings",
                ])
        }
        if consequence?.batch.outcome == .delivered { loggedProblem = nil }
        if let consequence, !flushes.isEmpty { batches.append(consequence.batch) }
    }
}
