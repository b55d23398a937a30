internal import Countersign
internal import CountersignCore

/// Asks a callback for customer tokens and suspends until the answer comes.
final class CallbackProvider: AsyncAuthorizationProvider {
    private struct State {
        var lastNumber: UInt64 = 0
        var waiting: [UInt64: CheckedContinuation<String?, Never>] = [:]
    }

    private let state = Lock(State())
    private let ask: @Sendable (UInt64) -> Void

    init(_ ask: @escaping @Sendable (UInt64) -> Void) {
        self.ask = ask
    }

    func authorizationToken() async -> String? {
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
}
