internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel

/// A request whose batch is being stored. A single object, because a closure for each step would need an
/// allocation, and `HTTPOutcome.waiting` is generic and not specialized in this module (ADR 33).
final class StoringRequest: @unchecked Sendable {
    private struct State {
        var result: Result<AppendOutcome, StoreFailure>?
        var endedAt: UInt64?
    }

    // `start` runs before the store has the batch. Until `end`, `response` reads only `state`, which has a lock.
    private let request: HTTPRequest
    private let batch: EventBatch
    private let store: any EventStore
    private let finish: (Result<AppendOutcome, StoreFailure>) -> HTTPResponse
    private let isTraced: Bool
    private var resume: (@Sendable () -> Void)?
    private let state = Lock(State())

    init(
        _ request: HTTPRequest, _ batch: EventBatch, _ store: any EventStore,
        _ finish: @escaping (Result<AppendOutcome, StoreFailure>) -> HTTPResponse
    ) {
        self.request = request
        self.batch = batch
        self.store = store
        self.finish = finish
        isTraced = request.context.span != nil
    }

    func start(_ resume: @escaping @Sendable () -> Void) {
        if isTraced { request.context.span?.storeBegan = MonotonicClock.now }
        self.resume = resume
        store.append(batch) { self.end($0) }
    }

    private func end(_ result: Result<AppendOutcome, StoreFailure>) {
        let instant = isTraced ? MonotonicClock.now : nil
        state.withLock { $0 = State(result: result, endedAt: instant) }
        resume?()
    }

    /// The response once the batch is stored or has failed; nil before.
    func response() -> HTTPResponse? {
        let state = state.withLock { $0 }
        guard let result = state.result else { return nil }
        if let instant = state.endedAt { request.context.span?.storeEnded = instant }
        if case .success(let outcome) = result { request.context.note(outcome) }
        return finish(result)
    }
}
