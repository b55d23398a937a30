public import Foundation

/// The clock of the SDK, replaceable in tests. Changes of the device clock do not affect back-off and time-outs.
public protocol ClientClock: Sendable {
    /// The device's clock, which the user can change.
    var now: Date { get }

    /// Seconds since some fixed moment; never goes backwards.
    var uptime: TimeInterval { get }

    /// Waits until an uptime.
    ///
    /// - Parameter uptime: The end of the wait, in seconds of `uptime`.
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    func sleep(until uptime: TimeInterval) async throws
}

/// The system's clocks.
public struct SystemClock: ClientClock {
    /// Makes a clock.
    public init() {}

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var now: Date { Date() }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var uptime: TimeInterval {
        var time = timespec()
        #if canImport(Darwin)
            clock_gettime(CLOCK_MONOTONIC, &time)
        #else
            // Counts the time in which the device sleeps, as Darwin's monotonic clock does.
            clock_gettime(CLOCK_BOOTTIME, &time)
        #endif
        return TimeInterval(time.tv_sec) + TimeInterval(time.tv_nsec) / 1_000_000_000
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func sleep(until uptime: TimeInterval) async throws {
        repeat {
            let seconds = min(max(0, uptime - self.uptime), 86_400)
            try await Task.sleep(nanoseconds: UInt64(seconds * 1_000_000_000))
        } while self.uptime < uptime
    }
}
