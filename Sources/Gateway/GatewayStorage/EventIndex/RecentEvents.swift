internal import CountersignCore

/// The sequence numbers of events without a run, by app, so that readers in the process need not scan their rows.
final class RecentEvents: Sendable {
    private struct State {
        /// All events from `first` to `last` are in `sequences`.
        var first: Int64
        var last: Int64
        /// Ascending sequence numbers, by the hash of the app.
        var sequences: [UInt64: [Int64]] = [:]

        mutating func add(_ events: [EventIndexRecord]) {
            // Events of the same commit are mostly of one app, so consecutive events share a lookup.
            var start = 0
            while start < events.count {
                let app = events[start].app
                let end = events[start...].firstIndex { $0.app != app } ?? events.count
                sequences[app, default: []].append(contentsOf: events[start..<end].lazy.map(\.sequence))
                start = end
            }
            last = events.last?.sequence ?? last
        }
    }

    /// Nil without a writer in this process.
    private let state = Lock<State?>(nil)

    var first: Int64? { state.withLock { $0?.first } }

    /// An app's events in a range, up to the returned `last`. Nil when the start of the range is not in memory.
    func sequences(
        of app: UInt64, in range: ClosedRange<Int64>, newestFirst: Bool, limit: Int
    ) -> (found: [Int64], last: Int64)? {
        state.withLock { state in
            guard let state, state.first <= range.lowerBound else { return nil }
            let all = state.sequences[app] ?? []
            let low = all.firstIndex(notBefore: range.lowerBound)
            let high = range.upperBound == .max ? all.count : all.firstIndex(notBefore: range.upperBound + 1)
            guard low < high else { return ([], state.last) }
            return newestFirst
                ? (all[low..<high].suffix(limit).reversed(), state.last)
                : (Array(all[low..<high].prefix(limit)), state.last)
        }
    }

    /// An app's events in memory after a sequence number. Events before the returned `first` are not in memory.
    func sequences(of app: UInt64, after sequence: Int64, limit: Int) -> (found: [Int64], first: Int64) {
        state.withLock { state in
            guard let state else { return ([], .max) }
            let all = state.sequences[app] ?? []
            let low = sequence == .max ? all.count : all.firstIndex(notBefore: sequence + 1)
            return (Array(all[low...].prefix(limit)), state.first)
        }
    }

    func begin(with events: [EventIndexRecord], from first: Int64) {
        state.withLock { state in
            state = State(first: first, last: first - 1)
            state?.add(events)
        }
    }

    func add(_ events: [EventIndexRecord]) {
        state.withLock { $0?.add(events) }
    }

    /// Removes the events through `last`, which are in a run.
    func remove(through last: Int64) {
        state.withLock { state in
            guard let old = state else { return }
            var new = State(first: max(old.first, last + 1), last: old.last)
            for (app, sequences) in old.sequences {
                let kept = sequences[sequences.firstIndex(notBefore: last + 1)...]
                if !kept.isEmpty { new.sequences[app] = Array(kept) }
            }
            state = new
        }
    }

    /// Drops all events, when the writer closes.
    func end() { state.withLock { $0 = nil } }
}

extension [Int64] {
    fileprivate func firstIndex(notBefore number: Int64) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle] < number { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
