package import CountersignCore
internal import Foundation
package import GatewayModel

/// The last verdicts, for those who watch them as they come: the gateway's own, and while somebody watches those of the
/// other gateways too. Nothing is kept while nobody watches.
package final class LiveFeed: Sendable {
    /// One verdict.
    package struct Entry: Sendable {
        /// Counts up by one over all apps. Begins with the time at which the gateway was started, so that ids of an
        /// earlier run are smaller, and those of another gateway of the same time are others.
        package var id: UInt64
        package var atMilliseconds: Int64
        package var key: VerdictKey
        package var userID: String?
        package var network: String
        package var requestID: String
        /// The sample of this request, when one was kept.
        package var sampleID: String?
    }

    /// Verdicts that another gateway is to hear of.
    package struct Shared: Sendable {
        package var entries: [Entry] = []
        /// What there was no room for.
        package var missed: UInt64 = 0

        package init() {}
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
        /// Until when somebody watches at another gateway, and what that one is to hear.
        var sharedUntil: UInt64 = 0
        var shared = Shared()
        /// Hears that somebody begins to watch.
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
        // Microseconds, and twelve bits by chance: two gateways may start in the same one.
        firstID = UInt64(max(0, started.timeIntervalSince1970 * 1_000_000)) << 12 | chance
        state = Lock(State(lastID: firstID))
    }

    /// A verdict; `make` is called only when somebody has looked within the last minute.
    func publish(_ make: (UInt64) -> Entry) {
        let now = nanoseconds()
        state.withLock { state in
            state.lastID += 1
            let (isWatched, isShared) = (state.watchedUntil > now, state.sharedUntil > now)
            if !isWatched, !state.ring.isEmpty { state.ring = [] }
            if !isShared, !state.shared.entries.isEmpty { state.shared = Shared() }
            guard isWatched || isShared else { return }
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

    /// Drops the verdicts of deleted apps. Call it when their ids become available again; until then, readers still see
    /// the last verdicts.
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

    /// True when somebody has looked within the last minute.
    package var isWatched: Bool {
        let now = nanoseconds()
        return state.withLock { $0.watchedUntil > now }
    }

    /// `body` is called when somebody looks and nobody had within the last minute.
    package func whenWatched(_ body: @escaping @Sendable () -> Void) {
        state.withLock { $0.begins = body }
    }

    /// Somebody watches at another gateway, for the next so many seconds.
    package func share(forSeconds seconds: UInt64) {
        let now = nanoseconds()
        state.withLock { $0.sharedUntil = now + seconds * 1_000_000_000 }
    }

    /// What another gateway is to hear of, since the last call: at most as many verdicts as are kept.
    package func takeShared() -> Shared {
        state.withLock { state in
            defer { state.shared = Shared() }
            return state.shared
        }
    }

    /// Verdicts of another gateway. They get ids of this one's.
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

    /// What came after an id; nil begins with what comes from now on.
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
        // An id from the future is of a run whose clock was ahead.
        let isOfThisRun = (firstID...state.lastID).contains(id)
        let found = isOfThisRun ? state.ring.drop { $0.id <= id } : state.ring[...]
        return Page(
            entries: Array(found),
            missed: isOfThisRun ? state.lastID - id - UInt64(found.count) : nil, lastID: state.lastID)
    }
}
