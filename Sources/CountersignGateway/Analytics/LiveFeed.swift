internal import CountersignCore
internal import Foundation

/// The last verdicts, for those who watch them as they come. Nothing is kept while nobody watches.
package final class LiveFeed: Sendable {
    /// One verdict.
    package struct Entry: Sendable {
        /// Counts up by one from 1, over all apps.
        package var id: UInt64
        package var atMilliseconds: Int64
        package var key: VerdictKey
        package var userID: String?
        package var network: String
        package var requestID: String
        /// The sample of this request, when one was kept.
        package var sampleID: String?
    }

    /// What a look has found.
    package struct Page: Sendable {
        package var entries: [Entry]
        /// Verdicts that were forgotten before this look.
        package var missed: UInt64
        /// The last id that there is; where the next look begins.
        package var lastID: UInt64
    }

    private struct State {
        var ring: [Entry] = []
        var lastID: UInt64 = 0
        var watchedUntil: UInt64 = 0
    }

    private let capacity: Int
    private let nanoseconds: @Sendable () -> UInt64
    private let state = Lock(State())

    /// - Parameters:
    ///   - capacity: How many are remembered.
    ///   - nanoseconds: A clock that never goes back.
    init(
        capacity: Int = 2_000,
        nanoseconds: @escaping @Sendable () -> UInt64 = { DispatchTime.now().uptimeNanoseconds }
    ) {
        self.capacity = capacity
        self.nanoseconds = nanoseconds
    }

    /// A verdict; `make` is called only when somebody has looked within the last minute.
    func publish(_ make: (UInt64) -> Entry) {
        let now = nanoseconds()
        state.withLock { state in
            state.lastID += 1
            guard state.watchedUntil > now else {
                if !state.ring.isEmpty { state.ring = [] }
                return
            }
            state.ring.append(make(state.lastID))
            if state.ring.count >= 2 * capacity { state.ring.removeFirst(state.ring.count - capacity) }
        }
    }

    /// What came behind an id; nil begins with what comes from now on.
    package func entries(after id: UInt64?, limit: Int = 200) -> Page {
        let now = nanoseconds()
        return state.withLock { state in
            state.watchedUntil = now + 60_000_000_000
            guard let id, id < state.lastID else {
                return Page(entries: [], missed: 0, lastID: state.lastID)
            }
            let found = state.ring.filter { $0.id > id }
            let first = found.first?.id ?? state.lastID + 1
            let page = Array(found.prefix(limit))
            return Page(
                entries: page, missed: first - id - 1, lastID: page.last?.id ?? state.lastID)
        }
    }
}
