internal import CountersignCore
internal import Foundation

/// Tracks the app session. A session ends after a time-out in the background, when the user changes, or when the app
/// ends it.
struct SessionTracker {
    private enum AppState {
        /// No notification has arrived yet. After a start in the background, the foreground notification arrives
        /// late. After a start by the user, it arrives at once or never.
        case unknown(since: TimeInterval)
        case foreground
        case background(since: TimeInterval)
    }

    /// Seconds in the background after which the session ends.
    let timeout: TimeInterval
    private(set) var id: String
    private var appState: AppState
    /// Nil once the app has ended the session.
    private var begun: TimeInterval?

    init(timeout: TimeInterval, now: Date, uptime: TimeInterval) {
        self.timeout = timeout
        id = UUIDv7.make(at: now)
        appState = .unknown(since: uptime)
        begun = uptime
    }

    /// The id stays until another session begins. Returns the session's seconds, or nil if it has ended already.
    mutating func end(uptime: TimeInterval) -> TimeInterval? {
        guard let begun else { return nil }
        self.begun = nil
        // The time since the app entered the background does not count.
        var end = uptime
        if case .background(let instant) = appState { end = max(begun, instant) }
        return end - begun
    }

    /// Begins a session, also while the app is in the background. Returns the seconds of the session that ends.
    mutating func begin(now: Date, uptime: TimeInterval) -> TimeInterval? {
        let ended = end(uptime: uptime)
        id = UUIDv7.make(at: now)
        begun = uptime
        if case .background = appState { appState = .background(since: uptime) }
        return ended
    }

    mutating func enterBackground(uptime: TimeInterval) {
        if case .background = appState { return }
        appState = .background(since: uptime)
    }

    mutating func enterForeground(uptime: TimeInterval, now: Date) -> (isNew: Bool, ended: TimeInterval?) {
        defer { appState = .foreground }
        switch appState {
        case .unknown(let instant), .background(let instant):
            guard begun == nil || uptime - instant >= timeout else { return (false, nil) }
        case .foreground: if begun != nil { return (false, nil) }
        }
        return (true, begin(now: now, uptime: uptime))
    }
}
