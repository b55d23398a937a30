public import Foundation

/// How much the queue keeps while nothing can be sent.
///
/// When a limit is passed, the oldest events go first. Each is counted by its cause in `CountersignSnapshot`.
public struct QueueLimits: Sendable, Hashable {
    /// Events in the queue. Default: 100,000.
    public var maximumEvents: Int
    /// Bytes that the queue takes on disk, about. Default: 64 MiB.
    public var maximumBytes: Int
    /// Seconds that an event waits at most; `.infinity` for as long as it takes. Default: 30 days. Time in which the app did not
    /// run counts, but not time in which the device was off: the device clock, which may jump, has no influence.
    public var maximumAge: TimeInterval
    /// Bytes of one event as JSON. A longer one is quarantined when it is recorded and never sent. Default: 32 KiB.
    public var maximumEventBytes: Int
    /// Events in quarantine; the oldest is thrown away for one more, counted and logged. Default: 1,000.
    public var maximumQuarantinedEvents: Int
    /// Events that wait in memory for the disk. One more than that is dropped and counted. Default: 10,000.
    public var maximumUnsavedEvents: Int
    /// Bytes that wait in memory for the disk, about. Default: 16 MiB.
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
