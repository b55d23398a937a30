package import Foundation

/// A counting semaphore whose timed wait goes by the uptime, as ``Condition``'s does. That of `DispatchSemaphore` goes by
/// the time of day on Linux.
package final class CountingSemaphore: Sendable {
    private let condition = Condition()
    // Belongs to `condition`.
    private nonisolated(unsafe) var free: Int

    package init(value: Int) {
        free = value
    }

    /// Takes a place; false when none was free until then.
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
