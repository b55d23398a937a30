internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// Keeps reading from slowing storing.
///
/// While events are stored and processors are short, all who read many events get 3 % of one processor's time
/// together: an answer is held back for as long as that takes. Where processors are free, nobody waits.
final class ReadingPace: Sendable {
    /// Seconds on a clock that only goes forward, and seconds that this thread has run.
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

    /// Of one processor.
    static let share = 0.03
    /// A look takes so many times as long as it runs where processors are short. On two processors of which both are busy it is
    /// 1.0 to 1.3: whoever has one keeps it for milliseconds, and those who store wait meanwhile.
    static let shortness = 1.05
    /// Seconds: a look that runs for less is never held back, as of those who are up to date.
    static let shortLook = 0.001
    static let longestPause = 2.0

    private struct State {
        /// Of the last looks, the latest counting most.
        var ran = 0.0
        var took = 0.0
        /// When what was read so far has been made up for.
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

    /// Reads. Returns what was found, and for how many seconds that is to be held back.
    func read<Found>(_ look: () -> Found) -> (found: Found, pause: Double) {
        let before = times()
        let found = look()
        let after = times()
        let (ran, took) = (after.ran - before.ran, after.clock - before.clock)
        let note = arrivals.lastNote
        let pause = state.withLock { state -> Double in
            if state.note != note { (state.note, state.notedAt) = (note, after.clock) }
            guard ran >= Self.shortLook else { return 0 }
            state.ran = state.ran * 0.8 + ran
            state.took = state.took * 0.8 + took
            // Whoever reads from memory and does not run waits for a processor.
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
