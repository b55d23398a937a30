internal import CountersignCore

/// Questions for tokens that wait for an answer, by number.
final class CallbackProvider: Sendable {
    private struct State {
        var lastNumber: UInt64 = 0
        var waiting: [UInt64: CheckedContinuation<String?, Never>] = [:]
    }

    private let state = Lock(State())

    /// Calls `ask` with a number and suspends until that is answered. Nil when the task is cancelled.
    func token(_ ask: @Sendable (UInt64) -> Void) async -> String? {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isCancelled = state.withLock { state in
                    if !Task.isCancelled { state.waiting[number] = continuation }
                    return Task.isCancelled
                }
                if isCancelled {
                    continuation.resume(returning: nil)
                } else {
                    ask(number)
                }
            }
        } onCancel: {
            answer(number, nil)
        }
    }

    func answer(_ number: UInt64, _ token: String?) {
        state.withLock { $0.waiting.removeValue(forKey: number) }?.resume(returning: token)
    }

    /// Nobody answers any more.
    func end() {
        let waiting = state.withLock { state in
            defer { state.waiting = [:] }
            return Array(state.waiting.values)
        }
        for continuation in waiting { continuation.resume(returning: nil) }
    }
}
