internal import CountersignCore
package import Foundation
internal import GatewayModel
package import GatewayStorage

/// Exports the events of each completed hour to compressed files, for loading elsewhere.
///
/// Each file continues after the previous one, so the manifest alone determines where to resume. A file is
/// listed once it is durable. After a crash, at most one unlisted file remains, which is deleted and written
/// again.
package final class EventFiles: Sendable {
    package enum Report: Sendable, Equatable {
        /// A write failed with this reason; it will be retried.
        case failed(String)
        /// Writing works again.
        case recovered
        /// Retention deleted events before the file's first event, and they were not exported.
        case missed(app: String, file: String)
    }

    /// The maximum size of a file before compression, in bytes. The event that reaches it is included.
    static let longestFile = 256 << 20
    fileprivate static let hour: Int64 = 3_600_000

    private let folder: String
    private let log: any EventLog
    private let apps: @Sendable () throws -> [String]
    private let longestFile: Int
    private let freeBytes: Int
    private let hasDuty: @Sendable () -> Bool
    private let now: @Sendable () -> Date
    private let report: @Sendable (Report) -> Void
    private let queue = DispatchQueue(label: "event files", qos: .utility)
    private let ticker: Ticker
    private let isStopping = Lock(false)
    /// The hour up to which everything is exported, in milliseconds since 1970.
    private let written = Lock<Int64>(0)
    private let failure = Lock<String?>(nil)

    /// `apps` returns the ids of the apps to export. Nothing is written while fewer than `freeBytes` are free
    /// on the folder's disk, or while `hasDuty` returns false because another gateway writes. `report` is
    /// called once for the first of consecutive failures and once for the recovery.
    package init(
        folder: String, log: any EventLog, apps: @escaping @Sendable () throws -> [String],
        longestFile: Int = EventFiles.longestFile, freeBytes: Int = 0,
        hasDuty: @escaping @Sendable () -> Bool = { true }, now: @escaping @Sendable () -> Date,
        report: @escaping @Sendable (Report) -> Void
    ) {
        self.folder = folder
        self.log = log
        self.apps = apps
        self.longestFile = longestFile
        self.freeBytes = freeBytes
        self.hasDuty = hasDuty
        self.now = now
        self.report = report
        ticker = Ticker(queue: queue, everySeconds: 10)
    }

    package func start() {
        queue.async { [weak self] in self?.writeIfDue() }
        ticker.start { [weak self] in self?.writeIfDue() }
    }

    /// Stops writing. An unfinished file is written again after the next start.
    package func stop() {
        ticker.stop()
        isStopping.withLock { $0 = true }
        queue.sync {}
    }

    /// Exports the completed hours and waits for the result. Failures are retried at the next interval.
    package func finish() { queue.sync { writeIfDue() } }

    private func writeIfDue() {
        let milliseconds = Milliseconds(now()).count
        let hour = milliseconds - milliseconds % Self.hour
        guard hour != written.withLock({ $0 }), hasDuty() else { return }
        var problem: String?
        do {
            for app in try apps() {
                do {
                    try write(app, until: hour)
                } catch {
                    // Continues with the other apps.
                    problem = problem ?? FileProblem.text(error)
                }
            }
        } catch {
            problem = FileProblem.text(error)
        }
        guard !isStopping.withLock({ $0 }) else { return }
        if problem == nil { written.withLock { $0 = hour } }
        let last = failure.withLock { failure in
            defer { failure = problem }
            return failure
        }
        if let problem, last == nil {
            report(.failed(problem))
        } else if problem == nil, last != nil {
            report(.recovered)
        }
    }

    /// Exports an app's events up to the first event received in the current hour.
    private func write(_ appID: String, until end: Int64) throws {
        var manifest = try EventFileManifest(folder: folder + "/" + appID)
        let positions = try log.positions()
        var pages = EventPages(
            log: log, following: EventFollowing(appID: appID),
            after: try place(in: manifest, positions, appID),
            until: end)
        while let first = try pages.first, !isStopping.withLock({ $0 }) {
            let hour = first.receivedMilliseconds - first.receivedMilliseconds % Self.hour
            let name = Self.name(of: hour, after: manifest.last?.file)
            let hasMissed = manifest.last != nil && pages.takeMissed()
            let file = try ZstdFile(path: manifest.folder + "/" + name)
            guard let part = try fill(file, from: &pages, of: hour + Self.hour, appID, positions) else {
                return
            }
            let sum = try file.finish()
            try manifest.add(
                EventFileManifest.Entry(
                    file: name, first: positions.text(after: first.sequence, in: appID),
                    last: positions.text(after: part.last, in: appID), events: part.events,
                    bytes: file.bytes, sha256: sum.hexadecimal, hasMissed: hasMissed))
            if hasMissed { report(.missed(app: appID, file: name)) }
        }
    }

    /// The sequence number of the last exported event; 0 before the first.
    private func place(
        in manifest: EventFileManifest, _ positions: EventPositions, _ appID: String
    ) throws(GatewayError) -> Int64 {
        guard let last = manifest.last else { return 0 }
        do throws(EventPositions.Fault) {
            return try positions.sequence(of: last.last, in: appID)
        } catch {
            throw GatewayError(
                .storage, "\(manifest.folder) cannot be continued: \(error.reason); or move the folder away")
        }
    }

    /// Writes events until the first event of a later hour. Events received in an earlier hour keep their
    /// position in the order. Returns nil when stopped.
    private func fill(
        _ file: ZstdFile, from pages: inout EventPages, of end: Int64, _ appID: String,
        _ positions: EventPositions
    ) throws -> (events: Int, last: Int64)? {
        var (events, last, bytes) = (0, Int64(0), 0)
        while let event = try pages.first, event.receivedMilliseconds < end, bytes < longestFile {
            if events % EventPages.eventsPerPage == 0 {
                if isStopping.withLock({ $0 }) { return nil }
                try checkSpace()
            }
            var line: [UInt8] = []
            event.write(
                to: &line, position: positions.text(after: event.sequence, in: appID), asLine: true)
            line.append(0x0A)
            try file.write(line)
            (events, last, bytes) = (events + 1, event.sequence, bytes + line.count)
            pages.removeFirst()
        }
        return (events, last)
    }

    private func checkSpace() throws(GatewayError) {
        guard let free = DiskSpace.free(at: folder), free < freeBytes else { return }
        throw GatewayError(
            .storage, "\(free) bytes are free for \(folder), files are written above \(freeBytes)")
    }

    /// A file name such as `2026-11-22T19-000001.ndjson.zst`: the hour and a number. Names ascend in the
    /// order of events, so an event that was stored very late is in a file of a later hour.
    static func name(of hour: Int64, after last: String?) -> String {
        let digits = 13
        let own = String(RFC3339.text(milliseconds: hour).prefix(digits))
        let other = last.map { String($0.prefix(digits)) } ?? own
        let prefix = own < other ? other : own
        let before = last.flatMap { last in
            last.hasPrefix(prefix) ? Int(last.dropFirst(digits + 1).prefix { $0.isNumber }) : nil
        }
        let number = String((before ?? 0) + 1)
        return prefix + "-" + String(repeating: "0", count: max(0, 6 - number.count)) + number
            + EventFileManifest.suffix
    }
}

private struct EventPages {
    static let eventsPerPage = 500

    let log: any EventLog
    let following: EventFollowing
    private var reached: Int64
    private let end: Int64
    private var page: ArraySlice<StoredEvent> = []
    private var isLast = false
    private var hasMissed = false

    init(log: any EventLog, following: EventFollowing, after sequence: Int64, until end: Int64) {
        self.log = log
        self.following = following
        reached = sequence
        self.end = end
    }

    /// The next event to export. Nil at the end, and for an event received in the current hour or, because of
    /// clock differences, in the next hour. Events dated later were stored while the clock was ahead, and are
    /// exported so that they do not block the following events.
    var first: StoredEvent? {
        mutating get throws {
            while page.isEmpty, !isLast {
                let found = try log.follow(following, after: reached, limit: Self.eventsPerPage)
                page = found.events[...]
                reached = found.reached
                isLast = !found.hasMore
                hasMissed = hasMissed || found.hasMissed
            }
            return page.first.flatMap {
                (end..<end + 2 * EventFiles.hour).contains($0.receivedMilliseconds) ? nil : $0
            }
        }
    }

    mutating func removeFirst() {
        page.removeFirst()
    }

    /// Returns true once if events before the next one were deleted unread.
    mutating func takeMissed() -> Bool {
        defer { hasMissed = false }
        return hasMissed
    }
}
