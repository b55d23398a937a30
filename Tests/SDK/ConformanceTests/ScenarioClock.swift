import CountersignCore
import CountersignTesting
import CountersignTransport
import Foundation

/// A manual clock that reports when a task sleeps until a given uptime.
final class ScenarioClock: ClientClock {
    /// The initial device time in seconds since 1970.
    static let start = 1_750_000_000

    private let manual = ManualClock(now: Date(timeIntervalSince1970: TimeInterval(start)))
    private let origin: TimeInterval
    private let sleeps = Lock([TimeInterval: Handshake]())

    init() {
        origin = manual.uptime
    }

    var now: Date { manual.now }
    var uptime: TimeInterval { manual.uptime }

    /// Seconds since the scenario began.
    var elapsed: TimeInterval { uptime - origin }

    func sleep(until uptime: TimeInterval) async throws {
        sleep(at: uptime).signal()
        try await manual.sleep(until: uptime)
    }

    func waitForSleeper(until uptime: TimeInterval) async {
        await sleep(at: uptime).wait()
    }

    func advance(to uptime: TimeInterval) { manual.advance(to: uptime) }

    func jump(by seconds: TimeInterval) { manual.setNow(manual.now + seconds) }

    private func sleep(at uptime: TimeInterval) -> Handshake {
        sleeps.withLock { sleeps in
            let handshake = sleeps[uptime] ?? Handshake()
            sleeps[uptime] = handshake
            return handshake
        }
    }
}
