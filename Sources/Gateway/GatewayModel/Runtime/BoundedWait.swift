internal import CountersignCore
package import Foundation

/// Runs work on a serial queue and waits for its result for a limited time.
///
/// While earlier work is overdue, ``result(of:)`` returns nil immediately. So work that hangs blocks only one
/// thread, and later callers do not wait.
package final class BoundedWait: Sendable {
    private let queue: DispatchQueue
    private let limit: DispatchTimeInterval
    private let isOverdue = Lock(false)

    package init(queue: DispatchQueue, milliseconds: Int) {
        self.queue = queue
        limit = .milliseconds(milliseconds)
    }

    /// The result of `work`, or nil after the time limit. In that case `work` continues in the background.
    package func result<Value: Sendable>(of work: @escaping @Sendable () -> Value) -> Value? {
        guard !isOverdue.withLock({ $0 }) else { return nil }
        let found = Lock<Value?>(nil)
        let done = DispatchSemaphore(value: 0)
        queue.async { [isOverdue] in
            let value = work()
            isOverdue.withLock { isOverdue in
                found.withLock { $0 = value }
                isOverdue = false
            }
            done.signal()
        }
        _ = done.wait(timeout: .now() + limit)
        return isOverdue.withLock { isOverdue in
            let value = found.withLock { $0 }
            if value == nil { isOverdue = true }
            return value
        }
    }
}
