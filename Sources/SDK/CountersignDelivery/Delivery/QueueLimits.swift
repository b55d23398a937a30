public import Foundation

/// Limits of the queue while events cannot be sent.
///
/// Beyond a limit of the queue on disk, the oldest events are deleted. `CountersignSnapshot` counts them by cause.
public struct QueueLimits: Sendable, Hashable {
    /// Events in the queue. Default: 100,000.
    public var maximumEvents: Int
    /// Approximate bytes of the queue on disk. Default: 64 MiB.
    public var maximumBytes: Int
    /// Maximum age of an event in seconds; `.infinity` for no limit. Default: 30 days. Measured by uptime, because
    /// the device clock may jump, so time in which the device was off does not count.
    public var maximumAge: TimeInterval
    /// Maximum bytes of one event as JSON. Default: 32 KiB. A longer event goes to quarantine when recorded.
    public var maximumEventBytes: Int
    /// Events in quarantine. Beyond this number, the oldest is deleted and counted. Default: 1,000.
    public var maximumQuarantinedEvents: Int
    /// Events that wait in memory for the disk. Further events are dropped and counted. Default: 10,000.
    public var maximumUnsavedEvents: Int
    /// Approximate bytes that wait in memory for the disk. Default: 16 MiB.
    public var maximumUnsavedBytes: Int

    /// Makes limits.
    public init(
        maximumEvents: Int = 100_000, maximumBytes: Int = 64 << 20, maximumAge: TimeInterval = 30 * 86_400,
        maximumEventBytes: Int = 32 << 10, maximumQuarantinedEvents: Int = 1_000,
        maximumUnsavedEvents: Int = 10_000, maximumUnsavedBytes: Int = 16 << 20
    ) {
        self.maximumEvents = maximumEvents
        self.maximumBytes = maximumBytes
        self.maximumAge = maximumAge
        self.maximumEventBytes = maximumEventBytes
        self.maximumQuarantinedEvents = maximumQuarantinedEvents
        self.maximumUnsavedEvents = maximumUnsavedEvents
        self.maximumUnsavedBytes = maximumUnsavedBytes
    }
}
