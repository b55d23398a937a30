import CountersignCore
import GatewayModel
import Testing

struct EventArrivalsTests {
    private let arrivals = EventArrivals()
    private let woken = Lock(0)

    private func wait(for appID: String, since ticket: EventArrivals.Ticket) -> EventArrivals.Waiter? {
        arrivals.wait(for: appID, since: ticket) { [woken] in woken.withLock { $0 += 1 } }
    }

    /// Otherwise an event stored between the query and the wait would be read only after the next event.
    @Test func eventsBetweenReadAndWaitWakeAtOnce() {
        let ticket = arrivals.ticket
        arrivals.note(["shop"])
        #expect(wait(for: "shop", since: ticket) == nil)
        #expect(woken.withLock { $0 } == 1)
        #expect(arrivals.awaited.isEmpty)
        // A wait with a newer ticket or for another app is not woken.
        #expect(wait(for: "shop", since: arrivals.ticket) != nil)
        #expect(wait(for: "blog", since: ticket) != nil)
        #expect(woken.withLock { $0 } == 1)
        arrivals.note(["shop"])
        #expect(woken.withLock { $0 } == 2)
        #expect(arrivals.awaited == ["blog"])
    }

    @Test func cancelledAndWokenWaitersAreNotWokenAgain() throws {
        let first = try #require(wait(for: "shop", since: arrivals.ticket))
        let second = try #require(wait(for: "shop", since: arrivals.ticket))
        #expect(arrivals.cancel(first))
        #expect(!arrivals.cancel(first))
        arrivals.note(["shop"])
        arrivals.note(["shop"])
        #expect(woken.withLock { $0 } == 1)
        #expect(!arrivals.cancel(second))
    }
}
