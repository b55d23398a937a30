internal import CountersignCore
package import Foundation
package import GatewayModel

/// The log: a line for each request and note that the level includes, as JSON or text, written by its own thread. When
/// the queue is full because the log's reader is slow, lines are dropped and counted.
package final class GatewayLog: GatewayObserver, @unchecked Sendable {
    private enum Entry {
        case request(RequestRecord, LogLevel)
        case line([UInt8])
    }

    private let level: LogLevel
    private let format: LogFormat
    private let capacity: Int
    private let gatherSeconds: Double
    private let now: @Sendable () -> Date
    private let write: @Sendable ([UInt8]) -> Void
    // `condition` guards the properties below.
    private let condition = Condition()
    private var waiting: [Entry] = []
    private var dropped = 0
    private var droppedReported = 0
    private var isClosing = false
    private var hasEnded = false

    package init(
        level: LogLevel, format: LogFormat = .json, capacity: Int = 8_192, gatherSeconds: Double = 0.05,
        write: @escaping @Sendable ([UInt8]) -> Void = GatewayLog.writeToStandardError,
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.level = level
        self.format = format
        self.capacity = capacity
        self.gatherSeconds = gatherSeconds
        self.now = now
        self.write = write
        guard level > .off else {
            hasEnded = true
            return
        }
        let thread = Thread { [self] in run() }
        thread.name = "log"
        thread.start()
    }

    package func requestEnded(_ record: RequestRecord) {
        // A fast path: most requests succeed, and are not logged at levels below `info`.
        if level < .info, let status = record.status, status < 400,
            record.context.verdict != .acceptedWithWarning
        {
            return
        }
        let own = Self.level(of: record)
        if own <= level { enqueue(.request(record, own)) }
    }

    package func commitEnded(_ record: CommitRecord) {
        guard let failure = record.failure, failure.reason != .closed else { return }
        note(.error, "commit failed", [("code", failure.code), ("detail", failure.detail)])
    }

    /// Logs a message that does not belong to a request. The values must not contain a token, key or body.
    package func note(_ own: LogLevel, _ message: StaticString, _ values: [(StaticString, String)] = []) {
        guard own <= level else { return }
        enqueue(.line(line(own, message, values)))
    }

    private func line(
        _ level: LogLevel, _ message: StaticString, _ values: [(StaticString, String)], count: Int? = nil
    ) -> [UInt8] {
        let now = Milliseconds(now()).count
        switch format {
        case .json:
            var line = LogLine(milliseconds: now, level: level, message: message)
            for (name, value) in values { line.put(name, value) }
            line.put("count", count)
            return line.ended()
        case .text(let isColored):
            let counted = count.map { [("count" as StaticString, String($0))] } ?? []
            return TerminalLogLine(isColored: isColored).note(now, level, message, values + counted)
        }
    }

    package var droppedLines: Int {
        condition.lock()
        defer { condition.unlock() }
        return dropped
    }

    /// Writes the queued lines and closes. Gives up after `seconds` if the reader is blocked.
    package func close(within seconds: Double = 2) {
        let deadline = DispatchTime.now() + seconds
        condition.lock()
        isClosing = true
        condition.broadcast()
        while !hasEnded, condition.wait(until: deadline) {}
        condition.unlock()
    }

    private func enqueue(_ entry: Entry) {
        condition.lock()
        if isClosing || waiting.count >= capacity {
            dropped += 1
        } else {
            waiting.append(entry)
            // Wakes the writer for the first entry, and again when the queue is half full.
            if waiting.count == 1 || waiting.count == capacity / 2 { condition.broadcast() }
        }
        condition.unlock()
    }

    private func run() {
        while true {
            condition.lock()
            while waiting.isEmpty, !isClosing { condition.wait() }
            let deadline = DispatchTime.now() + gatherSeconds
            while !isClosing, waiting.count < capacity / 2, condition.wait(until: deadline) {}
            let entries = waiting
            waiting.removeAll(keepingCapacity: true)
            let missing = dropped - droppedReported
            droppedReported = dropped
            let isLast = isClosing && entries.isEmpty
            condition.unlock()
            if isLast { break }
            write(lines(entries, missing: missing))
        }
        condition.lock()
        hasEnded = true
        condition.broadcast()
        condition.unlock()
    }

    private func lines(_ entries: [Entry], missing: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        for entry in entries {
            switch entry {
            case .request(let record, let level):
                switch format {
                case .json: bytes += LogLine(record, level: level).ended()
                case .text(let isColored):
                    bytes += TerminalLogLine(isColored: isColored).request(record, level: level)
                }
            case .line(let line): bytes += line
            }
        }
        if missing > 0 { bytes += line(.warning, "log lines dropped", [], count: missing) }
        return bytes
    }

    static func level(of record: RequestRecord) -> LogLevel {
        guard let status = record.status else { return .info }
        if status >= 500 { return .error }
        if status >= 400 || record.context.verdict == .acceptedWithWarning { return .warning }
        return quietRoutes.contains(record.context.route ?? "") ? .debug : .info
    }

    private static let quietRoutes: BytewiseSet = ["/livez", "/readyz", "/metrics"]

    package static let writeToStandardError: @Sendable ([UInt8]) -> Void = { bytes in
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(STDERR_FILENO, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                // The reader of the log is slow. Waiting blocks only the thread of the log.
                Thread.sleep(forTimeInterval: 0.01)
            } else if errno != EINTR {
                return
            }
        }
    }
}
