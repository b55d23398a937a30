internal import Foundation

/// The users whose events wait because of their tokens or a restriction. A call that changes one
/// user takes logarithmic time.
struct UserBackoffs {
    private struct Deadline: Comparable {
        let instant: TimeInterval
        let user: UserKey

        static func < (left: Deadline, right: Deadline) -> Bool { left.instant < right.instant }
    }

    private(set) var all: [UserKey: UserBackoff] = [:]
    private(set) var blocked = BlockedUsers()
    /// The user whose token was requested last, and the generation of that user's newest token.
    private var newest: (user: UserKey, generation: Int)?
    private var resumption = Resumption()
    private var awaitingCount = 0
    /// Ends of waits. The first entry is valid; later entries may belong to waits that have ended.
    private var deadlines = Heap<Deadline>()

    subscript(user: UserKey) -> UserBackoff? { all[user] }

    func isBlocked(_ user: UserKey) -> Bool { blocked.contains(user) }

    var awaitTokens: Bool { awaitingCount > 0 }

    var nextInstant: TimeInterval? { deadlines.first?.instant }

    mutating func change<Result>(_ user: UserKey, _ body: (inout UserBackoff) -> Result) -> Result {
        var backoff = all[user] ?? UserBackoff()
        let result = body(&backoff)
        set(user, backoff)
        return result
    }

    private mutating func set(_ user: UserKey, _ backoff: UserBackoff?) {
        let before = all[user]
        all[user] = backoff
        awaitingCount += (backoff?.awaitsToken == true ? 1 : 0) - (before?.awaitsToken == true ? 1 : 0)
        if backoff?.isBlocked == true { blocked.insert(user) } else { blocked.remove(user) }
        guard before?.blockedUntil != backoff?.blockedUntil else { return }
        if let instant = backoff?.blockedUntil { deadlines.insert(Deadline(instant: instant, user: user)) }
        if deadlines.count > 2 * all.count + 100 {
            deadlines = Heap(
                all.compactMap { user, backoff in
                    backoff.blockedUntil.map { Deadline(instant: $0, user: user) }
                })
        }
        while let first = deadlines.first, all[first.user]?.blockedUntil != first.instant {
            _ = deadlines.popFirst()
        }
    }

    mutating func lapse(at now: TimeInterval) {
        while let first = deadlines.first, first.instant <= now { change(first.user) { $0.lapse(at: now) } }
    }

    mutating func unblock() {
        for user in Array(all.keys) { change(user) { $0.unblock() } }
    }

    mutating func resetFailures() {
        for user in Array(all.keys) { change(user) { $0.resetFailures() } }
    }

    mutating func clear() {
        for user in Array(all.keys) { set(user, nil) }
    }

    mutating func accepted(_ user: UserKey) {
        set(user, nil)
        resumption = Resumption()
    }

    /// Returns true if waiting events of this user can be sent at once.
    mutating func tokenChanged(for user: UserKey, generation: Int, now: TimeInterval) -> Bool {
        if newest?.user == user { newest?.generation = generation }
        guard all[user] != nil else { return false }
        // Each new token may resume sending at once, except in a loop of rejections and new tokens.
        let instant = resumption.take(at: now)
        change(user) { $0.tokenChanged(resumingAt: instant) }
        return instant == nil
    }

    /// Returns true if the user waited for the token provider.
    mutating func tokenResolved(for user: UserKey) -> Bool {
        guard all[user]?.awaitsToken == true else { return false }
        change(user) { $0.tokenResolved() }
        if all[user] == UserBackoff() { set(user, nil) }
        return true
    }

    mutating func authorized(_ user: UserKey, generation: Int, provided: Bool) {
        newest = (user, generation)
        if provided, all[user] != nil { change(user) { $0.providerSucceeded() } }
    }

    func isOutdated(_ generation: Int, of user: UserKey) -> Bool {
        newest.map { $0.user == user && $0.generation > generation } ?? false
    }
}
