internal import CountersignCore
internal import CountersignTransport
internal import Foundation

/// Fetches a token from the app's provider for each request. Calls run one at a time, with a time limit.
///
/// A blocking provider runs on its own thread. A call that exceeds its time limit is abandoned: its late result is
/// dropped. The next call begins if fewer than `maximumAbandoned` abandoned calls still run. Tokens are never cached.
/// The task of a suspending provider is cancelled at its time limit, but may not end.
final class CustomerTokenCoordinator: Sendable {
    enum Outcome: Sendable, Equatable {
        case returned(String?)
        case failed
        case timedOut
        case cancelled
        case tooMany
        case noProvider
    }

    private enum Work: Sendable {
        /// The customer's IDs at the time of the request.
        case token([String: String])
        case notify(Notification, @Sendable (any CustomerObserving) -> Void)
    }

    private enum Notification {
        case customerChanged
        case tokenRejected
    }

    private struct Job {
        let id: Int
        var work: Work
        /// Nil for a notification and after a cancellation.
        var waiter: CheckedContinuation<Outcome, Never>?
    }

    private struct State {
        var provider: CustomerTokenProvider?
        var lastID = 0
        var waiting: [Job] = []
        var running: Job?
        var abandoned: Set<Int> = []
        var timers: [Int: Task<Void, Never>] = [:]
        /// The running call of a suspending provider. Nil for a blocking provider, which cannot be cancelled.
        var task: Task<Void, Never>?
    }

    /// The customer's IDs during a call of a suspending provider.
    @TaskLocal static var customerIDs: [String: String]?

    /// The maximum number of requests that wait for a token. Further requests fail at once.
    static let maximumWaiting = 256
    /// The maximum number of abandoned calls that still run. At this number, further calls wait.
    static let maximumAbandoned = 4

    private let state: Lock<State>
    private let timeout: TimeInterval
    private let clock: any ClientClock
    private let run: @Sendable (@escaping @Sendable () async -> Void) -> Task<Void, Never>

    // `timeout`: seconds for a request, including the wait for earlier requests.
    init(
        provider: CustomerTokenProvider?, timeout: TimeInterval, clock: any ClientClock,
        run: @escaping @Sendable (@escaping @Sendable () async -> Void) -> Task<Void, Never> = {
            ProviderThread.run($0)
        }
    ) {
        self.run = run
        state = Lock(State(provider: provider))
        self.timeout = timeout
        self.clock = clock
    }

    func setProvider(_ provider: CustomerTokenProvider?) {
        state.withLock { $0.provider = provider }
    }

    /// Notifies the provider before it is called for later requests. Requests that wait already may come first.
    func customerChanged(to ids: [String: String]) {
        notify(.customerChanged) { $0.customerChanged(to: ids) }
    }

    func tokenRejected() {
        notify(.tokenRejected) { $0.customerTokenRefused() }
    }

    private func notify(
        _ notification: Notification, _ body: @escaping @Sendable (any CustomerObserving) -> Void
    ) {
        let next = state.withLock { state -> Start? in
            guard state.provider != nil else { return nil }
            // Replace a waiting notification of the same kind, so that the queue stays short while a provider hangs.
            let waiting = state.waiting.firstIndex {
                if case .notify(notification, _) = $0.work { true } else { false }
            }
            if let waiting {
                state.waiting[waiting].work = .notify(notification, body)
            } else {
                let job = Job(id: Self.makeID(&state), work: .notify(notification, body), waiter: nil)
                enqueue(job, in: &state)
            }
            return Self.takeNext(&state)
        }
        if let next { start(next) }
    }

    func token(for ids: [String: String]) async -> Outcome {
        let id = state.withLock { Self.makeID(&$0) }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (rejection, next) = state.withLock { state -> (Outcome?, Start?) in
                    if Task.isCancelled { return (.cancelled, nil) }
                    if state.provider == nil { return (.noProvider, nil) }
                    guard state.waiting.count < Self.maximumWaiting else { return (.tooMany, nil) }
                    enqueue(Job(id: id, work: .token(ids), waiter: continuation), in: &state)
                    return (nil, Self.takeNext(&state))
                }
                if let rejection { continuation.resume(returning: rejection) }
                if let next { start(next) }
            }
        } onCancel: {
            cancel(id)
        }
    }

    private static func makeID(_ state: inout State) -> Int {
        state.lastID += 1
        return state.lastID
    }

    private func enqueue(_ job: Job, in state: inout State) {
        state.waiting.append(job)
        setTimer(job.id, in: &state)
    }

    private func setTimer(_ id: Int, in state: inout State) {
        let deadline = clock.uptime + timeout
        state.timers[id] = Task { [weak self, clock] in
            do {
                try await clock.sleep(until: deadline)
                self?.timeIsUp(id)
            } catch {
                // Cancelled because the job finished or was removed.
            }
        }
    }

    // MARK: The queue of calls

    private struct Start: Sendable {
        let id: Int
        let work: Work
        let provider: CustomerTokenProvider?
    }

    private static func takeNext(_ state: inout State) -> Start? {
        // Suspending providers without their own threads run on Swift's pool, which a blocking call would use up.
        var maximum = maximumAbandoned
        if case .suspending = state.provider?.kind, !ProviderThread.isApart { maximum = 1 }
        guard state.running == nil, state.abandoned.count < maximum, !state.waiting.isEmpty else {
            return nil
        }
        let job = state.waiting.removeFirst()
        state.running = job
        return Start(id: job.id, work: job.work, provider: state.provider)
    }

    private func start(_ job: Start) {
        switch job.provider?.kind {
        case .blocking(let blocking):
            Thread.detachNewThread {
                let outcome = TokenProviderCall.$isInside.withValue(true) { () -> Outcome in
                    switch job.work {
                    case .token: return .returned(blocking.provider.getAuthorizationToken())
                    case .notify(_, let body):
                        (blocking.provider as? any CustomerObserving).map(body)
                        return .returned(nil)
                    }
                }
                self.finish(job.id, outcome)
            }
        case .suspending(let provider):
            let task = run {
                let outcome = await TokenProviderCall.$isInside.withValue(true) { () async -> Outcome in
                    switch job.work {
                    case .token(let ids):
                        do {
                            return try await Self.$customerIDs.withValue(ids) {
                                .returned(try await provider.authorizationToken())
                            }
                        } catch {
                            return error is TokenProviderTimeout ? .timedOut : .failed
                        }
                    case .notify(_, let body):
                        (provider as? any CustomerObserving).map(body)
                        return .returned(nil)
                    }
                }
                self.finish(job.id, outcome)
            }
            let isLate = state.withLock { state in
                if state.running?.id == job.id { state.task = task }
                return state.abandoned.contains(job.id)
            }
            // The time limit passed before `state.task` was set, so `timeIsUp` could not cancel the task.
            if isLate { task.cancel() }
        case .className, nil: finish(job.id, .noProvider)
        }
    }

    private func finish(_ id: Int, _ outcome: Outcome) {
        let (waiter, next) = state.withLock { state -> (CheckedContinuation<Outcome, Never>?, Start?) in
            state.timers.removeValue(forKey: id)?.cancel()
            var waiter: CheckedContinuation<Outcome, Never>?
            if state.running?.id == id {
                waiter = state.running?.waiter
                state.running = nil
                state.task = nil
            } else {
                state.abandoned.remove(id)
            }
            return (waiter, Self.takeNext(&state))
        }
        waiter?.resume(returning: outcome)
        if let next { start(next) }
    }

    private func timeIsUp(_ id: Int) {
        let (waiter, task, next) = state.withLock {
            state -> (CheckedContinuation<Outcome, Never>?, Task<Void, Never>?, Start?) in
            state.timers[id] = nil
            if let running = state.running, running.id == id {
                let task = state.task
                state.running = nil
                state.task = nil
                state.abandoned.insert(id)
                return (running.waiter, task, Self.takeNext(&state))
            }
            guard let index = state.waiting.firstIndex(where: { $0.id == id }) else { return (nil, nil, nil) }
            if case .notify = state.waiting[index].work {
                // A waiting notification is not dropped when its time is up, because a provider that misses it keeps
                // an earlier customer's token. The timer starts again.
                setTimer(id, in: &state)
                return (nil, nil, nil)
            }
            return (state.waiting.remove(at: index).waiter, nil, nil)
        }
        task?.cancel()
        waiter?.resume(returning: .timedOut)
        if let next { start(next) }
    }

    /// Ends the wait of a cancelled request. A call in progress continues, and the next call begins after it.
    private func cancel(_ id: Int) {
        let waiter = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
            if state.running?.id == id {
                defer { state.running?.waiter = nil }
                return state.running?.waiter
            }
            guard let index = state.waiting.firstIndex(where: { $0.id == id }) else { return nil }
            state.timers.removeValue(forKey: id)?.cancel()
            return state.waiting.remove(at: index).waiter
        }
        waiter?.resume(returning: .cancelled)
    }
}
