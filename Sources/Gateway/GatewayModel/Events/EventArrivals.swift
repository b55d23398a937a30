package import CountersignCore

/// Notifies waiters of an app's new events and ended leases.
///
/// Read the ticket, query, then wait on the ticket. A change in between wakes the waiter immediately, so no
/// wake-up is lost.
package final class EventArrivals: Sendable {
    package typealias Ticket = UInt64

    /// A registered waiter, for ``cancel(_:)``.
    package struct Waiter: Hashable, Sendable {
        let appID: String
        let number: UInt64
    }

    private struct State {
        var last: UInt64 = 0
        var lastNote: Ticket = 0
        var changed: BytewiseDictionary<Ticket> = [:]
        var waiting: BytewiseDictionary<[UInt64: @Sendable () -> Void]> = [:]
    }

    private let state = Lock(State())

    package init() {}

    package var ticket: Ticket { state.withLock { $0.last } }

    /// The ticket of the last call of ``note(_:)``, for any app.
    package var lastNote: Ticket { state.withLock { $0.lastNote } }

    /// Calls `wake` once, from any thread, unless the waiter is cancelled before. If ``note(_:)`` was called for the
    /// app after the ticket, calls `wake` immediately and returns nil.
    package func wait(
        for appID: String, since ticket: Ticket, _ wake: @escaping @Sendable () -> Void
    ) -> Waiter? {
        let waiter: Waiter? = state.withLock { state in
            if state.changed[appID, default: 0] > ticket { return nil }
            state.last += 1
            state.waiting[appID, default: [:]][state.last] = wake
            return Waiter(appID: appID, number: state.last)
        }
        if waiter == nil { wake() }
        return waiter
    }

    /// Unregisters a waiter; false if it was already woken.
    @discardableResult
    package func cancel(_ waiter: Waiter) -> Bool {
        state.withLock { $0.waiting[waiter.appID]?.removeValue(forKey: waiter.number) != nil }
    }

    package var awaited: [String] {
        state.withLock { state in state.waiting.compactMap { $1.isEmpty ? nil : $0 } }
    }

    package func note(_ appIDs: BytewiseSet) {
        let wakes = state.withLock { state in
            appIDs.flatMap { appID in
                state.last += 1
                state.changed[appID] = state.last
                state.lastNote = state.last
                return state.waiting.removeValue(forKey: appID).map { Array($0.values) } ?? []
            }
        }
        for wake in wakes { wake() }
    }
}
