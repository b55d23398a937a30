package import Foundation

/// A counting semaphore whose timed wait uses the monotonic clock. `DispatchSemaphore` uses the time of day
/// on Linux.
package final class CountingSemaphore: Sendable {
    private let condition = Condition()
    // Guarded by `condition`.
    private nonisolated(unsafe) var free: Int

    package init(value: Int) {
        free = value
    }

    /// Decrements the count, waiting until `end` at the latest. Returns false after a timeout.
    package func wait(until end: DispatchTime) -> Bool {
        condition.withLock {
            while free <= 0 {
                guard condition.wait(until: end) else { break }
            }
            guard free > 0 else { return false }
            free -= 1
            return true
        }
    }

    package func signal() {
        condition.withLock {
            free += 1
            condition.signal()
        }
    }
}
