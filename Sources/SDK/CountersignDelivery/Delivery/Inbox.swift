internal import CountersignCore

/// Hands values from any thread, in order, to one task that waits for them.
final class Inbox<Message: Sendable>: Sendable {
    private struct State {
        var messages: [Message] = []
        var isAwake = false
        var isClosed = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Lock(State())

    /// Returns false if the inbox is closed.
    @discardableResult
    func post(_ message: Message) -> Bool {
        let (isTaken, waiter) = state.withLock { state -> (Bool, CheckedContinuation<Void, Never>?) in
            guard !state.isClosed else { return (false, nil) }
            state.messages.append(message)
            return (true, Self.wake(&state))
        }
        waiter?.resume()
        return isTaken
    }

    /// Ends the current or the next `wait()`.
    func wake() {
        state.withLock { Self.wake(&$0) }?.resume()
    }

    private static func wake(_ state: inout State) -> CheckedContinuation<Void, Never>? {
        state.isAwake = true
        defer { state.waiter = nil }
        return state.waiter
    }

    func close() -> [Message] {
        state.withLock { state in
            state.isClosed = true
            defer { state.messages = [] }
            return state.messages
        }
    }

    func take() -> [Message] {
        state.withLock { state in
            defer { state.messages = [] }
            return state.messages
        }
    }

    /// Returns once `post` or `wake` has been called since the last return. Only one task may wait.
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
