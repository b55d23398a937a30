internal import CountersignCore
internal import Foundation

final class ProgressLine: Sendable {
    private let total: Int
    private let start: Int
    private let io: CommandIO
    private let now: @Sendable () -> Date
    private let began: Date
    /// The time of the last drawing; nil before the first one and after `clear()`.
    private let drawnAt = Lock<Date?>(nil)

    /// `total` is 0 if the total is unknown. `start` is the count at which this run begins, such as after a resume.
    init(
        total: Int = 0, from start: Int = 0, io: CommandIO, now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.total = total
        self.start = start
        self.io = io
        self.now = now
        began = now()
    }

    func show(_ done: Int) {
        draw(always: done == total) {
            let rate = Double(done - start) / max(0.001, now().timeIntervalSince(began))
            let left = rate > 0 ? Double(total - done) / rate : 0
            let filled = total > 0 ? 24 * done / total : 24
            let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: 24 - filled)
            return ((io.messageWidth ?? 80) < 64 ? "" : bar + " ")
                + "\(done) of \(total)  \(Int(rate))/s  \(Int(left.rounded(.up))) s left"
        }
    }

    /// Shows a text. `always` turns off the rate limit, for the first text of a long step.
    func show(_ text: String, always: Bool = false) {
        draw(always: always) { text }
    }

    /// Draws at most ten times a second, unless `always` is set.
    private func draw(always: Bool, _ text: () -> String) {
        guard io.isInteractive else { return }
        let now = now()
        let isDue = drawnAt.withLock { last in
            guard always || last.map({ now.timeIntervalSince($0) > 0.1 }) ?? true else { return false }
            last = now
            return true
        }
        if isDue { io.talk(io.inPlace(text())) }
    }

    /// Replaces the progress line by a message. The next `show` draws the progress line below the message.
    func say(_ line: String) {
        io.talk(io.isInteractive ? "\r\u{1B}[K\(line)\n" : "\(line)\n")
    }

    func end() {
        if io.isInteractive { io.talk("\n") }
    }

    func clear() {
        let isThere = drawnAt.withLock { drawn in
            defer { drawn = nil }
            return drawn != nil
        }
        if isThere { io.talk("\r\u{1B}[K") }
    }
}
