internal import CountersignCore

/// Passes each value to one closure and to any number of streams.
package final class Broadcast<Value: Sendable>: Sendable {
    private struct State {
        var handler: (@Sendable (Value) -> Void)?
        var streams: [Int: AsyncStream<Value>.Continuation] = [:]
        var lastID = 0
        var isFinished = false
        /// The last value, for late subscribers.
        var last: Value?
    }

    private let state = Lock(State())

    func send(_ value: Value) {
        let (handler, streams) = state.withLock { state in
            state.last = value
            return (state.handler, Array(state.streams.values))
        }
        handler?(value)
        for stream in streams { stream.yield(value) }
    }

    /// Clears the last value if it matches, so that late subscribers do not get the value.
    func clearLast(where matches: (Value) -> Bool) {
        state.withLock { state in
            if let last = state.last, matches(last) { state.last = nil }
        }
    }

    /// Sets the handler, and calls it with the last value if there is one.
    package func setHandler(_ handler: (@Sendable (Value) -> Void)?) {
        let last = state.withLock { state in
            state.handler = handler
            return state.last
        }
        if let handler, let last { handler(last) }
    }

    /// Begins with the last value, if any, and buffers the newest 64 values. Ends after `finish()`.
    package func stream() -> AsyncStream<Value> {
        AsyncStream(bufferingPolicy: .bufferingNewest(64)) { continuation in
            let id = state.withLock { state in
                state.lastID += 1
                if let last = state.last { continuation.yield(last) }
                if state.isFinished {
                    continuation.finish()
                } else {
                    state.streams[state.lastID] = continuation
                }
                return state.lastID
            }
            continuation.onTermination = { [weak self] _ in
                self?.state.withLock { $0.streams[id] = nil }
            }
        }
    }

    func finish() {
        let streams = state.withLock { state in
            state.isFinished = true
            defer { state.streams = [:] }
            return Array(state.streams.values)
        }
        for stream in streams { stream.finish() }
    }
}
