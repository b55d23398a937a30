internal import CountersignCore
package import GatewayModel

/// Decides what to send to an endpoint and when: in order, at least once, one delivery at a time. It reads no
/// clock and does no I/O. The caller performs the returned step and reports its outcome.
package struct DeliveryMachine: Sendable {
    /// Milliseconds without a successful delivery after which an endpoint is paused. Five days is longer than
    /// the example schedule of the specification.
    package static let patience: Int64 = 5 * 86_400_000
    /// The back-off after a failed attempt: from 5 s up to a day. A `Retry-After` of up to a day is respected.
    static let retry = RetryPolicy(baseDelay: 5, maximumDelay: 86_400, maximumServerDelay: 86_400)
    /// The shortest back-off in milliseconds, so that jitter cannot cause rapid retries.
    static let leastPause: Int64 = 1_000
    static var longestPause: Int64 { Milliseconds(seconds: retry.maximumDelay).count }

    /// The milliseconds until the next attempt after `failures` consecutive failures.
    static func pause(failures: Int, retryAfterSeconds: Int?, fraction: Double) -> Int64 {
        let seconds = retry.delay(
            afterFailure: failures, serverDelay: retryAfterSeconds.map(Double.init), fraction: fraction)
        return max(leastPause, Milliseconds(seconds: seconds).count)
    }

    /// The `Retry-After` delay in milliseconds; 0 without the header.
    static func retryAfter(_ seconds: Int?) -> Int64 {
        Milliseconds(
            seconds: retry.delay(afterFailure: 1, serverDelay: seconds.map(Double.init), fraction: 0)
        ).count
    }

    package struct Work: Sendable, Equatable {
        /// The last sequence number before the delivery.
        package var after: Int64
        /// The last sequence number of the delivery, unchanged in retries; nil takes as many events as fit.
        package var through: Int64?
        /// The number of the attempt, from 1.
        package var attempt: Int
    }

    package enum Step: Sendable, Equatable {
        case deliver(Work)
        /// Nothing to do before this time in milliseconds since 1970; nil until ``wake()`` or a change of
        /// settings.
        case rest(untilMilliseconds: Int64?)
    }

    package enum Outcome: Sendable {
        /// The endpoint responded with 2xx.
        case delivered(through: Int64)
        /// No event up to this sequence number matches the endpoint's filters. `hasMore` is true if there are
        /// later events to check. `isAfterGap` is true if retention deleted events and no delivery has
        /// reported this.
        case nothing(through: Int64, hasMore: Bool, isAfterGap: Bool)
        case failed(status: Int?, retryAfterSeconds: Int?)
        /// The receiver answered 413 to several events. The next attempt has fewer.
        case tooLarge(retryAfterSeconds: Int?)
        /// No request was sent, because the events could not be read or the gateway stops.
        case notTried
    }

    package private(set) var progress: DeliveryProgress
    package private(set) var isDelivering = false
    package private(set) var isPaused: Bool
    /// False after everything was delivered, until ``wake()``.
    private var mayHaveMore = true

    package init(progress: DeliveryProgress, isPaused: Bool) {
        self.progress = progress
        self.isPaused = isPaused
    }

    /// Records that new events may be available.
    package mutating func wake() {
        mayHaveMore = true
    }

    /// Starts a step, or returns the time until which there is nothing to do.
    package mutating func next(atMilliseconds now: Int64) -> Step {
        if isDelivering || isPaused || !mayHaveMore { return .rest(untilMilliseconds: nil) }
        let due = progress.nextMilliseconds
        guard DueTime.hasCome(due, at: now, within: Self.longestPause) else {
            return .rest(untilMilliseconds: due)
        }
        isDelivering = true
        // Events stored after this line set the flag again.
        mayHaveMore = false
        return .deliver(
            Work(after: progress.committed, through: progress.through, attempt: progress.failures + 1))
    }

    /// Records that a body with this digest is about to be sent, with events up to `through`. Returns its
    /// `webhook-id`: the id of the last attempt if the body is the same, else a new one.
    package mutating func willSend(through: Int64, digest: String, newID: () -> String) -> String {
        let known = progress.digest == digest ? progress.messageID : nil
        let id = known ?? newID()
        progress.messageID = id
        progress.digest = digest
        progress.through = through
        return id
    }

    /// Ends a step. Returns the reason if the endpoint must be paused; otherwise nil.
    package mutating func ended(
        _ outcome: Outcome, atMilliseconds now: Int64, fraction: Double
    ) -> WebhookEndpoint.Pause.Reason? {
        isDelivering = false
        switch outcome {
        case .delivered(let through):
            progress = progress.moved(to: through, isAfterGap: false)
            mayHaveMore = true
        case .nothing(let through, let hasMore, let isAfterGap):
            progress = progress.moved(to: through, isAfterGap: isAfterGap)
            mayHaveMore = mayHaveMore || hasMore
        case .notTried:
            mayHaveMore = true
            progress.nextMilliseconds = now + Self.leastPause
        case .tooLarge(let retryAfterSeconds):
            mayHaveMore = true
            progress.failingSinceMilliseconds = min(progress.failingSinceMilliseconds ?? now, now)
            progress.nextMilliseconds = now + Self.retryAfter(retryAfterSeconds)
        case .failed(let status, let retryAfterSeconds):
            mayHaveMore = true
            progress.failures += 1
            let since = min(progress.failingSinceMilliseconds ?? now, now)
            progress.failingSinceMilliseconds = since
            progress.nextMilliseconds =
                now
                + Self.pause(
                    failures: progress.failures, retryAfterSeconds: retryAfterSeconds, fraction: fraction)
            let reason: WebhookEndpoint.Pause.Reason? =
                status == 410 ? .gone : now - since >= Self.patience ? .failing : nil
            if reason != nil { isPaused = true }
            return reason
        }
        return nil
    }

    package mutating func pause() {
        isPaused = true
    }

    /// Applies the endpoint's settings. A change or a resume by an operator makes the next attempt due at
    /// once.
    package mutating func take(over endpoint: WebhookEndpoint) {
        if endpoint.pause != nil {
            pause()
        } else if isPaused || progress.revision.map({ $0 != endpoint.revision }) ?? false {
            resume()
        }
        progress.revision = endpoint.revision
    }

    /// Restarts with the events of the last attempt.
    private mutating func resume() {
        isPaused = false
        mayHaveMore = true
        progress.failures = 0
        progress.failingSinceMilliseconds = nil
        progress.nextMilliseconds = 0
    }
}

extension WebhookRequest {
    /// Attempts after which a replay is given up; a test is tried once.
    package static let mostAttempts = 10

    /// Records that a body with this digest is about to be sent. If the body differs from the last attempt,
    /// it gets a new `webhook-id`.
    package mutating func willSend(digest: String, newID: () -> String) {
        if let before = self.digest, before != digest { messageID = newID() }
        self.digest = digest
    }

    /// The request's state after an attempt; nil if the request is complete. `through` is the last sequence
    /// number of a successful delivery. `isTooLarge` repeats the delivery with fewer events.
    package func after(
        delivered: Bool, through: Int64, hasMore: Bool, isTooLarge: Bool = false, retryAfterSeconds: Int?,
        atMilliseconds now: Int64, newID: () -> String, fraction: Double
    ) -> WebhookRequest? {
        var next = self
        if isTooLarge {
            next.nextMilliseconds = now + DeliveryMachine.retryAfter(retryAfterSeconds)
            return next
        }
        if delivered {
            guard kind == .replay, hasMore else { return nil }
            next.messageID = newID()
            next.digest = nil
            next.after = through
            next.failures = 0
            next.nextMilliseconds = now
            return next
        }
        next.failures += 1
        guard kind == .replay, next.failures < Self.mostAttempts else { return nil }
        next.nextMilliseconds =
            now
            + DeliveryMachine.pause(
                failures: next.failures, retryAfterSeconds: retryAfterSeconds, fraction: fraction)
        return next
    }
}
