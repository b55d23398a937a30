import GatewayModel
import Testing

/// The time that retention uses when the clock jumps.
struct RetentionClockTests {
    private let start: Int64 = 1_800_000_000_000
    private let hour: Int64 = 3_600_000
    private let year: Int64 = 365 * 86_400_000

    /// Returns the retention time at each uptime, relative to `start`, for a clock that is wrong by `off`.
    private func times(_ clock: [(uptime: Int64, off: Int64)]) -> [Int64] {
        var retention = RetentionClock()
        return clock.map { retention.time(start + $0.uptime + $0.off, at: 5_000_000 + $0.uptime) - start }
    }

    @Test func smallAndBackwardClockChangesAreFollowed() {
        #expect(
            times([(0, 0), (60_000, hour), (120_000, -hour), (180_000, -year)])
                == [0, 60_000 + hour, 120_000 - hour, 180_000 - year])
    }

    @Test func aForwardClockJumpIsIgnoredForAnHour() {
        #expect(
            times([(0, 0), (60_000, year), (hour, year), (60_000 + hour, year), (2 * hour, year)])
                == [0, 60_000, hour, 60_000 + hour + year, 2 * hour + year])
    }

    @Test func aRevertedClockJumpHasNoEffect() {
        #expect(
            times([(0, 0), (60_000, year), (120_000, 0), (hour, year), (hour + 60_000, year)])
                == [0, 60_000, 120_000, hour, hour + 60_000])
    }
}
