internal import Foundation

/// How it stands with the events of one user. Users without a problem have none.
struct Lane: Equatable {
    /// Refused tokens and failed attempts to get one, in a row.
    var failures = 0
    /// No request before this uptime.
    var blockedUntil: TimeInterval?
    /// True after too many failures: only a new token, a session or a manual flush helps.
    var isPaused = false
    /// The generation of the token that was refused last; 0 stands for "there was none".
    var rejectedGeneration: Int?
    /// The last verdict in words, for a snapshot.
    var problem: ServerAnswer.Explanation?

    var isBlocked: Bool { isPaused || blockedUntil != nil }

    /// Ends a wait that is over.
    mutating func lapse(at uptime: TimeInterval) {
        if let blockedUntil, blockedUntil <= uptime { self.blockedUntil = nil }
    }

    /// Forgets the waiting, not the history.
    mutating func unblock() {
        blockedUntil = nil
        isPaused = false
    }
}
