package import GatewayModel

/// Decides what an endpoint is sent and when: in order, at least once, one request at a time. It reads no clock and sends
/// nothing; whoever runs it does what it says and tells it what became of that.
package struct DeliveryMachine: Sendable {
    /// An endpoint that has taken nothing for so many milliseconds is paused: five days, after which the specification's
    /// example schedule has ended too.
    package static let patience: Int64 = 5 * 86_400_000

    /// What is to be delivered.
    package struct Work: Sendable, Equatable {
        package var messageID: String
        /// Events after this number …
        package var after: Int64
        /// … and up to this one: the same as before when it is tried again. Nil takes as many as fit.
        package var through: Int64?
        /// Counts from 1.
        package var attempt: Int
    }

    package enum Step: Sendable, Equatable {
        case deliver(Work)
        /// Nothing to do before this time, in milliseconds since 1970; nil until something changes.
        case rest(untilMilliseconds: Int64?)
    }

    /// What became of a step.
    package enum Outcome: Sendable {
        /// It was taken: 2xx.
        case delivered(through: Int64)
        /// There is no event up to this number that the endpoint wants. True when there are some after it to look at.
        case nothing(through: Int64, hasMore: Bool)
        case failed(status: Int?, retryAfterSeconds: Int?)
        /// Nobody was asked: the events could not be read, or the gateway stops.
        case notTried
    }

    package private(set) var progress: DeliveryProgress
    package private(set) var isDelivering = false
    package private(set) var isPaused: Bool
    /// False once everything was delivered, until there is more.
    private var mayHaveMore = true

    package init(progress: DeliveryProgress, isPaused: Bool) {
        self.progress = progress
        self.isPaused = isPaused
    }

    /// There may be something new.
    package mutating func wake() {
        mayHaveMore = true
    }

    /// Begins a step, or says until when there is none. `newID` makes the id of something that was not tried before.
    package mutating func next(atMilliseconds now: Int64, newID: () -> String) -> Step {
        if isDelivering || isPaused || !mayHaveMore { return .rest(untilMilliseconds: nil) }
        let due = progress.nextMilliseconds
        guard DueTime.hasCome(due, at: now, within: RetryPause.longest) else {
            return .rest(untilMilliseconds: due)
        }
        isDelivering = true
        // What is stored from now on may be missed by the work, and wakes again.
        mayHaveMore = false
        return .deliver(
            Work(
                messageID: progress.messageID ?? newID(), after: progress.committed,
                through: progress.through, attempt: progress.failures + 1))
    }

    /// The work's events were read, up to this number, and will now be sent: what is tried again later is the same.
    package mutating func willSend(_ work: Work, through: Int64) {
        progress.messageID = work.messageID
        progress.through = through
    }

    /// A step has ended. Returns why the endpoint is to be paused; nil when it goes on.
    package mutating func ended(
        _ outcome: Outcome, atMilliseconds now: Int64, random: (ClosedRange<Int64>) -> Int64
    ) -> WebhookEndpoint.Pause.Reason? {
        isDelivering = false
        switch outcome {
        case .delivered(let through):
            progress = DeliveryProgress(committed: max(progress.committed, through))
            mayHaveMore = true
        case .nothing(let through, let hasMore):
            progress = DeliveryProgress(committed: max(progress.committed, through))
            mayHaveMore = mayHaveMore || hasMore
        case .notTried:
            mayHaveMore = true
            progress.nextMilliseconds = now + RetryPause.least
        case .failed(let status, let retryAfterSeconds):
            mayHaveMore = true
            progress.failures += 1
            let since = min(progress.failingSinceMilliseconds ?? now, now)
            progress.failingSinceMilliseconds = since
            progress.nextMilliseconds =
                now
                + RetryPause.milliseconds(
                    failures: progress.failures, retryAfterSeconds: retryAfterSeconds, random: random)
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

    /// Begins again, with what was tried last.
    package mutating func resume() {
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

    /// The request after an attempt, which has come `through` a number of event when it was delivered; nil when it is over.
    package func after(
        delivered: Bool, through: Int64, hasMore: Bool, retryAfterSeconds: Int?, atMilliseconds now: Int64,
        newID: () -> String, random: (ClosedRange<Int64>) -> Int64
    ) -> WebhookRequest? {
        var next = self
        if delivered {
            guard kind == .replay, hasMore else { return nil }
            next.messageID = newID()
            next.after = through
            next.failures = 0
            next.nextMilliseconds = now
            return next
        }
        next.failures += 1
        guard kind == .replay, next.failures < Self.mostAttempts else { return nil }
        next.nextMilliseconds =
            now
            + RetryPause.milliseconds(
                failures: next.failures, retryAfterSeconds: retryAfterSeconds, random: random)
        return next
    }
}
