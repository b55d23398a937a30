package import Foundation

/// Places that threads take and give back. A `DispatchSemaphore` is waited for until a time of day on Linux; this one goes
/// by the uptime, as ``Condition`` does.
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
