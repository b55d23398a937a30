internal import CountersignCore
internal import Foundation
package import GatewayModel

/// The last verdicts, for those who watch them as they come. Nothing is kept while nobody watches.
package final class LiveFeed: Sendable {
    /// One verdict.
    package struct Entry: Sendable {
        /// Counts up by one over all apps. Begins with the microseconds since 1970 at which the gateway was started, so
        /// that ids of an earlier run are smaller.
        package var id: UInt64
        package var atMilliseconds: Int64
        package var key: VerdictKey
        package var userID: String?
        package var network: String
        package var requestID: String
        /// The sample of this request, when one was kept.
        package var sampleID: String?
    }

    /// What came after an id.
    package struct Page: Sendable {
        package var entries: [Entry] = []
        /// What came and was forgotten before this look; nil when nobody knows how much, because the gateway was started
        /// meanwhile.
        package var missed: UInt64? = 0
        /// The last id that there is.
        package var lastID: UInt64
    }

    private struct State {
        var ring: [Entry] = []
        var lastID: UInt64
        var watchedUntil: UInt64 = 0
    }

    private let capacity: Int
    private let firstID: UInt64
    private let nanoseconds: @Sendable () -> UInt64
    private let state: Lock<State>

    init(
        capacity: Int = 2_000, started: Date = Date(),
        nanoseconds: @escaping @Sendable () -> UInt64 = { DispatchTime.now().uptimeNanoseconds }
    ) {
        self.capacity = capacity
        self.nanoseconds = nanoseconds
        firstID = UInt64(max(0, started.timeIntervalSince1970 * 1_000_000))
        state = Lock(State(lastID: firstID))
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

    /// What came after an id; nil begins with what comes from now on.
    package func entries(after id: UInt64?) -> Page {
        let now = nanoseconds()
        return state.withLock { state in
            state.watchedUntil = now + 60_000_000_000
            guard let id, id != state.lastID else { return Page(lastID: state.lastID) }
            // An id from the future is of a run whose clock was ahead.
            let isOfThisRun = (firstID...state.lastID).contains(id)
            let found = isOfThisRun ? state.ring.drop { $0.id <= id } : state.ring[...]
            let first = found.first?.id ?? state.lastID + 1
            return Page(
                entries: Array(found), missed: isOfThisRun ? first - id - 1 : nil, lastID: state.lastID)
        }
    }
}
