internal import CountersignCore
package import GatewayModel

/// Decides which events a ``Way`` gets next and when: in order, at least once, one batch at a time.
///
/// A follower reads no clock and does no I/O. The caller performs the returned work and reports its outcome.
package struct Follower: Sendable {
    package struct Work: Sendable, Equatable {
        /// The last sequence number before the batch.
        package var after: Int64
        /// The last sequence number of the batch, unchanged in retries; nil takes as many events as fit.
        package var through: Int64?
        /// The number of the attempt, from 1.
        package var attempt: Int
        /// The maximum number of events.
        package var limit: Int
        /// Whether to ask the receiver for its position instead of delivering.
        package var isProbe = false
    }

    package enum Outcome: Sendable {
        /// No event up to this sequence number matches the filter. `hasMore` is true if there are later
        /// events to check. `gap` must be reported with the next batch.
        case nothing(through: Int64, hasMore: Bool, gap: EventGap)
        /// The answer to a batch with this number of events.
        case answer(DeliveryAnswer, events: Int)
    }

    package private(set) var progress: DeliveryProgress
    package private(set) var isPaused: Bool
    /// The batch size, reduced after ``DeliveryAnswer/split(afterSeconds:)``.
    package private(set) var limit: Int
    private var batchSize: Int
    private let retry: Retry
    private let probeMilliseconds: Int64?
    private var nextProbe: Int64 = 0
    private var isProbing = false
    private var startedEpoch: Int64 = 0
    /// False after all stored events were delivered, until ``wake()``.
    private var mayHaveMore = true

    package init(
        _ route: DeliveryRoute, _ progress: DeliveryProgress, retry: Retry, probeMilliseconds: Int64? = nil
    ) {
        self.progress = progress
        // After a restart, a back-off continues. A wait without a failure ends.
        if progress.failingSinceMilliseconds == nil { self.progress.nextMilliseconds = 0 }
        self.retry = retry
        self.probeMilliseconds = probeMilliseconds
        isPaused = route.isPaused
        batchSize = route.batchSize
        limit = route.batchSize
        apply(route)
    }

    /// Records that new events may be available.
    package mutating func wake() { mayHaveMore = true }

    /// Begins a step and returns its work; nil if the way is paused or no work is due.
    package mutating func next(atMilliseconds now: Int64) -> Work? {
        if isPaused { return nil }
        let isProbe = probeMilliseconds.map { pause in
            DueTime.hasCome(nextProbe, at: now, within: pause) && (nextProbe == 0 || !mayHaveMore)
        }
        guard mayHaveMore || isProbe == true,
            DueTime.hasCome(progress.nextMilliseconds, at: now, within: Retry.longest)
        else { return nil }
        startedEpoch = progress.epoch
        isProbing = isProbe == true
        if isProbing {
            nextProbe = now + (probeMilliseconds ?? 0)
        } else {
            // Events stored after this line set the flag again.
            mayHaveMore = false
        }
        return Work(
            after: progress.committed, through: isProbing ? progress.committed : progress.through,
            attempt: progress.failures + 1, limit: limit, isProbe: isProbing)
    }

    /// Records that a message with this digest is about to be sent, with events up to `through`. Returns its
    /// id: that of the previous attempt if the content is the same, else a new one.
    package mutating func willSend(through: Int64, digest: String, newID: () -> String) -> String {
        let known = progress.digest == digest ? progress.messageID : nil
        let id = known ?? newID()
        progress.messageID = id
        progress.digest = digest
        progress.through = through
        return id
    }

    /// Ends a step. Returns the reason if the way must be paused; otherwise nil.
    package mutating func ended(
        _ outcome: Outcome, atMilliseconds now: Int64, fraction: Double
    ) -> WayPause.Reason? {
        // An operator has moved the position since `next`, so the outcome belongs to the old position.
        guard progress.epoch == startedEpoch else { return nil }
        let answer: DeliveryAnswer
        let events: Int
        switch outcome {
        case .nothing(let through, let hasMore, let gap):
            progress.committed = max(progress.committed, through)
            progress.gap = gap
            // A retry with `through` reads only the events of the failed attempt. Later events must still be read.
            mayHaveMore = mayHaveMore || hasMore || progress.through != nil
            // The events of an earlier failed attempt were deleted or no longer match, so nothing remains to retry.
            progress.clearFailures()
            (progress.through, progress.messageID, progress.digest) = (nil, nil, nil)
            return nil
        case .answer(let given, let count): (answer, events) = (given, count)
        }
        switch answer {
        case .delivered(let through, let receiver):
            if events > 0 {
                progress = progress.moved(to: max(progress.committed, through))
                progress.deliveredMilliseconds = now
                mayHaveMore = true
                grow()
            } else {
                progress.clearFailures()
            }
            progress.receiverSequence = max(receiver, progress.receiverSequence)
        case .moved(let sequence, let receiver):
            progress.committed = sequence
            progress.receiverSequence = receiver
            (progress.through, progress.messageID, progress.digest) = (nil, nil, nil)
            mayHaveMore = true
        case .wait(let time):
            mayHaveMore = true
            progress.clearFailures()
            progress.nextMilliseconds = time
        case .notTried:
            mayHaveMore = true
            nextProbe = 0
            progress.nextMilliseconds = now + Retry.least
        case .split(let seconds) where events > 1:
            mayHaveMore = true
            limit = max(1, events / 2)
            progress.failingSinceMilliseconds = min(progress.failingSinceMilliseconds ?? now, now)
            progress.nextMilliseconds = now + Retry.retryAfter(seconds)
        case .split(let seconds):
            return failed(DeliveryFailure("too_large", "one event is too large"), seconds, nil, now, fraction)
        case .retry(let failure, let seconds): return failed(failure, seconds, nil, now, fraction)
        case .pause(let reason, let failure): return failed(failure, nil, reason, now, fraction)
        }
        return nil
    }

    private mutating func failed(
        _ failure: DeliveryFailure, _ seconds: Int?, _ reason: WayPause.Reason?, _ now: Int64,
        _ fraction: Double
    ) -> WayPause.Reason? {
        mayHaveMore = true
        // Repeats a failed probe after the back-off. A failed batch is repeated without a probe, because a successful
        // probe would clear the failures and end the back-off of the batch.
        if isProbing { nextProbe = 0 }
        progress.failures += 1
        progress.failure = failure
        progress.failedMilliseconds = now
        let since = min(progress.failingSinceMilliseconds ?? now, now)
        progress.failingSinceMilliseconds = since
        progress.nextMilliseconds =
            now + retry.pause(failures: progress.failures, afterSeconds: seconds, fraction: fraction)
        let isPatient = retry.patience.map { now - since < $0 } ?? true
        let reason = reason ?? (isPatient ? nil : .failing)
        if reason != nil { isPaused = true }
        return reason
    }

    /// Reduces the batch size until accepted batches have raised it again.
    mutating func limit(to count: Int) { limit = min(limit, count) }

    /// Raises a reduced batch size by an eighth.
    private mutating func grow() {
        guard limit < batchSize else { return }
        limit = min(batchSize, limit + max(1, limit / 8))
    }

    /// Applies the route's settings. A change or a resume by an operator makes the next attempt due at once.
    package mutating func apply(_ route: DeliveryRoute) {
        if limit >= batchSize || limit > route.batchSize { limit = route.batchSize }
        batchSize = route.batchSize
        if route.epoch != progress.epoch {
            progress = progress.moved(to: route.start)
            (progress.epoch, progress.receiverSequence, progress.revision) = (route.epoch, 0, nil)
        }
        if route.isPaused {
            isPaused = true
        } else if isPaused || progress.revision.map({ $0 != route.revision }) ?? false {
            isPaused = false
            progress.failures = 0
            progress.failingSinceMilliseconds = nil
            progress.nextMilliseconds = 0
            nextProbe = 0
        }
        // An operator may have moved the position, so that stored events follow it.
        mayHaveMore = true
        progress.revision = route.revision
    }
}
