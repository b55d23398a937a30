internal import Foundation

/// How it stands with the events of one user. Users without a problem have none.
struct Lane: Equatable {
    enum State: Equatable {
        case open
        /// No request before this uptime.
        case waiting(until: TimeInterval)
        /// Too many refusals: only a new token, a session or a manual flush helps.
        case paused
        /// The token provider is asked, and no request goes before this uptime either, if there is one.
        case awaitingToken(until: TimeInterval?)
    }

    /// The token that was refused last; generation 0 stands for "there was none".
    enum Refusal: Equatable {
        case none
        /// After a wait the same token may be sent again, without a better one.
        case refused(generation: Int, mayResend: Bool)
    }

    private(set) var state = State.open
    private(set) var refusal = Refusal.none
    /// Refused tokens in a row.
    private(set) var failures = 0
    /// Failures of the token provider in a row, each with the refusal of the last token that was sent all the same.
    private(set) var providerFailures = 0
    /// The last verdict in words, for a snapshot.
    private(set) var problem: ServerAnswer.Explanation?

    var isBlocked: Bool { state != .open }

    var isPaused: Bool { state == .paused }

    var awaitsToken: Bool {
        if case .awaitingToken = state { true } else { false }
    }

    var blockedUntil: TimeInterval? {
        switch state {
        case .waiting(let instant): instant
        case .awaitingToken(let instant): instant
        case .open, .paused: nil
        }
    }

    var rejectedGeneration: Int? {
        if case .refused(let generation, _) = refusal { generation } else { nil }
    }

    /// True for a token that was refused just now.
    func mustNotResend(_ generation: Int) -> Bool {
        refusal == .refused(generation: generation, mayResend: false)
    }

    // MARK: The way out

    /// Ends a wait that is over.
    mutating func lapse(at uptime: TimeInterval) {
        guard let blockedUntil, blockedUntil <= uptime else { return }
        state = awaitsToken ? .awaitingToken(until: nil) : .open
        allowResending()
    }

    /// Forgets the waiting, not the history.
    mutating func unblock() {
        state = awaitsToken ? .awaitingToken(until: nil) : .open
        allowResending()
    }

    /// Another token gets a fresh count.
    mutating func forgive() {
        failures = 0
        providerFailures = 0
    }

    /// There is another token, to be sent from `instant` on; nil: at once.
    mutating func tokenChanged(resumingAt instant: TimeInterval?) {
        forgive()
        state = instant.map { .waiting(until: $0) } ?? .open
    }

    mutating func providerSucceeded() { providerFailures = 0 }

    mutating func tokenSought() {
        state = blockedUntil.map { .waiting(until: $0) } ?? .open
    }

    private mutating func allowResending() {
        guard case .refused(let generation, false) = refusal else { return }
        refusal = .refused(generation: generation, mayResend: true)
    }

    // MARK: The way in

    mutating func tokenPending() { state = .awaitingToken(until: blockedUntil) }

    mutating func tokenRefused(_ generation: Int) {
        refusal = .refused(generation: generation, mayResend: false)
    }

    /// One replacement goes before the first wait.
    mutating func replaceToken(_ problem: ServerAnswer.Explanation) {
        failures = 1
        self.problem = problem
    }

    /// Nothing can be sent before `instant`; if that is nil, before somebody does something about it.
    mutating func hold(until instant: TimeInterval?, _ problem: ServerAnswer.Explanation) {
        self.problem = problem
        state = instant.map { .waiting(until: $0) } ?? .paused
    }

    mutating func park(
        _ problem: ServerAnswer.Explanation, retry: RetryPolicy, pauses: Bool, serverDelay: TimeInterval?,
        now: TimeInterval, fraction: Double
    ) {
        failures += 1
        let isTooOften = failures >= retry.maximumFailures
        let delay =
            isTooOften
            ? retry.maximumServerDelay
            : retry.delay(afterFailure: failures, serverDelay: serverDelay, fraction: fraction)
        hold(until: isTooOften && pauses ? nil : now + delay, problem)
    }

    /// A failing provider is like a failing network: the waits grow, and never end for good.
    mutating func parkForProvider(
        _ problem: ServerAnswer.Explanation, retry: RetryPolicy, serverDelay: TimeInterval?,
        now: TimeInterval, fraction: Double
    ) {
        providerFailures += 1
        let delay = retry.delay(afterFailure: providerFailures, serverDelay: serverDelay, fraction: fraction)
        hold(until: now + delay, problem)
    }
}
