import Testing

@testable import GatewayHTTP

struct TimerWheelTests {
    private static let second: UInt64 = 1_000_000_000
    private static let tick: UInt64 = 1 << TimerWheel.tickShift

    @Test func deadlinesAreReachedOnceAndAtMostOneTickLate() {
        var wheel = TimerWheel(now: 0)
        // Beyond the wheel's length too.
        let deadlines: [UInt64] = [0, 1, 10, 33, 34, 35, 70, 3_600].map { $0 * Self.second }
        for (index, deadline) in deadlines.enumerated() { wheel.set(index, deadline) }
        var reached = [UInt64?](repeating: nil, count: deadlines.count)
        var now: UInt64 = 0
        while now < 3_601 * Self.second {
            now += Self.tick / 3
            var due: ContiguousArray<Int> = []
            wheel.advance(to: now, &due)
            for index in due {
                #expect(reached[index] == nil)
                reached[index] = now
            }
        }
        for (deadline, time) in zip(deadlines, reached) {
            #expect(time.map { $0 >= deadline && $0 <= deadline + 2 * Self.tick } == true, "\(deadline)")
        }
    }

    @Test func aDeadlineMovesInBothDirectionsAndCanBeRemoved() {
        var wheel = TimerWheel(now: 0)
        func due(at seconds: UInt64) -> [Int] {
            var due: ContiguousArray<Int> = []
            wheel.advance(to: seconds * Self.second, &due)
            return due.sorted()
        }
        for index in 0..<4 { wheel.set(index, 10 * Self.second) }
        wheel.set(1, 2 * Self.second)
        wheel.set(2, 20 * Self.second)
        wheel.set(3, TimerWheel.never)
        #expect(due(at: 1) == [])
        #expect(due(at: 3) == [1])
        #expect(due(at: 11) == [0])
        wheel.set(0, 12 * Self.second)
        // A pause longer than the wheel.
        #expect(due(at: 100) == [0, 2])
        #expect(due(at: 1_000) == [])
        #expect(wheel.milliseconds(at: 1_000 * Self.second, longest: 60_000) == 60_000)
        wheel.set(0, 1_001 * Self.second)
        #expect((1_000...1_300).contains(wheel.milliseconds(at: 1_000 * Self.second, longest: 60_000)))
    }
}
