internal import CountersignCore
internal import GatewayModel

extension EventConsumerRules {
    /// The valid durations of a lease, in seconds.
    package static let leaseSeconds = 5...600

    /// Whether a lease with this deadline has expired at `now`. Both times are in milliseconds since 1970.
    package static func hasEnded(_ deadline: Int64, at now: Int64) -> Bool {
        DueTime.hasCome(deadline, at: now, within: longestLease)
    }

    /// The latest valid deadline of a lease.
    package static func lastDeadline(at now: Int64) -> Int64 { DueTime.last(at: now, within: longestLease) }

    private static let longestLease = Milliseconds(seconds: leaseSeconds.upperBound).count
}
