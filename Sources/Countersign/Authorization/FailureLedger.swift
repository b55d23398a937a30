internal import CountersignCore

/// Decides which authentication failures the app hears of: each (user, token, code) once, with the number of times, and
/// none while the app is in the background.
struct FailureLedger {
    private struct Key: Hashable {
        let user: UserKey
        let token: SignedToken?
        let code: AuthErrorCode
        let reason: String
    }

    /// More different failures than this are not told apart; the oldest is forgotten.
    private static let capacity = 64

    private var counts: [Key: Int] = [:]
    private var order: [Key] = []
    private var held: [AuthenticationFailure] = []

    /// The last failure, with its count, whether it was told or not.
    private(set) var last: AuthenticationFailure?
    /// Failures in all, the repeated ones included.
    private(set) var total = 0
    var isInBackground = false

    /// Counts a failure.
    ///
    /// - Returns: What to tell the app now; nil if it knows, or must not be disturbed.
    mutating func record(_ failure: AuthenticationFailure) -> AuthenticationFailure? {
        total += 1
        let key = Key(
            user: UserKey(failure.userID), token: failure.token, code: failure.code, reason: failure.reason)
        var counted = failure
        counted.occurrences = (counts[key] ?? 0) + 1
        counts[key] = counted.occurrences
        last = counted
        guard counted.occurrences == 1 else { return nil }
        order.append(key)
        if order.count > Self.capacity { counts[order.removeFirst()] = nil }
        guard isInBackground else { return counted }
        held.append(counted)
        return nil
    }

    /// The app is back.
    ///
    /// - Returns: What to tell it now.
    mutating func enteredForeground() -> [AuthenticationFailure] {
        isInBackground = false
        defer { held = [] }
        return held
    }

    /// Something was accepted for this user: the same failure would be news again.
    mutating func succeeded(_ user: UserKey) {
        for key in order where key.user == user { counts[key] = nil }
        order.removeAll { $0.user == user }
        if last.map({ UserKey($0.userID) }) == user { last = nil }
    }

    mutating func removeAll() {
        self = FailureLedger(isInBackground: isInBackground)
    }

    init(isInBackground: Bool = false) {
        self.isInBackground = isInBackground
    }
}
