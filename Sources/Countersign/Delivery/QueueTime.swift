internal import Foundation

/// The time by which the age of an event is judged: seconds since the queue file was made.
///
/// The device clock cannot be trusted for that: a clock that stands at 1970 while events are recorded and is then put
/// right would make them look 50 years old. So while the app runs the time follows the monotonic clock, and between two
/// runs it follows the device clock, but not by more than `maximumGap`.
struct QueueTime {
    /// A pause between two runs counts for no more than this: 7 days, in seconds.
    static let maximumGap: TimeInterval = 7 * 86_400

    /// What is kept in the file.
    struct Saved {
        let seconds: Int64
        /// The device clock at that moment, in seconds since 1970.
        let wall: Int64

        var text: String { "\(seconds) \(wall)" }
    }

    private var base: TimeInterval = 0
    private let start: (now: Date, uptime: TimeInterval)

    init(now: Date, uptime: TimeInterval) {
        start = (now, uptime)
    }

    /// Goes on from where an earlier run stopped.
    mutating func resume(from saved: Saved?) {
        guard let saved else { return }
        let gap = start.now.timeIntervalSince1970 - TimeInterval(saved.wall)
        base = TimeInterval(saved.seconds) + min(max(0, gap), Self.maximumGap)
    }

    func seconds(uptime: TimeInterval) -> Int64 {
        Int64(base + max(0, uptime - start.uptime))
    }

    func saved(now: Date, seconds: Int64) -> Saved {
        Saved(seconds: seconds, wall: Int64(now.timeIntervalSince1970))
    }
}

extension QueueTime.Saved {
    /// Seconds that time can be added to.
    private static let possible: ClosedRange<Int64> = 0...(1 << 52)

    // Nil for what nothing here has written.
    init?(text: String) {
        let parts = text.split(separator: " ").compactMap { Int64($0) }
        guard parts.count == 2, Self.possible.contains(parts[0]) else { return nil }
        self.init(seconds: parts[0], wall: parts[1])
    }
}
