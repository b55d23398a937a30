internal import CountersignCore
internal import Foundation

/// Does work one piece after the other, beside the server's thread, and takes no more than it has places for.
package final class BoundedQueue: Sendable {
    private let queue: DispatchQueue
    private let places: Int
    private let taken = Lock(0)

    package init(label: String, places: Int) {
        queue = DispatchQueue(label: label)
        self.places = places
    }

    /// Takes a place; false when there is none. Whoever has one calls ``async(_:)`` once.
    package func take() -> Bool {
        taken.withLock { taken in
            guard taken < places else { return false }
            taken += 1
            return true
        }
    }

    /// Does a piece of work that has a place, and gives the place back.
    package func async(_ work: @escaping @Sendable () -> Void) {
        queue.async { [self] in
            work()
            taken.withLock { $0 -= 1 }
        }
    }
}
