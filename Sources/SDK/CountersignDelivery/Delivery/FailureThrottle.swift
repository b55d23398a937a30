internal import CountersignCore
internal import Foundation

/// Limits how often the app is notified of authentication failures. Reports each (user, token, code,
/// `isOptional`) at once, with its count, but nothing while the app is in the background.
///
/// Reports an unresolved failure again at each session start. Also does so when it recurs or a flush leaves
/// the user's events parked, at most every five minutes.
/// has happened again or a flush has left the user's events parked, though then once in five minutes at most.
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
        /// The uptime at which the app heard of it; nil as long as it is in the background.
        var toldAt: TimeInterval?
    }

    /// More different failures than this are not told apart; the oldest is forgotten.
    private static let capacity = 64
    /// Seconds between two calls for the same failure within a session.
    private static let interval: TimeInterval = 300

    private var entries: [Key: Entry] = [:]
    /// By the last occurrence, the newest at the end.
    private var order: [Key] = []

    /// Failures in all, the repeated ones included.
    private(set) var total = 0
    var isInBackground = false

    /// Counts a failure. Returns what to tell the app now; nil if it knows, or must not be disturbed.
    mutating func record(_ failure: AuthenticationFailure, at uptime: TimeInterval) -> AuthenticationFailure?
    {
        total += 1
        let key = Key(
            user: UserKey(failure.userID), token: failure.token, code: failure.code, reason: failure.reason,
            isOptional: failure.isOptional)
        var counted = failure
        counted.occurrences = (entries[key]?.failure.occurrences ?? 0) + 1
        entries[key] = Entry(failure: counted, toldAt: entries[key]?.toldAt)
        order.removeAll { $0 == key }
        order.append(key)
        if order.count > Self.capacity { entries[order.removeFirst()] = nil }
        return tell(key, at: uptime)
    }

    private mutating func tell(
        _ key: Key, at uptime: TimeInterval, always: Bool = false
    ) -> AuthenticationFailure? {
        guard !isInBackground, let entry = entries[key] else { return nil }
        if let toldAt = entry.toldAt, !always, uptime - toldAt < Self.interval { return nil }
        entries[key]?.toldAt = uptime
        return entry.failure
    }

    /// The app is back. Returns what to tell it now.
    mutating func enteredForeground(at uptime: TimeInterval) -> [AuthenticationFailure] {
        isInBackground = false
        return order.filter { entries[$0]?.toldAt == nil }.compactMap { tell($0, at: uptime) }
    }

    /// Returns what to tell the app once more: the last failure of each user.
    mutating func sessionStarted(at uptime: TimeInterval) -> [AuthenticationFailure] {
        latest().compactMap { tell($0, at: uptime, always: true) }
    }

    /// Returns what to tell the app once more: the last failure of each user whose events a flush could not send.
    mutating func flushEnded(parked: Set<UserKey>, at uptime: TimeInterval) -> [AuthenticationFailure] {
        latest().filter { parked.contains($0.user) }.compactMap { tell($0, at: uptime) }
    }

    private func latest() -> [Key] {
        var users: Set<UserKey> = []
        return order.reversed().filter { users.insert($0.user).inserted }.reversed()
    }

    /// Removes the failures of a user after an accepted request, so that a new one is reported.
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
