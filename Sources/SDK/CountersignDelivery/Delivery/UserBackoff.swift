internal import Foundation

/// The back-off state of one user. Users without a problem have none.
struct UserBackoff: Equatable {
    enum State: Equatable {
        case open
        case waiting(until: TimeInterval)
        /// After too many rejections, or without a credential. Ends with a new token, a new session or a flush.
        case paused
        /// Waits for the token provider. Then waits until this uptime, unless it is nil.
        case awaitingToken(until: TimeInterval?)
    }

    /// The token that was rejected last. Generation 0 means that no token was sent. With `mayResend`, the same token
    /// may be sent again.
    enum RejectedToken: Equatable {
        case none
        case rejected(generation: Int, mayResend: Bool)
    }

    private(set) var state = State.open
    private(set) var rejection = RejectedToken.none
    /// Consecutive rejections.
    private(set) var failures = 0
    /// Consecutive failures of the token provider. After such a failure the previous token may be sent. A rejection of
    /// that token counts here and not in `failures`.
    private(set) var providerFailures = 0
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
        if case .rejected(let generation, _) = rejection { generation } else { nil }
    }

    func mustNotResend(_ generation: Int) -> Bool {
        rejection == .rejected(generation: generation, mayResend: false)
    }

    // MARK: Unblocking

    mutating func lapse(at uptime: TimeInterval) {
        if let blockedUntil, blockedUntil <= uptime { unblock() }
    }

    mutating func unblock() {
        state = awaitsToken ? .awaitingToken(until: nil) : .open
        if case .rejected(let generation, false) = rejection {
            rejection = .rejected(generation: generation, mayResend: true)
        }
    }

    mutating func resetFailures() {
        failures = 0
        providerFailures = 0
    }

    /// If `instant` is nil, the new token is sent at once.
    mutating func tokenChanged(resumingAt instant: TimeInterval?) {
        resetFailures()
        state = instant.map { .waiting(until: $0) } ?? .open
    }

    mutating func providerSucceeded() { providerFailures = 0 }

    mutating func tokenResolved() {
        state = blockedUntil.map { .waiting(until: $0) } ?? .open
    }

    // MARK: Blocking

    mutating func tokenPending() { state = .awaitingToken(until: blockedUntil) }

    mutating func tokenRejected(_ generation: Int) {
        rejection = .rejected(generation: generation, mayResend: false)
    }

    /// Allows one replacement token before the first wait.
    mutating func replaceToken(_ problem: ServerAnswer.Explanation) {
        failures = 1
        self.problem = problem
    }

    /// If `instant` is nil, pauses the user without a time limit.
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

    /// Provider failures back off like network failures, and retries never stop.
    mutating func parkForProvider(
        _ problem: ServerAnswer.Explanation, retry: RetryPolicy, serverDelay: TimeInterval?,
        now: TimeInterval, fraction: Double
    ) {
        providerFailures += 1
        let delay = retry.delay(afterFailure: providerFailures, serverDelay: serverDelay, fraction: fraction)
        hold(until: now + delay, problem)
    }
}
