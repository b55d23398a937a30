internal import CountersignTransport
internal import Foundation

/// One access token for the records of all users. Performs the actions that `RefreshMachine` decides.
///
/// Only one refresh runs at a time, in this process and, through a lock on the store, in all processes. A cancelled
/// caller stops waiting, but the refresh continues, because its response may be the only copy of the next token.
actor AccessTokens: CredentialSource {
    struct Dependencies: Sendable {
        var store: any TokenStore
        var lockFile: URL
        var transport: any HTTPTransport
        var clock: any ClientClock
        var random: @Sendable () -> Double
        var timeout: TimeInterval = AccessTokens.longestExchange
        var log: CountersignLog?
        /// The header fields of uploads, for refreshes too, and the only origin that may get the credentials in them.
        var common: @Sendable () -> (headers: [String: String], origin: URL?) = { ([:], nil) }
        var report: @Sendable (AuthorizationEvent) -> Void
        /// Called with the generation of the new access token.
        var changed: @Sendable (Int) -> Void
        /// Receives the tokens in use: just before `changed`, and by `reportTokens()`.
        var adopted: @Sendable (_ accessToken: String?, _ refreshToken: String?) -> Void = { _, _ in }
    }

    /// The maximum time-out of a refresh, in seconds. The gateway repeats a lost response for 60 s, so a retry fits.
    static let longestExchange: TimeInterval = 20

    private struct Change {
        let configuration: AuthorizationConfiguration
        let isSparse: Bool
        /// Uptime of the app's call, from which the lifetime of its tokens counts.
        let instant: TimeInterval
    }

    private let dependencies: Dependencies
    private let pairs: TokenPairStore
    private var configuration: AuthorizationConfiguration
    private var machine: RefreshMachine

    /// The configuration to apply once the store was read.
    private var pending: Change?
    private var preparation: Task<Void, Never>?
    private var isPrepared = false
    private var clearCount = 0
    /// The epoch of the pair in use. A different epoch on disk means that a process has removed the pair.
    private var epoch = ""
    private var mustRemove = false
    private var flight: Task<Void, Never>?
    /// The wait for a refresh by another process.
    private var locking: Task<Void, any Error>?
    private var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
    private var lastWaiter = 0
    private var timer: (instant: TimeInterval, task: Task<Void, Never>)?
    private var announced = 0
    private var isClosed = false
    private var loggedProblems = FirstOccurrences<String>()

    nonisolated var isRenewing: Bool { true }
    nonisolated var remedy: String? { nil }

    // `isSparse`: use the stored tokens even if the configuration has no token.
    init(
        configuration: AuthorizationConfiguration, isSparse: Bool = false, dependencies: Dependencies
    ) {
        self.configuration = configuration
        self.dependencies = dependencies
        pairs = TokenPairStore(store: dependencies.store, lockFile: dependencies.lockFile)
        machine = RefreshMachine(configuration: configuration)
        pending = Change(
            configuration: configuration, isSparse: isSparse, instant: dependencies.clock.uptime)
    }

    // MARK: Calls from the app

    /// Applies the configuration and stores new tokens. Ignores missing tokens, and tokens that a refresh has replaced.
    func configure(_ configuration: AuthorizationConfiguration) async {
        self.configuration = configuration
        // A stored pair that is not in use may belong to a former user. Its tokens are not combined with new ones.
        let change = Change(
            configuration: configuration,
            isSparse: pending?.isSparse ?? (machine.token.known == machine.credential),
            instant: dependencies.clock.uptime)
        if isPrepared { return await adopt(change) }
        pending = change
        await prepare()
    }

    func removeAll() async {
        await prepare()
        clearCount += 1
        machine.removeTokens()
        pending = nil
        do {
            epoch = try await pairs.removePair()
        } catch {
            dependencies.log?(.warning, "access token could not be removed", ["error": "\(error)"])
            // `prepare()` tries again before it reads the store.
            (mustRemove, isPrepared) = (true, false)
        }
        announceAndSchedule()
    }

    /// Waits until new tokens are stored and a running refresh has ended, but not for a lock of another process.
    func close() async {
        isClosed = true
        await prepare()
        timer?.task.cancel()
        timer = nil
        locking?.cancel()
        await flight?.value
    }

    private func adopt(_ change: Change) async {
        // One reading for both steps, because the device clock may be set while the pair is stored.
        let reading = reading
        let next = machine.configure(
            change.configuration, isSparse: change.isSparse, handedOverAt: change.instant, at: reading)
        if let next {
            let before = clearCount
            var isOnDisk = true
            do {
                epoch = try await pairs.save(next)
            } catch {
                isOnDisk = false
                dependencies.log?(.warning, "access token could not be stored", ["error": "\(error)"])
            }
            // `removeAll()` ran during `save`, and has removed this pair from the store too.
            guard clearCount == before else { return }
            machine.adopted(next, isOnDisk: isOnDisk, at: reading)
        }
        announceAndSchedule()
    }

    func prepare() async {
        if isPrepared { return }
        if let preparation { return await preparation.value }
        let task = Task {
            do {
                if mustRemove {
                    epoch = try await pairs.removePair()
                    mustRemove = false
                }
                let stored = try await pairs.load()
                epoch = stored.epoch
                machine.loaded(stored.pair)
                while let change = pending {
                    pending = nil
                    await adopt(change)
                }
                // Set last, so that requests wait until a stored or new token is in use.
                isPrepared = true
            } catch {
                // Do not treat an unreadable store, such as a locked Keychain, as empty: the newest pair would be lost.
                dependencies.log?(.warning, "access token could not be read", ["error": "\(error)"])
            }
            preparation = nil
        }
        preparation = task
        await task.value
    }

    private var reading: ClockReading {
        ClockReading(
            now: dependencies.clock.now, uptime: dependencies.clock.uptime, fraction: dependencies.random())
    }

    // MARK: Calls from requests

    func credential(
        for owner: UserKey, replacing rejected: Int?,
        post: @escaping @Sendable (@escaping CredentialAction) -> Void
    ) async -> CredentialDecision {
        await authorize(rejected: rejected)
    }

    /// Returns a credential, after a refresh if necessary. `rejected` is the generation of a token that was rejected.
    func authorize(rejected: Int?) async -> CredentialDecision {
        await prepare()
        guard isPrepared else {
            return .unavailable(
                .init("store_unreadable", "the stored access token cannot be read now"),
                retryAt: dependencies.clock.uptime + 5)
        }
        await checkEpoch()
        var hasWaited = false
        while true {
            switch machine.demand(
                rejected: rejected, hasWaited: hasWaited, uptime: dependencies.clock.uptime)
            {
            case .use(let generation):
                announceAndSchedule()
                var token: SignedToken?
                if let text = machine.credential?.accessToken {
                    token = SignedToken.accessToken(text, strategy: configuration.strategy)
                    // Do not send without the token: the server would reject the request and not name the cause.
                    guard token != nil else {
                        let problem = ServerAnswer.Explanation(
                            "malformed_access_token", AuthorizationStrategy.malformedToken)
                        warnOnce(
                            "the access token cannot be sent, records wait", problem,
                            remedy: "pass the accessToken as the server gave it")
                        return .unavailable(problem, retryAt: nil)
                    }
                }
                return .ready(
                    Credential(
                        configuration.strategy == .sas ? .bare : .bearer, token: token, generation: generation
                    ))
            case .unavailable(let problem, let retryAt):
                warnOnce(
                    "there is no access token, records wait", problem,
                    remedy: "pass a new accessToken, or set refreshUrl, refreshToken and refreshPayload")
                return .unavailable(problem, retryAt: retryAt)
            case .refresh:
                startFlight()
                await flightEnd()
                if Task.isCancelled {
                    return .unavailable(.init("cancelled", "the calling task was cancelled"), retryAt: nil)
                }
                hasWaited = true
            }
        }
    }

    private func checkEpoch() async {
        guard flight == nil, machine.credential != nil, let present = try? await pairs.epoch(),
            present != epoch, let stored = try? await pairs.load(), flight == nil, stored.epoch != epoch
        else { return }
        epoch = stored.epoch
        machine.reloaded(stored.pair, at: reading)
        announceAndSchedule()
    }

    /// Returns nil if `token` is not the current token.
    func generation(of token: String) -> Int? {
        machine.credential?.accessToken == token ? machine.generation : nil
    }

    func accepted(_ credential: Credential, of owner: UserKey) {
        machine.accepted(credential.generation)
    }

    func noteServerTime(_ date: Date) {
        machine.noteServerTime(date, now: dependencies.clock.now, uptime: dependencies.clock.uptime)
    }

    var clockOffset: TimeInterval {
        machine.clockOffset(now: dependencies.clock.now, uptime: dependencies.clock.uptime)
    }

    var state: AuthorizationState { machine.authorizationState(uptime: dependencies.clock.uptime) }

    // MARK: A refresh

    private func startFlight() {
        guard flight == nil else { return }
        // Not a child of the caller's task, so that cancelling the caller does not cancel the refresh.
        flight = Task {
            await refresh()
            flight = nil
            announceAndSchedule()
            let waiting = waiters.values
            waiters = [:]
            for waiter in waiting { waiter.resume() }
        }
    }

    private func flightEnd() async {
        guard flight != nil else { return }
        lastWaiter += 1
        let id = lastWaiter
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled { return continuation.resume() }
                waiters[id] = continuation
            }
        } onCancel: {
            Task { await self.release(id) }
        }
    }

    private func release(_ id: Int) {
        waiters.removeValue(forKey: id)?.resume()
    }

    private func refresh() async {
        let clock = dependencies.clock
        var answer: RefreshAnswer?
        var saveFailure: ServerAnswer.Explanation?
        var isLocked = false
        var action = machine.begin(uptime: clock.uptime)
        loop: while true {
            switch action {
            case .lock:
                do {
                    let locking = Task { try await pairs.lock(clock: clock) }
                    self.locking = locking
                    defer { self.locking = nil }
                    if isClosed { locking.cancel() }
                    try await locking.value
                    isLocked = true
                    let stored = try await pairs.load()
                    let isRemoved = stored.epoch != epoch
                    epoch = stored.epoch
                    action =
                        isRemoved
                        ? machine.superseded(by: stored.pair, at: reading)
                        : machine.locked(stored: stored.pair, at: reading)
                } catch {
                    dependencies.log?(.warning, "access token could not be locked", ["error": "\(error)"])
                    action = machine.notLocked(
                        .init("store_locked", "the stored access token cannot be read now"), at: reading)
                }
            case .send(let accessToken, let refreshToken):
                let received = await exchange(accessToken: accessToken, refreshToken: refreshToken)
                answer = received
                action = machine.answered(received, at: reading)
            case .save(let credential):
                do {
                    if let stored = try await pairs.replace(machine.base, of: epoch, with: credential) {
                        epoch = stored.epoch
                        action = machine.superseded(by: stored.pair, at: reading)
                        continue
                    }
                } catch {
                    dependencies.log?(.warning, "access token could not be stored", ["error": "\(error)"])
                    saveFailure = .init("not_stored", "the new token could not be stored; retrying")
                }
                action = machine.saved(saveFailure, at: reading)
            case .finish: break loop
            }
        }
        if isLocked { await pairs.unlock() }
        if let answer { report(answer, saveFailure: saveFailure) }
    }

    private func exchange(accessToken: String?, refreshToken: String) async -> RefreshAnswer {
        let common = dependencies.common()
        let request = RefreshRequest(
            configuration: configuration, commonHeaders: common.headers, commonOrigin: common.origin,
            timeout: dependencies.timeout
        ).make(accessToken: accessToken, refreshToken: refreshToken)
        guard let request else {
            return RefreshAnswer(failure: HTTPTransportError(.other, "tokens can no longer be refreshed"))
        }
        do {
            let response = try await dependencies.transport.send(request)
            var answer = RefreshAnswer(
                response, configuration: configuration, sent: [accessToken, refreshToken])
            if answer.retryAfter == nil, let date = ServerAnswer.retryDate(in: response) {
                answer.retryAfter = max(0, date.timeIntervalSince(dependencies.clock.now + clockOffset))
            }
            return answer
        } catch {
            return RefreshAnswer(failure: error)
        }
    }

    private func report(_ answer: RefreshAnswer, saveFailure: ServerAnswer.Explanation?) {
        let problem: ServerAnswer.Explanation? =
            switch answer.meaning {
            case .granted: saveFailure
            case .invalid(let problem), .rejected(let problem), .unusable(let problem),
                .transient(let problem):
                problem
            }
        let event = AuthorizationEvent(
            isSuccess: problem == nil, status: answer.status, response: answer.response,
            error: problem.map { "\($0.code): \($0.reason)" },
            errorDescription: problem == nil ? nil : answer.errorDescription)
        dependencies.log?(
            .info, "access token refresh", ["status": "\(event.status)", "error": event.error ?? "none"])
        if let problem {
            warnOnce("the access token was not refreshed, records wait", problem, remedy: answer.remedy)
        }
        dependencies.report(event)
    }

    private func warnOnce(_ message: StaticString, _ problem: ServerAnswer.Explanation, remedy: String) {
        guard loggedProblems.insert(problem.code) else { return }
        dependencies.log?(
            .warning, message, ["code": problem.code, "reason": problem.reason, "remedy": remedy])
    }

    private func announceAndSchedule() {
        if machine.generation != announced {
            announced = machine.generation
            reportTokens()
            dependencies.changed(announced)
        }
        let instant = isClosed || flight != nil ? nil : machine.timer
        guard instant != timer?.instant else { return }
        timer?.task.cancel()
        timer = instant.map { instant in
            let clock = dependencies.clock
            let task = Task { [weak self] in
                do {
                    try await clock.sleep(until: instant)
                    await self?.expire(at: instant)
                } catch {
                    // Cancelled, because the timer was replaced or is no longer needed.
                }
            }
            return (instant, task)
        }
    }

    /// Passes the tokens in use to `adopted`, unless the store was not read yet and no token is known.
    func reportTokens() {
        guard isPrepared || machine.credential != nil else { return }
        dependencies.adopted(machine.credential?.accessToken, machine.credential?.refreshToken)
    }

    private func expire(at instant: TimeInterval) {
        guard timer?.instant == instant else { return }
        timer = nil
        if machine.timer.map({ $0 <= dependencies.clock.uptime }) ?? false { startFlight() }
    }
}
