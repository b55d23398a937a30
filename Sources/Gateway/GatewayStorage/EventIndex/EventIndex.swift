internal import CountersignCore
internal import Foundation

/// An index of events by key and by subject: the newest events in memory, all others in runs on disk.
///
/// Entries lost in a crash are built again from the events, so the index needs no durability of its own. A background
/// queue writes and merges runs. All methods must be called on the thread of the event writer. See
/// `docs/adr/0020-event-index.md`.
final class EventIndex {
    struct Sizes {
        /// The number of events in memory that become a run.
        var runEvents = 32_768
        /// The number of runs merged into a run of the next level.
        var mergeWidth = 8
        /// The level at which runs are no longer merged, with 16.8 million events each.
        var highestLevel = 3
        /// The number of events in a range of ``EventTimes``.
        var timeEvents = 8_192
        /// If this many tables wait to become runs, the writer waits until the background queue has written them.
        var mostWaiting = 16
    }

    /// Events that are not in a run yet.
    private struct Table {
        let first: Int64
        var last: Int64
        var keys: [EventKey: Int64] = [:]
        var subjects: [(hash: UInt64, sequence: Int64)] = []

        init(first: Int64) {
            self.first = first
            last = first - 1
        }

        /// Whether a run can store this sequence number as a 32-bit offset from its first one. Sequence numbers of a
        /// log that was copied from PostgreSQL may have large gaps.
        func reaches(_ sequence: Int64) -> Bool { sequence - first <= IndexRunName.longest }

        mutating func add(_ event: EventIndexRecord) {
            keys[event.key] = event.sequence
            subjects.append((event.app, event.sequence))
            subjects.append((event.message, event.sequence))
            if let senderHash = event.senderHash { subjects.append((senderHash, event.sequence)) }
            last = event.sequence
        }
    }

    private struct State {
        /// The oldest first.
        var runs: [IndexRun] = []
        /// Tables that are waiting to become runs, the oldest first.
        var waiting: [Table] = []
        var damaged: Set<IndexRunName> = []
        var failure: IndexFileError?
    }

    private let sizes: Sizes
    private let folder: String
    private let writer: IndexRunWriter
    private let recent: RecentEvents
    private let state = Lock(State())
    private let queue = DispatchQueue(label: "event index", qos: .utility)
    private var table: Table
    /// The tables and runs that a commit searches in addition to `table`. Cleared afterwards, because they would keep
    /// the files of merged runs open.
    private var older: (waiting: [Table], runs: [IndexRun]) = ([], [])

    /// Builds missing runs. Adds events without a run to `recent`, for readers of this process. `first` is the oldest
    /// event's sequence number, `next` the next event's. `events` enumerates the events of a range in order.
    init(
        folder: String, logID: [UInt8], first: Int64, next: Int64, sizes: Sizes, recent: RecentEvents,
        events: (ClosedRange<Int64>, (EventIndexRecord) throws -> Void) throws -> Void
    ) throws {
        self.folder = folder
        self.sizes = sizes
        self.recent = recent
        writer = IndexRunWriter(folder: folder, logID: logID)
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        // Skips runs beyond the end of the log: they belong to the log before a restore.
        var runs = IndexFolder.names(in: folder).filter { $0.last < next }.compactMap {
            try? IndexRun($0, folder: folder, logID: logID)
        }
        table = Table(first: first)
        var newest: [EventIndexRecord] = []
        var start = first
        for run in runs {
            if run.name.first > start {
                try read(start...run.name.first - 1, events)
                try end(&runs, at: run.name.first - 1)
            }
            start = max(start, run.name.last + 1)
            table = Table(first: start)
        }
        runs.sort { $0.name.first < $1.name.first }
        IndexFolder.clean(folder, keeping: runs.map(\.name))
        if start < next { try read(start...next - 1, events) }

        func read(
            _ range: ClosedRange<Int64>,
            _ events: (ClosedRange<Int64>, (EventIndexRecord) throws -> Void) throws -> Void
        ) throws {
            try events(range) { event in
                if !table.reaches(event.sequence) {
                    try end(&runs, at: table.last)
                    table = Table(first: event.sequence)
                }
                table.add(event)
                newest.append(event)
                if table.keys.count >= sizes.runEvents { try end(&runs, at: event.sequence) }
            }
        }
        func end(_ runs: inout [IndexRun], at last: Int64) throws {
            // Excludes a gap that exceeds the range of a run. Scanning the gap again is cheap, because it has no rows.
            let last = table.reaches(last) ? last : table.last
            guard table.first <= last else { return }
            table.last = last
            runs.append(try Self.write(table, writer))
            table = Table(first: last + 1)
            newest = []
        }
        state.withLock { $0.runs = runs }
        recent.begin(with: newest, from: table.first)
        makeRuns()
    }

    private func makeRuns() {
        queue.async { [state, writer, sizes, recent] in Self.work(state, writer, sizes, recent) }
    }

    /// Waits until no run is being written.
    func stop() {
        recent.end()
        queue.sync {}
    }

    /// Must be called before a commit. Waits if too many tables have not become runs yet; throws if writing runs fails.
    func makeRoom() throws {
        older = state.withLock { ($0.waiting, $0.runs) }
        guard older.waiting.count >= sizes.mostWaiting else { return }
        makeRuns()
        queue.sync {}
        try state.withLock { state in
            if let failure = state.failure, state.waiting.count >= sizes.mostWaiting { throw failure }
        }
    }

    /// The newest event with this key for which `isThere` returns true. Requires ``makeRoom()`` before.
    func sequence(of key: EventKey, where isThere: (Int64) throws -> Bool) throws -> Int64? {
        if let sequence = table.keys[key], try isThere(sequence) { return sequence }
        for index in older.waiting.indices.reversed() {
            if let sequence = older.waiting[index].keys[key], try isThere(sequence) { return sequence }
        }
        for index in older.runs.indices.reversed() where older.runs[index].mayContain(key) {
            let run = older.runs[index]
            let found = try reading(run) { run throws(IndexFileError) in try run.sequences(of: key) }
            if let sequence = try found.last(where: isThere) { return sequence }
        }
        return nil
    }

    /// Up to `limit` events of an app, oldest first. Some of them may be deleted.
    func sequences(
        ofApp hash: UInt64, after sequence: Int64, limit: Int
    ) throws(IndexFileError) -> [Int64] {
        // Read before the list of runs, so that events that leave memory in the meantime are found in a run.
        let newest = recent.sequences(of: hash, after: sequence, limit: limit)
        let runs = state.withLock { $0.runs }
        var found: [Int64] = []
        for run in runs where found.count < limit && run.name.first < newest.first {
            found += try reading(run) { run throws(IndexFileError) in
                try run.sequences(of: hash, after: sequence, limit: limit - found.count)
            }
        }
        return Array((found.prefix { $0 < newest.first } + newest.found).prefix(limit))
    }

    func contains(_ hash: UInt64, after sequence: Int64, where isThere: (Int64) throws -> Bool) throws -> Bool
    {
        let (waiting, runs) = state.withLock { ($0.waiting, $0.runs) }
        for run in runs {
            var scannedThrough = sequence
            while true {
                let found = try reading(run) { run throws(IndexFileError) in
                    try run.sequences(of: hash, after: scannedThrough, limit: 64)
                }
                if try found.contains(where: isThere) { return true }
                guard found.count == 64, let last = found.last else { break }
                scannedThrough = last
            }
        }
        for table in waiting + [table] {
            for entry in table.subjects where entry.hash == hash && entry.sequence > sequence {
                if try isThere(entry.sequence) { return true }
            }
        }
        return false
    }

    /// Reads a run. A damaged run's file is deleted. The run is written again when the index is next opened.
    private func reading<Value>(
        _ run: IndexRun, _ body: (IndexRun) throws(IndexFileError) -> Value
    ) throws(IndexFileError) -> Value {
        do {
            return try body(run)
        } catch {
            IndexFolder.remove(run.name.file, from: folder)
            throw error
        }
    }

    /// Adds events, which must be committed and in ascending order.
    func add(_ events: [EventIndexRecord]) {
        for event in events {
            if !table.reaches(event.sequence) { endTable(before: event.sequence) }
            table.add(event)
        }
        recent.add(events)
        older = ([], [])
        if table.keys.count >= sizes.runEvents { endTable(before: table.last + 1) }
    }

    private func endTable(before next: Int64) {
        let full = table
        table = Table(first: next)
        guard !full.keys.isEmpty else { return }
        state.withLock { $0.waiting.append(full) }
        makeRuns()
    }

    func removeRuns(before first: Int64) {
        let gone = state.withLock { state in
            let gone = state.runs.filter { $0.name.last < first }
            state.runs.removeFirst(gone.count)
            return gone
        }
        // On the queue, because deleting large files may take long.
        queue.async { [folder] in
            for run in gone { IndexFolder.remove(run.name.file, from: folder) }
        }
    }

    // MARK: Background work

    private static func write(_ table: Table, _ writer: IndexRunWriter) throws(IndexFileError) -> IndexRun {
        let first = table.first
        let keys = table.keys.map { KeyEntry(key: $0, offset: UInt32($1 - first)) }.sortedByHash()
        let subjects = table.subjects.map { SubjectEntry(hash: $0.hash, offset: UInt32($0.sequence - first)) }
            .sortedByHash()
        return try writer.write(
            IndexRunName(first: first, last: table.last, level: 0), keys: keys, subjects: subjects)
    }

    private static func work(
        _ state: Lock<State>, _ writer: IndexRunWriter, _ sizes: Sizes, _ recent: RecentEvents
    ) {
        do {
            while true {
                if let table = state.withLock({ $0.waiting.first }) {
                    let run = try write(table, writer)
                    state.withLock { state in
                        state.runs.append(run)
                        state.waiting.removeFirst()
                        state.failure = nil
                    }
                    // Must come after the run is listed, so that readers always find the events.
                    recent.remove(through: table.last)
                } else if let runs = state.withLock({ mergeable($0, sizes) }) {
                    try merge(runs, state, writer)
                } else {
                    return
                }
            }
        } catch {
            state.withLock { state in
                state.failure = error
                // Excludes a damaged run from merges and deletes its file. The next opening writes the run again.
                for run in state.runs where run.file.path == error.path {
                    state.damaged.insert(run.name)
                    IndexFolder.remove(run.name.file, from: writer.folder)
                }
            }
        }
    }

    private static func merge(
        _ runs: [IndexRun], _ state: Lock<State>, _ writer: IndexRunWriter
    ) throws(IndexFileError) {
        let merged = try writer.merge(runs)
        let isUsed = state.withLock { state in
            // Retention may have removed the first run in the meantime.
            guard let start = state.runs.firstIndex(where: { $0.name == runs[0].name }) else { return false }
            state.runs.replaceSubrange(start..<start + runs.count, with: [merged])
            return true
        }
        for name in isUsed ? runs.map(\.name) : [merged.name] {
            IndexFolder.remove(name.file, from: writer.folder)
        }
    }

    /// The first adjacent runs of the same level that can be merged.
    private static func mergeable(_ state: State, _ sizes: Sizes) -> [IndexRun]? {
        var neighbours: [IndexRun] = []
        for run in state.runs {
            let follows = neighbours.last.map {
                $0.name.level == run.name.level && $0.name.last + 1 == run.name.first
                    && run.name.last - neighbours[0].name.first <= IndexRunName.longest
            }
            if follows != true { neighbours = [] }
            guard run.name.level < sizes.highestLevel, !state.damaged.contains(run.name) else {
                neighbours = []
                continue
            }
            neighbours.append(run)
            if neighbours.count == sizes.mergeWidth { return neighbours }
        }
        return nil
    }
}
