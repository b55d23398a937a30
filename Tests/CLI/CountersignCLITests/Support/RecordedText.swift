import CountersignCore

/// Growing text that a test can wait for.
final class RecordedText: Sendable {
    private struct State {
        var text = ""
        var watchers: [AsyncStream<Void>.Continuation] = []
    }

    private let state = Lock(State())

    var text: String { state.withLock { $0.text } }

    func append(_ more: String) {
        let watchers = state.withLock { state in
            state.text += more
            return state.watchers
        }
        for watcher in watchers { watcher.yield() }
    }

    /// Returns once `isWanted` is true for the text.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, as at the time limit of the test.
    func wait(until isWanted: (String) -> Bool) async throws {
        let (changes, watcher) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        watcher.yield()
        state.withLock { $0.watchers.append(watcher) }
        for await _ in changes where isWanted(text) { return }
        throw CancellationError()
    }
}
