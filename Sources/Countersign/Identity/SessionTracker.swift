internal import CountersignCore
internal import Foundation

/// When a session ends: the app has been in the background for longer than the time-out, or another user came.
struct SessionTracker {
    private enum Place {
        /// Nobody has said yet where the app is. One that the system has started in the background hears of the foreground
        /// late, and one that a person has started hears of it at once or not at all.
        case unknown(since: TimeInterval)
        case foreground
        case background(since: TimeInterval)
    }

    /// Seconds in the background that a session survives.
    let timeout: TimeInterval
    private(set) var id: String
    private var place: Place

    init(timeout: TimeInterval, now: Date, uptime: TimeInterval) {
        self.timeout = timeout
        id = UUIDv7.make(at: now)
        place = .unknown(since: uptime)
    }

    /// A session that begins while the app is in the background has begun there.
    mutating func begin(now: Date, uptime: TimeInterval) {
        id = UUIDv7.make(at: now)
        if case .background = place { place = .background(since: uptime) }
    }

    mutating func enterBackground(uptime: TimeInterval) {
        if case .background = place { return }
        place = .background(since: uptime)
    }

    /// - Returns: True if a new session began.
    mutating func enterForeground(uptime: TimeInterval, now: Date) -> Bool {
        defer { place = .foreground }
        switch place {
        case .unknown(let instant), .background(let instant):
            guard uptime - instant >= timeout else { return false }
            id = UUIDv7.make(at: now)
            return true
        case .foreground: return false
        }
    }
}
