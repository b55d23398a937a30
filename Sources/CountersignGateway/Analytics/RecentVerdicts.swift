internal import CountersignCore

/// An app's verdicts of the last hour, second by second, for decisions that cannot wait for a minute to be over.
struct RecentVerdicts: Sendable {
    struct Sum: Equatable {
        /// Requests of identified users whose token was judged.
        var judged = 0
        var rejected = 0
        /// All that were let in.
        var accepted = 0
        var events = 0
    }

    private struct Second {
        let start: Int64
        var sum = Sum()
    }

    private static let maximumSeconds = 3_601
    private var seconds: [Second] = []

    /// Counts one verdict.
    mutating func note(_ verdict: VerdictKind, events: Int, atMilliseconds milliseconds: Int64) {
        let start = milliseconds / 1000 * 1000
        if seconds.last.map({ $0.start < start }) ?? true {
            if seconds.count >= Self.maximumSeconds { seconds.removeFirst() }
            seconds.append(Second(start: start))
        }
        let last = seconds.count - 1
        switch verdict {
        case .accepted, .acceptedWithWarning: seconds[last].sum.judged += 1
        case .rejected:
            seconds[last].sum.judged += 1
            seconds[last].sum.rejected += 1
        case .anonymous, .notJudged: break
        }
        if verdict != .rejected { seconds[last].sum.accepted += 1 }
        seconds[last].sum.events += events
    }

    /// Adds what was counted since a time, to the second.
    func add(to sum: inout Sum, since milliseconds: Int64) {
        let first = milliseconds / 1000 * 1000
        for second in seconds.reversed().prefix(while: { $0.start >= first }) {
            sum.judged += second.sum.judged
            sum.rejected += second.sum.rejected
            sum.accepted += second.sum.accepted
            sum.events += second.sum.events
        }
    }
}
