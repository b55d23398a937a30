import CountersignCore
import Foundation
import Testing

struct MillisecondsTests {
    @Test func instantsAreRoundedToTheNearestAndDurationsDown() {
        #expect(Milliseconds(Date(timeIntervalSince1970: 1_430_800_314.123)).count == 1_430_800_314_123)
        #expect(Milliseconds(Date(timeIntervalSince1970: -0.000_6)).count == -1)
        #expect(Milliseconds(seconds: 0.001_9).count == 1)
        #expect(Milliseconds(Int64(1_430_800_314_123)).date == Date(timeIntervalSince1970: 1_430_800_314.123))
        #expect(Milliseconds(Int64(250)).seconds == 0.25)
    }

    @Test(arguments: [
        (1e300, Int64.max), (-1e300, .min), (.infinity, .max), (-.infinity, .min), (.nan, 0), (2.5, 3),
    ])
    func millisecondsBeyondAllDatesAreClamped(number: Double, count: Int64) {
        #expect(Milliseconds(number).count == count)
    }

    @Test(arguments: [
        (0, 0), (-2, -2_000), (90, 90_000), (Int64.max, .max), (Int64.min, .min),
        (Int64.max / 1_000 + 1, .max),
    ])
    func wholeSecondsDoNotTrap(seconds: Int64, count: Int64) {
        #expect(Milliseconds(seconds: seconds).count == count)
    }
}
