internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// Wakes one waiting thread.
final class SinkBell: @unchecked Sendable {
    private let condition = Condition()
    // Both are guarded by `condition`.
    private var isRung = false
    private var hasEnded = false

    var isOver: Bool { condition.withLock { hasEnded } }

    func ring() {
        condition.withLock {
            isRung = true
            condition.signal()
        }
    }

    /// Signals for the last time.
    func end() {
        condition.withLock {
            hasEnded = true
            isRung = true
            condition.signal()
        }
    }

    /// Waits for a signal since the last wait, or for the time-out.
    func wait(milliseconds: Int64) {
        condition.withLock {
            let limit = DispatchTime.now() + Milliseconds(milliseconds).seconds
            while !isRung, condition.wait(until: limit) {}
            isRung = false
        }
    }
}
