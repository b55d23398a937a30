internal import CountersignCore
internal import Foundation

package final class BoundedQueue: Sendable {
    private let queue: DispatchQueue
    private let capacity: Int
    private let taken = Lock(0)

    package init(label: String, capacity: Int) {
        queue = DispatchQueue(label: label)
        self.capacity = capacity
    }

    /// Returns false if all slots are in use. After true, the caller must call ``async(_:)`` exactly once.
    package func take() -> Bool {
        taken.withLock { taken in
            guard taken < capacity else { return false }
            taken += 1
            return true
        }
    }

    package func async(_ work: @escaping @Sendable () -> Void) {
        queue.async { [self] in
            work()
            taken.withLock { $0 -= 1 }
        }
    }
}
