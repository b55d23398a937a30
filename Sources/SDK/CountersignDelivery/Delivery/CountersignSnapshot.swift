public import Foundation

/// Counters and state of the delivery queue.
///
/// Counters of events on disk cover the life of the queue file, across restarts. Unless a file was damaged, `recorded`
/// equals `queued` + `sent` + `quarantined` + `evictedByCount` + `evictedByBytes` + `evictedByAge` + `wiped` +
/// `unreadable` - `requeued`.
public struct CountersignSnapshot: Sendable, Hashable {
    /// A user whose events wait for a token, or for the end of a restriction by the operator of the server.
    public struct Parked: Sendable, Hashable {
        /// The user; nil for events without a user.
        public let userID: String?
        /// The reason, such as `EXPIRED`, `provider_timed_out`, `logged_out` or `user_blocked`.
        public let reason: String
        /// Consecutive rejections of the user's tokens. Failures of a token provider do not count.
        public let failures: Int
        /// True if the events wait until a new token, a new session or `flush()`.
        public let isPaused: Bool
        /// Seconds until the next attempt; nil if paused, or while only a call of the token provider is pending.
        public let nextAttemptIn: TimeInterval?
    }

    /// Events in the queue.
    public var queued = 0
    /// Estimated bytes of the events in the queue file.
    public var queuedBytes = 0
    /// Events that are only in memory.
    public var unsaved = 0
    /// Events that were written to disk.
    public var recorded = 0
    /// Events that a server has accepted.
    public var sent = 0
    /// Events that a server reported as duplicates.
    public var duplicates = 0
    /// Events that were moved to quarantine, including those requeued or deleted since.
    public var quarantined = 0
    /// Events that were moved from quarantine to the queue.
    public var requeued = 0
    /// Events deleted from quarantine because of `QueueLimits.maximumQuarantinedEvents`.
    public var evictedFromQuarantine = 0
    /// Events dropped from memory since the client started, because too many waited for the disk.
    public var dropped = 0
    /// Events deleted because of `QueueLimits.maximumEvents`.
    public var evictedByCount = 0
    /// Events deleted because of `QueueLimits.maximumBytes`.
    public var evictedByBytes = 0
    /// Events deleted because of `QueueLimits.maximumAge`.
    public var evictedByAge = 0
    /// Events that the app has removed.
    public var wiped = 0
    /// Events recovered from damaged queue files.
    public var salvaged = 0
    /// Events of damaged files that could not be read, if their number is known.
    public var unreadable = 0
    /// Damaged files that were moved aside.
    public var damagedFiles = 0
    /// Users whose events wait for a token or for the end of a restriction.
    public var parked: [Parked] = []
    /// The reason why the settings must change before anything can be sent; nil without such a problem.
    public var configurationProblem: String?
    /// The last failure of a request, until the server accepts events. Without one, the last failure of the disk, until
    /// writes succeed. Otherwise nil.
    public var lastError: String?
    /// Seconds until a pause of all requests ends, such as after a failure of the server; nil without such a pause.
    public var nextAttemptIn: TimeInterval?
    /// The number of authentication failures since the client's start or last wipe, including repeated ones.
    public var authenticationFailures = 0
    /// Seconds by which the server's clock is ahead of the device's; 0 if unknown.
    public var clockOffset: TimeInterval = 0
    /// The session that events are recorded in.
    public var sessionID = ""
}
