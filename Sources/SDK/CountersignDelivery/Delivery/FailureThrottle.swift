internal import CountersignCore
internal import Foundation

/// Limits how often the app is notified of authentication failures. Reports each new (user, token, code, reason,
/// `isOptional`) at once, but nothing in the background. Reports an unresolved failure again at each session start.
/// Also reports it when it recurs or a flush leaves the user's events parked, at most every five minutes.
struct FailureThrottle {
    private struct Key: Hashable {
        let user: UserKey
        let token: SignedToken?
        let code: AuthErrorCode
        let reason: String
        let isOptional: Bool
    }

    private struct Entry {
        var failure: AuthenticationFailure
        /// Uptime of the last report to the app; nil if not reported yet.
        var reportedAt: TimeInterval?
    }

    /// The number of entries. Beyond it, the entry whose last occurrence is the oldest is dropped.
    private static let capacity = 64
    /// Seconds between two reports of the same failure within a session.
    private static let interval: TimeInterval = 300

    private var entries: [Key: Entry] = [:]
    /// Ordered by last occurrence, the newest at the end.
    private var order: [Key] = []

    private(set) var total = 0
    var isInBackground = false

    /// Returns the failure if the app must be notified now.
    mutating func record(_ failure: AuthenticationFailure, at uptime: TimeInterval) -> AuthenticationFailure?
    {
        total += 1
        let key = Key(
            user: UserKey(failure.userID), token: failure.token, code: failure.code, reason: failure.reason,
            isOptional: failure.isOptional)
        var counted = failure
        counted.occurrences = (entries[key]?.failure.occurrences ?? 0) + 1
        entries[key] = Entry(failure: counted, reportedAt: entries[key]?.reportedAt)
        order.removeAll { $0 == key }
        order.append(key)
        if order.count > Self.capacity { entries[order.removeFirst()] = nil }
        return report(key, at: uptime)
    }

    private mutating func report(
        _ key: Key, at uptime: TimeInterval, always: Bool = false
    ) -> AuthenticationFailure? {
        guard !isInBackground, let entry = entries[key] else { return nil }
        if let reportedAt = entry.reportedAt, !always, uptime - reportedAt < Self.interval { return nil }
        entries[key]?.reportedAt = uptime
        return entry.failure
    }

    /// Returns the failures that were never reported, because they first occurred in the background.
    mutating func enteredForeground(at uptime: TimeInterval) -> [AuthenticationFailure] {
        isInBackground = false
        return order.filter { entries[$0]?.reportedAt == nil }.compactMap { report($0, at: uptime) }
    }

    /// Returns the last failure of each user.
    mutating func sessionStarted(at uptime: TimeInterval) -> [AuthenticationFailure] {
        latest().compactMap { report($0, at: uptime, always: true) }
    }

    /// Returns the last failure of each user with parked events, unless reported within the interval.
    mutating func flushEnded(parked: Set<UserKey>, at uptime: TimeInterval) -> [AuthenticationFailure] {
        latest().filter { parked.contains($0.user) }.compactMap { report($0, at: uptime) }
    }

    private func latest() -> [Key] {
        var users: Set<UserKey> = []
        return order.reversed().filter { users.insert($0.user).inserted }.reversed()
    }

    /// Removes a user's failures when a request is accepted or the token is removed, so that a new one is reported.
    mutating func succeeded(_ user: UserKey) {
        for key in order where key.user == user { entries[key] = nil }
        order.removeAll { $0.user == user }
    }

    mutating func removeAll() {
        self = FailureThrottle(isInBackground: isInBackground)
    }

    init(isInBackground: Bool = false) {
        self.isInBackground = isInBackground
    }
}
