internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// Prevents reading from slowing down storing.
///
/// While events are stored and the processors are busy, readers of many events get about 3 % of one
/// processor together. Each response is delayed by at most ``longestPause`` seconds. With idle processors there is no
/// delay.
package final class ReadingPace: Sendable {
    /// Seconds of a monotonic clock and of the thread's CPU time.
    struct Times: Sendable {
        var clock: Double
        var ran: Double

        static var now: Times {
            func seconds(_ clock: clockid_t) -> Double {
                var time = timespec()
                clock_gettime(clock, &time)
                return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
            }
            return Times(clock: seconds(CLOCK_MONOTONIC), ran: seconds(CLOCK_THREAD_CPUTIME_ID))
        }
    }

    /// The share of one processor.
    static let share = 0.03
    /// The ratio of elapsed time to CPU time above which processors count as busy. With two busy processors
    /// the ratio is 1.0 to 1.3: the scheduler gives a thread a processor for milliseconds while writers wait.
    static let shortness = 1.05
    /// Seconds of CPU time. Shorter reads are never delayed. Readers that are up to date have such short reads.
    static let shortRead = 0.001
    static let longestPause = 2.0

    private struct State {
        /// Decaying sums of the last reads.
        var ran = 0.0
        var took = 0.0
        /// The time at which the reads so far will have used no more than ``share``.
        var free = 0.0
        var note: EventArrivals.Ticket = 0
        var notedAt = -Double.infinity
    }

    private let arrivals: EventArrivals
    private let times: @Sendable () -> Times
    private let state = Lock(State())

    init(arrivals: EventArrivals, times: @escaping @Sendable () -> Times = { .now }) {
        self.arrivals = arrivals
        self.times = times
    }

    /// Reads. Returns the result and the delay in seconds before it is sent.
    func read<Found>(_ work: () -> Found) -> (found: Found, pause: Double) {
        let before = times()
        let found = work()
        let after = times()
        let (ran, took) = (after.ran - before.ran, after.clock - before.clock)
        let note = arrivals.lastNote
        let pause = state.withLock { state -> Double in
            if state.note != note { (state.note, state.notedAt) = (note, after.clock) }
            guard ran >= Self.shortRead else { return 0 }
            state.ran = state.ran * 0.8 + ran
            state.took = state.took * 0.8 + took
            // Elapsed time beyond CPU time means that the thread has waited for a processor.
            guard after.clock - state.notedAt < 1, state.took > state.ran * Self.shortness else {
                state.free = after.clock
                return 0
            }
            state.free = min(
                max(state.free, after.clock) + ran * (1 / Self.share - 1), after.clock + Self.longestPause)
            return state.free - after.clock
        }
        return (found, pause)
    }
}
