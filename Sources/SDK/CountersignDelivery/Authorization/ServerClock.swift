package import Foundation

/// How far the server's clock is ahead of the device's, as long as the device's runs evenly.
///
/// When somebody sets the device clock, or the device slept while uptime stood still, what was learned says nothing any
/// more: it is dropped until the next answer.
///
/// Between two runs nobody can see that. An offset that has become wrong then costs one refresh too many, or one refused
/// request, and the answer to that says the right one.
package struct ServerClock {
    /// Seconds by which the device clock may drift against uptime, as it does while it is adjusted gradually.
    private static let tolerance: TimeInterval = 30

    private var offset: TimeInterval?
    /// Device clock less uptime at the time of the last answer; nil for an offset of an earlier run that was not used yet.
    private var base: TimeInterval?

    package init(offset: TimeInterval? = nil) {
        self.offset = offset
    }

    package mutating func learn(_ serverTime: Date, now: Date, uptime: TimeInterval) {
        offset = serverTime.timeIntervalSince(now)
        base = now.timeIntervalSince1970 - uptime
    }

    /// Returns seconds to add to the device clock; 0 if nothing is known.
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
