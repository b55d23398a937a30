internal import CountersignCore
internal import Foundation

/// Counts signals from any thread, for tests that wait for them. Each wait ends after `limit`, and `wait(count:)`
/// also when its task is cancelled.
package final class Handshake: Sendable {
    private struct Waiter {
        let count: Int
        let resume: @Sendable () -> Void
    }

    private struct State {
        var count = 0
        var lastID = 0
        var waiters: [Int: Waiter] = [:]
    }

    /// The maximum duration of a wait, in seconds of real time.
    private static let limit = 180
    private let state = Lock(State())

    package init() {}

    package func signal() {
        let ready = state.withLock { state in
            state.count += 1
            let ready = state.waiters.filter { $0.value.count <= state.count }
            for id in ready.keys { state.waiters[id] = nil }
            return ready.values
        }
        for waiter in ready { waiter.resume() }
    }

    /// Waits until `count` signals were given since the creation of the object.
    package func wait(count: Int = 1) async {
        let id = makeID()
        let timer = Task { [weak self] in
            try await Task.sleep(nanoseconds: UInt64(Self.limit) * 1_000_000_000)
            self?.end(id)
        }
        defer { timer.cancel() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = add(id, Waiter(count: count) { continuation.resume() }) || Task.isCancelled
                if isOver { end(id) }
            }
        } onCancel: {
            end(id)
        }
    }

    package func block() {
        let semaphore = DispatchSemaphore(value: 0)
        let id = makeID()
        if add(id, Waiter(count: 1) { semaphore.signal() }) { end(id) }
        if semaphore.wait(timeout: .now() + .seconds(Self.limit)) == .timedOut { end(id) }
    }

    private func makeID() -> Int {
        state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
    }

    /// Returns true if the signals came already.
    private func add(_ id: Int, _ waiter: Waiter) -> Bool {
        state.withLock { state in
            state.waiters[id] = waiter
            return state.count >= waiter.count
        }
    }

    private func end(_ id: Int) {
        state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
    }
}

/// Returns the value that `body` passes to `complete`. Throws `CancellationError` if the task is cancelled first.
package func completion<Value: Sendable>(
    of body: (_ complete: @escaping @Sendable (Value) -> Void) -> Void
) async throws -> Value {
    let (values, continuation) = AsyncStream.makeStream(of: Value.self)
    body { value in
        continuation.yield(value)
        continuation.finish()
    }
    for await value in values { return value }
    throw CancellationError()
}
