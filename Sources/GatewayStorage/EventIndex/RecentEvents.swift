internal import CountersignCore

/// Which of the newest events, those in no run yet, are whose app's: for readers in the writer's process.
///
/// Without it a reader would have to look through all rows after the last run to find those of one app.
final class RecentEvents: Sendable {
    private struct State {
        /// Of all events from here on it is known whose app's they are.
        var first: Int64
        var last: Int64
        /// Numbers in their order, by the hash of the app.
        var sequences: [UInt64: [Int64]] = [:]

        mutating func add(_ events: [IndexedEvent]) {
            // Those that were committed together are mostly of one app, which is looked up once.
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

    /// Nil while nobody in this process writes.
    private let state = Lock<State?>(nil)

    /// From where on it knows the events; nil while nobody in this process writes.
    var first: Int64? { state.withLock { $0?.first } }

    /// Numbers of an app's events in a range, as far as they were added: those up to `last`. Nil when it does not know
    /// the first of the range any more.
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

    /// Sequence numbers of an app's events after `sequence`, among the events in memory, which begin at `first`.
    func sequences(of app: UInt64, after sequence: Int64, limit: Int) -> (found: [Int64], first: Int64) {
        state.withLock { state in
            guard let state else { return ([], .max) }
            let all = state.sequences[app] ?? []
            let low = sequence == .max ? all.count : all.firstIndex(notBefore: sequence + 1)
            return (Array(all[low...].prefix(limit)), state.first)
        }
    }

    /// Starts over with the events from `first` on.
    func begin(with events: [IndexedEvent], from first: Int64) {
        state.withLock { state in
            state = State(first: first, last: first - 1)
            state?.add(events)
        }
    }

    /// Adds events that were committed.
    func add(_ events: [IndexedEvent]) {
        state.withLock { $0?.add(events) }
    }

    /// Forgets the events up to one, which are in a run.
    func forget(through last: Int64) {
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

    /// Nobody in this process writes any more.
    func end() { state.withLock { $0 = nil } }
}

extension [Int64] {
    /// The place of the first number that is not less, in numbers that are in order.
    fileprivate func firstIndex(notBefore number: Int64) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle] < number { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
