internal import CountersignCore
internal import GatewayModel

/// Tracks users whose valid token has stopped working. An attacker must not be able to switch off
/// enforcement, so a failure counts only if the same token was accepted before. Tokens and users are keyed
/// hashes, in memory only.
package struct KnownTokens: Sendable {
    package struct Sum: Equatable {
        /// Users with a token that is or was valid.
        package var users = 0
        /// Users among them whose token has failed since, without another accepted token.
        package var lost = 0
    }

    private struct User {
        var seenMilliseconds: Int64
        /// Whether the token of the user's last request failed.
        var hasLost = false
    }

    /// The minimum time that a token is remembered, unless there are too many tokens.
    private static let halfLifeMilliseconds: Int64 = 12 * 3_600_000
    private static let maximumTokens = 50_000
    private static let maximumUsers = 100_000
    private static let longestWindow: Int64 = 3_600_000
    /// The minimum time between two removals of inactive users.
    private static let sweepPause: Int64 = 60_000

    // The users by the hash of an accepted token. When `young` is full or too old, it replaces `old`.
    private var young: [UInt64: UInt64] = [:]
    private var old: [UInt64: UInt64] = [:]
    private var turnedMilliseconds: Int64 = 0
    private var users: [UInt64: User] = [:]
    /// The number of users by the second of their last request, with at most 10,800 entries.
    private var seconds: [Int64: Sum] = [:]
    private var lastMilliseconds: Int64 = 0
    private var sweptMilliseconds: Int64 = 0

    package static func hash(_ text: String) -> UInt64 {
        var hasher = Hasher()
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    mutating func note(
        _ token: UInt64, of userID: String, _ verdict: VerdictKind, _ code: AuthErrorCode?,
        atMilliseconds milliseconds: Int64
    ) {
        switch verdict {
        case .accepted:
            let user = Self.hash(userID)
            add(token, of: user, at: milliseconds)
            note(user, User(seenMilliseconds: milliseconds))
        // Users who need no token because of `ramp_percent` get a warning for the same failure.
        case .rejected where Self.isLost(code), .acceptedWithWarning where Self.isLost(code):
            guard let user = young[token] ?? old[token] else { return }
            note(user, User(seenMilliseconds: milliseconds, hasLost: true))
        default: break
        }
    }

    /// Whether a valid token can turn invalid with this failure.
    private static func isLost(_ code: AuthErrorCode?) -> Bool {
        code == .expired || code == .noMatchingPublicKeys
    }

    /// Counts users since a time within the last hour, with a resolution of one second.
    func sum(since milliseconds: Int64) -> Sum {
        var sum = Sum()
        // Excludes seconds recorded while the clock was ahead.
        let window = Self.second(milliseconds)...Self.second(milliseconds + Self.longestWindow)
        for (second, seen) in seconds where window.contains(second) {
            sum.users += seen.users
            sum.lost += seen.lost
        }
        return sum
    }

    private static func second(_ milliseconds: Int64) -> Int64 { milliseconds / 1_000 }

    private mutating func count(_ seen: User, insteadOf before: User?) {
        if let before, var sum = seconds[Self.second(before.seenMilliseconds)] {
            sum.users -= 1
            if before.hasLost { sum.lost -= 1 }
            seconds[Self.second(before.seenMilliseconds)] = sum.users > 0 ? sum : nil
        }
        seconds[Self.second(seen.seenMilliseconds), default: Sum()].users += 1
        if seen.hasLost { seconds[Self.second(seen.seenMilliseconds), default: Sum()].lost += 1 }
        guard seconds.count > 3 * Self.longestWindow / 1_000 else { return }
        let oldest = Self.second(seen.seenMilliseconds - Self.longestWindow)
        seconds = seconds.filter { $0.key >= oldest }
    }

    private mutating func add(_ token: UInt64, of user: UInt64, at milliseconds: Int64) {
        if young.count >= Self.maximumTokens
            || abs(milliseconds - turnedMilliseconds) >= Self.halfLifeMilliseconds
        {
            old = young
            young = [:]
            turnedMilliseconds = milliseconds
        }
        young[token] = user
    }

    private mutating func note(_ user: UInt64, _ seen: User) {
        // A request more than an hour back means that the clock was ahead. Drops the data recorded meanwhile.
        if seen.seenMilliseconds < lastMilliseconds - Self.longestWindow {
            users = [:]
            seconds = [:]
        }
        lastMilliseconds = seen.seenMilliseconds
        if users[user] == nil, users.count >= Self.maximumUsers {
            // Limits scans of the table. A scan for every new user would cost more than verifying a token.
            guard abs(seen.seenMilliseconds - sweptMilliseconds) >= Self.sweepPause else { return }
            sweptMilliseconds = seen.seenMilliseconds
            users = users.filter { $0.value.seenMilliseconds > seen.seenMilliseconds - Self.longestWindow }
            // A sample of 100,000 users is large enough for the percentage of lost users.
            guard users.count < Self.maximumUsers else { return }
        }
        count(seen, insteadOf: users.updateValue(seen, forKey: user))
    }
}
