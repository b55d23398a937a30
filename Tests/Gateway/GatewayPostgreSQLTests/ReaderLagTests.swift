import Testing

@testable import GatewayPostgreSQL

struct ReaderLagTests {
    @Test func readerLagIsZeroWithoutLongTransactions() {
        var lag = ReaderLag()
        #expect(lag.note(oldest: 10, next: 10, at: 0) == 0)
        #expect(lag.note(oldest: 14, next: 14, at: 1_000) == 0)
        #expect(lag.note(oldest: 14, next: 15, at: 2_000) == 0)
    }

    @Test func readerLagGrowsWithTheOldestOpenTransaction() {
        var lag = ReaderLag()
        #expect(lag.note(oldest: 10, next: 10, at: 0) == 0)
        // Transaction 12 began after time 0 and is open until after 9,000.
        #expect(lag.note(oldest: 12, next: 14, at: 1_000) == 0)
        #expect(lag.note(oldest: 12, next: 20, at: 2_000) == 1_000)
        #expect(lag.note(oldest: 12, next: 30, at: 9_000) == 8_000)
        #expect(lag.note(oldest: 30, next: 30, at: 10_000) == 0)
    }

    @Test func readerLagOfTheNextOldestCountsFromItsOwnStart() {
        var lag = ReaderLag()
        _ = lag.note(oldest: 10, next: 12, at: 0)
        _ = lag.note(oldest: 10, next: 20, at: 1_000)
        _ = lag.note(oldest: 10, next: 30, at: 2_000)
        // Transaction 10 has ended. Transaction 15 is open and began after time 0.
        #expect(lag.note(oldest: 15, next: 40, at: 3_000) == 2_000)
    }
}
