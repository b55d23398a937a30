package import Foundation

/// The offset between the server's clock and the device clock.
///
/// Drops the offset when the device clock was set during the run, until the next response. A change of the device
/// clock between two runs is not detected: the wrong offset costs one unnecessary refresh or one rejected request.
package struct ServerClock {
    /// Seconds by which the device clock may drift against uptime, such as while NTP adjusts the clock gradually.
    private static let tolerance: TimeInterval = 30

    private var offset: TimeInterval?
    /// Device clock minus uptime at the last response, or when the offset of an earlier run was first used; nil before.
    private var base: TimeInterval?

    package init(offset: TimeInterval? = nil) {
        self.offset = offset
    }

    package mutating func learn(_ serverTime: Date, now: Date, uptime: TimeInterval) {
        offset = serverTime.timeIntervalSince(now)
        base = now.timeIntervalSince1970 - uptime
    }

    /// Seconds to add to the device clock; 0 if nothing is known.
    package mutating func offset(now: Date, uptime: TimeInterval) -> TimeInterval {
        guard let offset else { return 0 }
        let current = now.timeIntervalSince1970 - uptime
        if let base, abs(current - base) > Self.tolerance {
            self = ServerClock()
            return 0
        }
        base = base ?? current
        return offset
    }
}
