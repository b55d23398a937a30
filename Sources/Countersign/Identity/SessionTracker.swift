internal import CountersignCore
internal import Foundation

/// When a session ends: the app has been in the background for longer than the time-out, or another user came.
struct SessionTracker {
    /// Seconds in the background that a session survives.
    let timeout: TimeInterval
    private(set) var id: String
    private var backgroundSince: TimeInterval?

    init(timeout: TimeInterval, now: Date) {
        self.timeout = timeout
        id = UUIDv7.make(at: now)
    }

    mutating func begin(now: Date) {
        id = UUIDv7.make(at: now)
        backgroundSince = nil
    }

    mutating func enterBackground(uptime: TimeInterval) {
        backgroundSince = backgroundSince ?? uptime
    }

    /// - Returns: True if a new session began.
    mutating func enterForeground(uptime: TimeInterval, now: Date) -> Bool {
        defer { backgroundSince = nil }
        guard let backgroundSince, uptime - backgroundSince >= timeout else { return false }
        begin(now: now)
        return true
    }
}
