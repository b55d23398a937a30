internal import Foundation

/// The users whose events wait because of their tokens, and the newest token of each user.
struct Lanes {
    private(set) var all: [UserKey: Lane] = [:]
    private var generations: [UserKey: Int] = [:]
    private var resumption = Resumption()

    subscript(user: UserKey) -> Lane? { all[user] }

    func isBlocked(_ user: UserKey) -> Bool { all[user]?.isBlocked == true }

    var blocked: Set<UserKey> { Set(all.filter { $0.value.isBlocked }.keys) }

    /// True while the token provider is asked for somebody, whose events may be sent when it returns.
    var awaitTokens: Bool { all.values.contains(where: \.awaitsToken) }

    /// When the first wait ends.
    var nextInstant: TimeInterval? { all.values.compactMap(\.blockedUntil).min() }

    /// Changes how it stands with a user.
    mutating func change<Result>(_ user: UserKey, _ body: (inout Lane) -> Result) -> Result {
        body(&all[user, default: Lane()])
    }

    mutating func lapse(at now: TimeInterval) {
        for user in all.keys { all[user]?.lapse(at: now) }
    }

    mutating func unblock() {
        for user in all.keys { all[user]?.unblock() }
    }

    mutating func forgive() {
        for user in all.keys { all[user]?.forgive() }
    }

    mutating func clear() { all = [:] }

    /// The server has taken events of this user.
    mutating func accepted(_ user: UserKey) {
        all[user] = nil
        resumption = Resumption()
    }

    /// Returns true if events of this user may go at once that had to wait.
    mutating func tokenChanged(for user: UserKey, generation: Int, now: TimeInterval) -> Bool {
        generations[user] = generation
        guard all[user] != nil else { return false }
        // Each new token may resume at once, but not in a circle: rejected, new token, rejected, …
        let instant = resumption.take(at: now)
        all[user]?.tokenChanged(resumingAt: instant)
        return instant == nil
    }

    /// Returns true if the token provider was asked for this user.
    mutating func tokenSought(for user: UserKey) -> Bool {
        guard all[user]?.awaitsToken == true else { return false }
        all[user]?.tokenSought()
        if all[user] == Lane() { all[user] = nil }
        return true
    }

    /// A request of this user goes with the token of this generation.
    mutating func authorized(_ user: UserKey, generation: Int, provided: Bool) {
        generations[user] = generation
        if provided { all[user]?.providerSucceeded() }
    }

    /// Whether a token has been replaced.
    func isOutdated(_ generation: Int, of user: UserKey) -> Bool {
        generations[user].map { $0 > generation } ?? false
    }
}
