internal import CountersignCore
internal import CountersignJOSE
package import Foundation
internal import GatewayModel

/// Writes the events of each hour that is over to compressed files, once, for whoever loads them elsewhere.
///
/// Each file holds the events that follow those of the file before, so where to resume is read from the manifest alone. A file
/// is listed once it is on the disk: a crash leaves at most one that is not listed, which is removed and written again.
package final class EventFiles: Sendable {
    /// What there is to say of a look.
    package enum Report: Sendable, Equatable {
        /// Why something could not be written; it is tried again.
        case failed(String)
        /// All is written again.
        case recovered
        /// Events before those of a file were deleted before they were in one.
        case missed(app: String, file: String)
    }

    /// A file ends after the event that brings it to so many bytes before compression.
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
    /// The hour up to which everything is written, in milliseconds since 1970.
    private let written = Lock<Int64>(0)
    private let failure = Lock<String?>(nil)

    /// `apps` gives the ids of those whose events are written; nothing is written while fewer than `freeBytes` of the
    /// folder's disk are free, nor while `hasDuty` says that another gateway writes them. `report` hears of a failure once, and of its end.
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

    /// Returns when nothing is written any more; a file that was begun is written again after the next start.
    package func stop() {
        ticker.stop()
        isStopping.withLock { $0 = true }
        queue.sync {}
    }

    /// Writes the hours that are over, and returns when that is done or has failed; what failed is tried at the next look.
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
                    // That of one app is no reason to leave out the others.
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

    /// Writes an app's events up to the first that was received in the hour that is not over.
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

    /// The number of the last event that a listed file has; 0 before the first.
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

    /// Writes the events before the first one of a later hour; one that came late stays in its place in the order. Nil when
    /// it was stopped.
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

    /// Such as `2026-11-22T19-000001.ndjson.zst`: the hour, and which file of it. Names come in the order of the events, so an
    /// event that came very late is in a file of the hour in which others are already.
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

/// Events in their order, read a page at a time.
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

    /// The next event; nil when there is none, or when it is of the hour that is not over, or of the next, since clocks differ. One
    /// of a later hour was stored while the clock was ahead, and must not hold up those after it.
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

    /// True once when events before the next one were deleted before they were read.
    mutating func takeMissed() -> Bool {
        defer { hasMissed = false }
        return hasMissed
    }
}
