internal import CountersignCore
internal import CountersignDelivery
internal import CountersignTransport
internal import Foundation

/// Pending token requests, by number.
final class CallbackProvider: Sendable {
    private typealias Outcome = Result<String?, TokenProviderTimeout>

    private struct PendingRequest {
        let continuation: CheckedContinuation<Outcome, Never>
        let timer: Task<Void, Never>

        func complete(_ outcome: Outcome) {
            timer.cancel()
            continuation.resume(returning: outcome)
        }
    }

    private struct State {
        var lastNumber: UInt64 = 0
        var waiting: [UInt64: PendingRequest] = [:]
        var isEnded = false
    }

    private let state = Lock(State())
    private let clock: any ClientClock

    init(clock: any ClientClock = SystemClock()) {
        self.clock = clock
    }

    /// Calls `request` with a new number and suspends until `answer` is called with it. Returns nil when the task is
    /// cancelled, and after `end`.
    ///
    /// Throws after the given seconds. The caller has its own time limit, but requests no other token of this user
    /// while the call is pending, so an unanswered request would block the user forever.
    func token(
        within seconds: TimeInterval, _ request: @Sendable (UInt64) -> Void
    ) async throws(TokenProviderTimeout) -> String? {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let deadline = clock.uptime + seconds
        let outcome: Outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isRequested = state.withLock { state in
                    if Task.isCancelled || state.isEnded { return false }
                    let timer = Task { [self, clock] in
                        do {
                            try await clock.sleep(until: deadline)
                            complete(number, .failure(TokenProviderTimeout()))
                        } catch {
                            // Answered in time.
                        }
                    }
                    state.waiting[number] = PendingRequest(continuation: continuation, timer: timer)
                    return true
                }
                if isRequested { request(number) } else { continuation.resume(returning: .success(nil)) }
            }
        } onCancel: {
            answer(number, nil)
        }
        return try outcome.get()
    }

    /// Does nothing if the request has an outcome already.
    func answer(_ number: UInt64, _ token: String?) { complete(number, .success(token)) }

    private func complete(_ number: UInt64, _ outcome: Outcome) {
        state.withLock { $0.waiting.removeValue(forKey: number) }?.complete(outcome)
    }

    /// Completes all pending requests and rejects new ones.
    func end() {
        let waiting = state.withLock { state in
            state.isEnded = true
            defer { state.waiting = [:] }
            return Array(state.waiting.values)
        }
        for request in waiting { request.complete(.success(nil)) }
    }
}
