package import CountersignCore

/// Tells those who wait for an app's events that there is something new: events were stored, or a lease has ended.
///
/// Whoever waits takes a ticket, looks, and if there is nothing waits with that ticket: what came in between wakes at once,
/// so nothing is slept through.
package final class EventArrivals: Sendable {
    package typealias Ticket = UInt64

    /// Somebody who waits.
    package struct Waiter: Hashable, Sendable {
        let appID: String
        let number: UInt64
    }

    private struct State {
        var last: UInt64 = 0
        var lastNote: Ticket = 0
        /// When something happened last, by app.
        var changed: BytewiseDictionary<Ticket> = [:]
        var waiting: BytewiseDictionary<[UInt64: @Sendable () -> Void]> = [:]
    }

    private let state = Lock(State())

    package init() {}

    /// What has been until now.
    package var ticket: Ticket { state.withLock { $0.last } }

    /// Another one whenever something has happened to any app.
    package var lastNote: Ticket { state.withLock { $0.lastNote } }

    /// Calls `wake` once, from any thread: at once when something has happened to the app since the ticket was taken.
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

    /// Does not wait any more; false when it was woken.
    @discardableResult
    package func cancel(_ waiter: Waiter) -> Bool {
        state.withLock { $0.waiting[waiter.appID]?.removeValue(forKey: waiter.number) != nil }
    }

    /// The apps whose events somebody waits for now.
    package var awaited: [String] {
        state.withLock { state in state.waiting.compactMap { $1.isEmpty ? nil : $0 } }
    }

    /// Something has happened to these apps.
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
