internal import CountersignCore
internal import CountersignJOSE
internal import GatewayModel

/// Tokens that were good here, and the users who have had no good one since theirs expired or its key went.
///
/// A stranger must not be able to bring enforcement down: a request counts only if the very
/// token in it was accepted before. Tokens and users are kept as keyed hashes, in memory only.
package struct KnownTokens: Sendable {
    package struct Sum: Equatable {
        /// Users with a token that is or was good.
        package var users = 0
        /// Those of them whose token has failed since, without another that was accepted.
        package var lost = 0
    }

    private struct User {
        var seenMilliseconds: Int64
        /// Whether the token failed when the user was seen last.
        var hasLost = false
    }

    /// How long a token is remembered at least, unless there are too many.
    private static let halfLifeMilliseconds: Int64 = 12 * 3_600_000
    private static let maximumTokens = 50_000
    private static let maximumUsers = 100_000
    /// The longest time that is asked for.
    private static let longestWindow: Int64 = 3_600_000
    /// Between two times that users are looked through for those that may be forgotten.
    private static let forgetPause: Int64 = 60_000

    // The users of tokens that were accepted. When `young` is full or old it takes the place of `old`.
    private var young: [UInt64: UInt64] = [:]
    private var old: [UInt64: UInt64] = [:]
    private var turnedMilliseconds: Int64 = 0
    private var users: [UInt64: User] = [:]
    /// The number of users by the second of their last request, for at most the last three hours.
    private var seconds: [Int64: Sum] = [:]
    private var lastMilliseconds: Int64 = 0
    private var forgotMilliseconds: Int64 = 0

    /// What a token is known by, and a user.
    package static func hash(_ text: String) -> UInt64 {
        var hasher = Hasher()
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    /// Notes what became of a token.
    mutating func note(
        _ token: UInt64, of userID: String, _ verdict: VerdictKind, _ code: AuthErrorCode?,
        atMilliseconds milliseconds: Int64
    ) {
        switch verdict {
        case .accepted:
            let user = Self.hash(userID)
            remember(token, of: user, at: milliseconds)
            note(user, User(seenMilliseconds: milliseconds))
        // Beyond a ramp the same token is only warned about.
        case .rejected where Self.isLost(code), .acceptedWithWarning where Self.isLost(code):
            guard let user = young[token] ?? old[token] else { return }
            note(user, User(seenMilliseconds: milliseconds, hasLost: true))
        default: break
        }
    }

    /// Whether a token that was good before is lost to its user by this failure.
    private static func isLost(_ code: AuthErrorCode?) -> Bool {
        code == .expired || code == .noMatchingPublicKeys
    }

    /// Counts users since a time within the last hour, to the second.
    func sum(since milliseconds: Int64) -> Sum {
        var sum = Sum()
        // Those that are later still were seen while the clock was ahead.
        let window = Self.second(milliseconds)...Self.second(milliseconds + Self.longestWindow)
        for (second, seen) in seconds where window.contains(second) {
            sum.users += seen.users
            sum.lost += seen.lost
        }
        return sum
    }

    private static func second(_ milliseconds: Int64) -> Int64 { milliseconds / 1_000 }

    /// Moves a user from the second of the previous request to that of the latest.
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

    private mutating func remember(_ token: UInt64, of user: UInt64, at milliseconds: Int64) {
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
        // What was seen while the clock was ahead says nothing of now. No request takes so long.
        if seen.seenMilliseconds < lastMilliseconds - Self.longestWindow {
            users = [:]
            seconds = [:]
        }
        lastMilliseconds = seen.seenMilliseconds
        if users[user] == nil, users.count >= Self.maximumUsers {
            // To go through them for every further user would take longer than to verify a token.
            guard abs(seen.seenMilliseconds - forgotMilliseconds) >= Self.forgetPause else { return }
            forgotMilliseconds = seen.seenMilliseconds
            users = users.filter { $0.value.seenMilliseconds > seen.seenMilliseconds - Self.longestWindow }
            // Beyond that a share of the first hundred thousand is as good as one of all.
            guard users.count < Self.maximumUsers else { return }
        }
        count(seen, insteadOf: users.updateValue(seen, forKey: user))
    }
}
