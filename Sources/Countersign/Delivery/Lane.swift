internal import Foundation

/// How it stands with the events of one user. Users without a problem have none.
struct Lane: Equatable {
    /// Refused tokens in a row.
    var failures = 0
    /// Failures of the token provider in a row, each with the refusal of the last token that was sent all the same.
    var providerFailures = 0
    /// No request before this uptime.
    var blockedUntil: TimeInterval?
    /// True after too many refusals: only a new token, a session or a manual flush helps.
    var isPaused = false
    /// True while the token provider is asked.
    var awaitsToken = false
    /// The generation of the token that was refused last; 0 stands for "there was none".
    var rejectedGeneration: Int?
    /// True when there was a wait since that refusal: without a better one, the same token may be sent again.
    var mayResend = false
    /// The last verdict in words, for a snapshot.
    var problem: ServerAnswer.Explanation?

    var isBlocked: Bool { isPaused || awaitsToken || blockedUntil != nil }

    /// Ends a wait that is over.
    mutating func lapse(at uptime: TimeInterval) {
        guard let blockedUntil, blockedUntil <= uptime else { return }
        self.blockedUntil = nil
        mayResend = true
    }

    /// Forgets the waiting, not the history.
    mutating func unblock() {
        blockedUntil = nil
        isPaused = false
        mayResend = true
    }

    /// Another token gets a fresh count.
    mutating func forgive() {
        failures = 0
        providerFailures = 0
    }
}
