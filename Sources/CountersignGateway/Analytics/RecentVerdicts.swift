internal import CountersignCore

/// The verdicts of the last hour, second by second, for decisions that cannot wait for a minute to be over.
final class RecentVerdicts: GatewayObserver {
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
    private let apps = Lock<[String: [Second]]>([:])

    func commitEnded(_ record: CommitRecord) {}

    func requestEnded(_ record: RequestRecord) {
        guard let appID = record.trail.appID, let verdict = record.trail.verdict else { return }
        let start = record.receivedMilliseconds / 1000 * 1000
        apps.withLock { apps in
            Self.note(verdict, events: record.trail.accepted, start, in: &apps[appID, default: []])
        }
    }

    private static func note(
        _ verdict: VerdictKind, events: Int, _ start: Int64, in seconds: inout [Second]
    ) {
        if seconds.last.map({ $0.start < start }) ?? true {
            if seconds.count >= maximumSeconds { seconds.removeFirst() }
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

    /// What was judged since a time, to the second.
    ///
    /// - Parameters:
    ///   - appID: Of which app; nil adds up all.
    ///   - milliseconds: Milliseconds since 1970.
    /// - Returns: The sum, of an hour at most.
    func sum(of appID: String? = nil, since milliseconds: Int64) -> Sum {
        let first = milliseconds / 1000 * 1000
        return apps.withLock { apps in
            var sum = Sum()
            for seconds in appID.map({ [apps[$0] ?? []] }) ?? Array(apps.values) {
                for second in seconds.reversed().prefix(while: { $0.start >= first }) {
                    sum.judged += second.sum.judged
                    sum.rejected += second.sum.rejected
                    sum.accepted += second.sum.accepted
                    sum.events += second.sum.events
                }
            }
            return sum
        }
    }
}
