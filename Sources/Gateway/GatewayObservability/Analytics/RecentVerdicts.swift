internal import GatewayModel

package struct RecentVerdicts: Sendable {
    package struct Sum: Equatable {
        /// Requests of users with enforcement `required`, and the rejected ones among them.
        package var required = 0
        package var rejected = 0
        /// Requests that were not rejected.
        package var accepted = 0
        package var events = 0
    }

    private struct Second {
        let start: Int64
        var sum = Sum()
    }

    private static let maximumSeconds = 3_601
    private var seconds: [Second] = []

    mutating func note(
        _ verdict: VerdictKind, _ enforcement: Enforcement?, events: Int, atMilliseconds milliseconds: Int64
    ) {
        let start = milliseconds / 1000 * 1000
        // A request more than an hour back means that the clock was ahead. Drops the data recorded meanwhile.
        if let last = seconds.last, last.start > start + Int64(Self.maximumSeconds) * 1000 { seconds = [] }
        if seconds.last.map({ $0.start < start }) ?? true {
            if seconds.count >= Self.maximumSeconds { seconds.removeFirst() }
            seconds.append(Second(start: start))
        }
        let last = seconds.count - 1
        // Excludes requests without a user, which need no token. Warnings have the enforcement `optional`.
        if enforcement == .required, verdict == .accepted || verdict == .rejected {
            seconds[last].sum.required += 1
            if verdict == .rejected { seconds[last].sum.rejected += 1 }
        }
        if verdict != .rejected { seconds[last].sum.accepted += 1 }
        seconds[last].sum.events += events
    }

    func add(to sum: inout Sum, since milliseconds: Int64) {
        let first = milliseconds / 1000 * 1000
        let end = first + Int64(Self.maximumSeconds) * 1000
        for second in seconds.reversed().drop(while: { $0.start > end }).prefix(while: { $0.start >= first })
        {
            sum.required += second.sum.required
            sum.rejected += second.sum.rejected
            sum.accepted += second.sum.accepted
            sum.events += second.sum.events
        }
    }
}
