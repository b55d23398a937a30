import CountersignCore
import GatewayModel
import Testing

@testable import GatewayDelivery

/// Delays of reads in favour of storing, on manual clocks.
struct ReadingPaceTests {
    private let arrivals = EventArrivals()
    private let times = Lock(ReadingPace.Times(clock: 1_000, ran: 0))
    private let pace: ReadingPace

    init() {
        pace = ReadingPace(arrivals: arrivals) { [times] in times.withLock { $0 } }
    }

    /// Reads with this CPU time and elapsed time in seconds. Returns the delay of the answer.
    private func delay(ran: Double, took: Double) -> Double {
        pace.read {
            times.withLock {
                $0.clock += took
                $0.ran += ran
            }
        }.pause
    }

    private func store() { arrivals.note(["shop"]) }

    @Test func readersAreDelayedWhileProcessorsAreBusy() {
        store()
        let pause = 0.01 * (1 / ReadingPace.share - 1)
        #expect(abs(delay(ran: 0.01, took: 0.02) - pause) < 1e-9)
        // The second delay covers both reads.
        #expect(abs(delay(ran: 0.01, took: 0.02) - (2 * pause - 0.02)) < 1e-9)
        times.withLock { $0.clock += 0.9 }
        store()
        // Earlier delays have passed and are not added.
        #expect(abs(delay(ran: 0.01, took: 0.02) - pause) < 1e-9)
    }

    @Test func readersAreNotDelayedWithIdleProcessors() {
        store()
        #expect(delay(ran: 0.01, took: 0.01) == 0)
        #expect(delay(ran: 0.01, took: 0.010_4) == 0)
        #expect(delay(ran: 0.01, took: 0.011_5) > 0)
    }

    @Test func readersAreNotDelayedWhileNothingIsStored() {
        #expect(delay(ran: 0.01, took: 0.05) == 0)
        store()
        #expect(delay(ran: 0.01, took: 0.05) > 0)
        times.withLock { $0.clock += 1 }
        #expect(delay(ran: 0.01, took: 0.05) == 0)
    }

    @Test func shortReadsAreNotDelayed() {
        store()
        #expect(delay(ran: 0.1, took: 1) > 0)
        #expect(delay(ran: 0.000_9, took: 0.1) == 0)
    }

    @Test func theDelayIsLimited() {
        for _ in 0..<5 {
            store()
            #expect(delay(ran: 1, took: 3) <= ReadingPace.longestPause)
        }
    }
}
