internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// Wakes one thread that waits.
final class SinkBell: @unchecked Sendable {
    private let condition = Condition()
    // Both belong to `condition`.
    private var isRung = false
    private var hasEnded = false

    var isOver: Bool { condition.withLock { hasEnded } }

    func ring() {
        condition.withLock {
            isRung = true
            condition.signal()
        }
    }

    /// Rings for the last time.
    func end() {
        condition.withLock {
            hasEnded = true
            isRung = true
            condition.signal()
        }
    }

    /// Returns once it has rung since the last time, or later.
    func wait(milliseconds: Int64) {
        condition.withLock {
            let limit = DispatchTime.now() + Milliseconds(milliseconds).seconds
            while !isRung, condition.wait(until: limit) {}
            isRung = false
        }
    }
}
