package import CountersignCore
internal import Foundation
package import GatewayModel

/// The latest verdicts of all gateways in the cluster, for live views. Empty without viewers.
package final class LiveFeed: Sendable {
    package struct Entry: Sendable {
        /// Increases by one over all apps. The first id has the start time and random bits. So ids of an earlier run
        /// are smaller, and gateways started at the same time use different ids.
        package var id: UInt64
        package var atMilliseconds: Int64
        package var key: VerdictKey
        package var userID: String?
        package var network: String
        package var requestID: String
        package var sampleID: String?
    }

    package struct Shared: Sendable {
        package var entries: [Entry] = []
        /// The number of verdicts that did not fit into `entries`.
        package var missed: UInt64 = 0

        package init() {}
    }

    package struct Page: Sendable {
        package var entries: [Entry] = []
        /// The number of dropped entries; nil when it is unknown because the gateway was restarted.
        package var missed: UInt64? = 0
        package var lastID: UInt64
    }

    private struct State {
        var ring: [Entry] = []
        var lastID: UInt64
        var watchedUntil: UInt64 = 0
        /// The uptime until which another gateway has a viewer, and the verdicts to send to that gateway.
        var sharedUntil: UInt64 = 0
        var shared = Shared()
        /// Called when the first viewer appears.
        var begins: @Sendable () -> Void = {}
    }

    private let capacity: Int
    private let firstID: UInt64
    private let nanoseconds: @Sendable () -> UInt64
    private let state: Lock<State>

    init(
        capacity: Int = 2_000, started: Date = Date(), chance: UInt64 = .random(in: 0..<4_096),
        nanoseconds: @escaping @Sendable () -> UInt64 = { DispatchTime.now().uptimeNanoseconds }
    ) {
        self.capacity = capacity
        self.nanoseconds = nanoseconds
        // Microseconds, and twelve random bits in case two gateways start in the same microsecond.
        firstID = UInt64(max(0, started.timeIntervalSince1970 * 1_000_000)) << 12 | chance
        state = Lock(State(lastID: firstID))
    }

    /// Adds a verdict. Calls `make` only while this or another gateway has a viewer.
    func publish(_ make: (UInt64) -> Entry) {
        state.withLock { state in
            state.lastID += 1
            // Without viewers, avoids reading the clock for each request.
            guard state.watchedUntil > 0 || state.sharedUntil > 0 else { return }
            let now = nanoseconds()
            let (isWatched, isShared) = (state.watchedUntil > now, state.sharedUntil > now)
            if !isWatched, !state.ring.isEmpty { state.ring = [] }
            if !isShared, !state.shared.entries.isEmpty { state.shared = Shared() }
            guard isWatched || isShared else {
                (state.watchedUntil, state.sharedUntil) = (0, 0)
                return
            }
            let entry = make(state.lastID)
            if isWatched { append(entry, to: &state) }
            guard isShared else { return }
            if state.shared.entries.count < capacity {
                state.shared.entries.append(entry)
            } else {
                state.shared.missed += 1
            }
        }
    }

    /// Removes the verdicts of deleted apps before their ids can be reused. Until then, viewers still see them.
    package func forget(_ appIDs: BytewiseSet) {
        state.withLock { state in
            state.ring.removeAll { appIDs.contains($0.key.appID) }
            state.shared.entries.removeAll { appIDs.contains($0.key.appID) }
        }
    }

    private func append(_ entry: Entry, to state: inout State) {
        state.ring.append(entry)
        if state.ring.count >= 2 * capacity { state.ring.removeFirst(state.ring.count - capacity) }
    }

    package var isWatched: Bool {
        let now = nanoseconds()
        return state.withLock { $0.watchedUntil > now }
    }

    /// Sets a function to call when a viewer appears after a minute without viewers.
    package func whenWatched(_ body: @escaping @Sendable () -> Void) {
        state.withLock { $0.begins = body }
    }

    /// Collects verdicts for another gateway during the next `seconds`.
    package func share(forSeconds seconds: UInt64) {
        let now = nanoseconds()
        state.withLock { $0.sharedUntil = now + seconds * 1_000_000_000 }
    }

    package func takeShared() -> Shared {
        state.withLock { state in
            defer { state.shared = Shared() }
            return state.shared
        }
    }

    /// Adds verdicts of another gateway. They get new ids.
    package func add(_ shared: Shared) {
        let now = nanoseconds()
        state.withLock { state in
            guard state.watchedUntil > now else { return }
            for var entry in shared.entries {
                state.lastID += 1
                entry.id = state.lastID
                append(entry, to: &state)
            }
            state.lastID += shared.missed
        }
    }

    /// The entries after an id. With nil, the page is empty and its last id is the start of the next page.
    package func entries(after id: UInt64?) -> Page {
        let now = nanoseconds()
        let (begins, page) = state.withLock { state -> ((@Sendable () -> Void)?, Page) in
            let begins = state.watchedUntil > now ? nil : state.begins
            state.watchedUntil = now + 60_000_000_000
            return (begins, found(after: id, state))
        }
        begins?()
        return page
    }

    private func found(after id: UInt64?, _ state: State) -> Page {
        guard let id, id != state.lastID else { return Page(lastID: state.lastID) }
        // An id larger than the latest belongs to a run whose clock was ahead.
        let isOfThisRun = (firstID...state.lastID).contains(id)
        let found = isOfThisRun ? state.ring.drop { $0.id <= id } : state.ring[...]
        return Page(
            entries: Array(found),
            missed: isOfThisRun ? state.lastID - id - UInt64(found.count) : nil, lastID: state.lastID)
    }
}
