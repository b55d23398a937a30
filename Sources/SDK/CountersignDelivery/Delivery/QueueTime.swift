internal import Foundation

/// The time that measures the age of events: seconds since the queue file was created, without the time in which the
/// device was off. The device clock may jump, which would make new events look weeks old and delete them.
struct QueueTime {
    struct Saved {
        let seconds: Int64
        /// Seconds since 1970. Only earlier versions read it.
        let wall: Int64
        /// In seconds; nil in a file of an earlier version.
        let uptime: Int64?

        var text: String {
            guard let uptime else { return "\(seconds) \(wall)" }
            let text = "\(seconds) \(wall) u\(uptime)"
            return "\(text)-\(Self.checksum(text))"
        }

        /// Detects damage. A time in the future, because of a flipped bit, would make all events too old.
        private static func checksum(_ text: some StringProtocol) -> String {
            String(CRC32.of(Array(text.utf8)[...]), radix: 16)
        }
    }

    private var base: TimeInterval = 0
    private let start: TimeInterval

    // Read `uptime` after `saved`, because another process may save a later uptime at any time.
    init(uptime start: TimeInterval, after saved: Saved? = nil) {
        self.start = start
        guard let saved else { return }
        base = TimeInterval(saved.seconds)
        guard let uptime = saved.uptime.map({ TimeInterval($0) }) else { return }
        // A smaller uptime means a restart, unless it is within the second to which the saved uptime was rounded up.
        // If uptime is larger in spite of a restart, events appear younger.
        base += start > uptime - 1 ? max(0, start - uptime) : start
    }

    func seconds(uptime: TimeInterval) -> Int64 {
        Int64(base + max(0, uptime - start))
    }

    func saved(now: Date, uptime: TimeInterval) -> Saved {
        Saved(
            seconds: seconds(uptime: uptime), wall: Int64(now.timeIntervalSince1970),
            uptime: Int64(uptime.rounded(.up)))
    }
}

extension QueueTime.Saved {
    /// The upper bound lets seconds be added without overflow.
    private static let possible: ClosedRange<Int64> = 0...(1 << 52)

    // Nil for text of another form or with another checksum, such as from a damaged file.
    init?(text given: String) {
        var text = given
        if let dash = given.lastIndex(of: "-"), given[..<dash].contains("u") {
            text = String(given[..<dash])
            guard Self.checksum(text) == given[given.index(after: dash)...] else { return nil }
        }
        let parts = text.split(separator: " ")
        guard parts.count == 2 || parts.count == 3, let seconds = Int64(parts[0]), let wall = Int64(parts[1]),
            Self.possible.contains(seconds)
        else { return nil }
        var uptime: Int64?
        if parts.count == 3 {
            // Earlier versions read two integers and ignore a third part that begins with a letter.
            guard parts[2].utf8.first == UInt8(ascii: "u"), let number = Int64(parts[2].dropFirst()),
                Self.possible.contains(number)
            else { return nil }
            uptime = number
        }
        self.init(seconds: seconds, wall: wall, uptime: uptime)
    }
}
