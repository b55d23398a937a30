import CountersignCore
import GatewayModel
import Testing

struct EventArrivalsTests {
    private let arrivals = EventArrivals()
    private let woken = Lock(0)

    private func wait(for appID: String, since ticket: EventArrivals.Ticket) -> EventArrivals.Waiter? {
        arrivals.wait(for: appID, since: ticket) { [woken] in woken.withLock { $0 += 1 } }
    }

    /// Else an event that was stored between the look and the wait would be read at the next one's arrival.
    @Test func whatComesBetweenTheLookAndTheWaitWakesAtOnce() {
        let ticket = arrivals.ticket
        arrivals.note(["shop"])
        #expect(wait(for: "shop", since: ticket) == nil)
        #expect(woken.withLock { $0 } == 1)
        #expect(arrivals.awaited.isEmpty)
        // Who has looked since then waits, and so does who asks about another app.
        #expect(wait(for: "shop", since: arrivals.ticket) != nil)
        #expect(wait(for: "blog", since: ticket) != nil)
        #expect(woken.withLock { $0 } == 1)
        arrivals.note(["shop"])
        #expect(woken.withLock { $0 } == 2)
        #expect(arrivals.awaited == ["blog"])
    }

    @Test func whoWasWokenOrHasGivenUpIsWokenNoMore() throws {
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
