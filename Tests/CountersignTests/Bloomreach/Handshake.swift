import CountersignCore
import Foundation

/// Counts signals from any thread; a test waits for them without holding a thread.
final class Handshake: Sendable {
    private struct State {
        var count = 0
        var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Lock(State())

    func signal() {
        let ready = state.withLock { state in
            state.count += 1
            let count = state.count
            defer { state.waiters.removeAll { $0.count <= count } }
            return state.waiters.filter { $0.count <= count }
        }
        for waiter in ready { waiter.continuation.resume() }
    }

    /// Returns when there were as many signals since the beginning.
    func wait(count: Int = 1) async {
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                if state.count >= count { return true }
                state.waiters.append((count, continuation))
                return false
            }
            if isDone { continuation.resume() }
        }
    }

    /// Returns when a semaphore was signalled, waiting on a thread of its own.
    static func from(_ semaphore: DispatchSemaphore) async {
        let handshake = Handshake()
        Thread.detachNewThread {
            semaphore.wait()
            handshake.signal()
        }
        await handshake.wait()
    }
}
