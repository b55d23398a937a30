internal import Foundation

/// A reading of both clocks, and a random number from 0 to 1 for delays.
struct ClockReading {
    /// The device clock.
    let now: Date
    /// `ClientClock.uptime`, in seconds.
    let uptime: TimeInterval
    let fraction: Double
}
