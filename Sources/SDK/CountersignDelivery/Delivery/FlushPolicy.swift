public import Foundation

/// Rules for automatic sending.
public struct FlushPolicy: Sendable, Hashable {
    /// Send as soon as this many events are waiting; 0 and below count as 1, nil is no limit.
    public var eventCount: Int?
    /// Send this many seconds after the first waiting event, 0 or more; nil for never.
    public var interval: TimeInterval?
    /// Send when the app goes to the background.
    public var onBackground: Bool

    /// Makes a policy.
    public init(eventCount: Int?, interval: TimeInterval?, onBackground: Bool) {
        self.eventCount = eventCount
        self.interval = interval
        self.onBackground = onBackground
    }

    /// At 20 events, 10 seconds after the first, and when the app goes to the background.
    public static let automatic = FlushPolicy(eventCount: 20, interval: 10, onBackground: true)

    /// Only when the app calls `flush()`. Failures are not retried before the next call either.
    public static let manual = FlushPolicy(eventCount: nil, interval: nil, onBackground: false)

    var isManual: Bool { eventCount == nil && interval == nil && !onBackground }
}
