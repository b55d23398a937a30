internal import CountersignCore

/// Hands values from any thread, in order, to one task that waits for them.
final class Inbox<Message: Sendable>: Sendable {
    private struct State {
        var messages: [Message] = []
        var isAwake = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Lock(State())

    func post(_ message: Message) {
        wake { $0.messages.append(message) }
    }

    /// Ends the current or the next `wait()`.
    func wake() {
        wake { _ in }
    }

    private func wake(_ change: (inout State) -> Void) {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            change(&state)
            state.isAwake = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// All messages so far.
    func take() -> [Message] {
        state.withLock { state in
            defer { state.messages = [] }
            return state.messages
        }
    }

    /// Returns when something was posted since the last call. Only one task may wait.
    func wait() async {
        await withCheckedContinuation { continuation in
            let isAwake = state.withLock { state in
                if !state.isAwake { state.waiter = continuation }
                defer { state.isAwake = false }
                return state.isAwake
            }
            if isAwake { continuation.resume() }
        }
    }
}
