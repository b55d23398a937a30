import Testing

@testable import GatewayHTTP

struct DeadlinesTests {
    private static let second: UInt64 = 1_000_000_000

    @Test func aDeadlineCanBeMovedAndExpiresOnce() {
        var deadlines = Deadlines()
        func due(at seconds: UInt64) -> [Int] {
            var due: ContiguousArray<Int> = []
            deadlines.take(at: seconds * Self.second, &due)
            return Array(due)
        }
        #expect(deadlines.milliseconds(at: 0, longest: 60_000) == 60_000)
        for index in [3, 0, 1, 2] { deadlines.set(index, 10 * Self.second) }
        deadlines.set(1, 2 * Self.second)
        deadlines.set(2, 20 * Self.second)
        deadlines.set(3, Deadlines.never)
        #expect((2_000...2_001).contains(deadlines.milliseconds(at: 0, longest: 60_000)))
        #expect(due(at: 1) == [])
        #expect(due(at: 2) == [1])
        #expect(due(at: 3) == [])
        #expect(due(at: 11) == [0])
        deadlines.set(0, 12 * Self.second)
        #expect(due(at: 1_000) == [0, 2])
        #expect(deadlines.milliseconds(at: 1_000 * Self.second, longest: 60_000) == 60_000)
    }

    @Test func deadlinesAreCheckedAFewTimesASecond() {
        var deadlines = Deadlines()
        for index in 0..<100 { deadlines.set(index, Self.second + UInt64(index)) }
        var due: ContiguousArray<Int> = []
        deadlines.take(at: Self.second, &due)
        #expect(due.count == 1)
        deadlines.take(at: Self.second + 50, &due)
        #expect(due.count == 1)
        deadlines.take(at: Self.second + Deadlines.pause, &due)
        #expect(due.count == 100)
    }
}
