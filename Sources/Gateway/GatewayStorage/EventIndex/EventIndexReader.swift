internal import CountersignCore
internal import CountersignSQLite

/// The opened runs, shared by readers, and the recent events without a run.
final class OpenIndexRuns: Sendable {
    let recent = RecentEvents()
    private let runs = Lock<[IndexRunName: IndexRun]>([:])

    /// The readable runs of a log, the oldest first.
    func all(in folder: String, logID: [UInt8]) -> [IndexRun] {
        let known = runs.withLock { $0 }
        let found = IndexFolder.names(in: folder).compactMap { name in
            known[name].flatMap { $0.logID == logID ? $0 : nil }
                ?? (try? IndexRun(name, folder: folder, logID: logID, forKeys: false))
        }
        runs.withLock { $0 = Dictionary(uniqueKeysWithValues: found.map { ($0.name, $0) }) }
        return found
    }
}

/// Finds events by subject, for readers. Scans the table for events without a run, so missing runs cost only time.
/// Results may be deleted events or hash collisions, so callers must check the events.
struct EventIndexReader {
    enum Side {
        case after(Int64)
        case before(Int64)
    }

    private enum Part {
        case run(IndexRun)
        case rows(ClosedRange<Int64>)
    }

    private let sqlite: SQLiteConnection
    private let hasher: IndexHasher
    private let recent: RecentEvents
    /// The parts that together contain all events, the oldest first.
    private let parts: [Part]

    init(_ sqlite: SQLiteConnection, folder: String, runs: OpenIndexRuns) throws {
        self.sqlite = sqlite
        recent = runs.recent
        var parts: [Part] = []
        var start: Int64 = 1
        let log = try EventLogState.readExisting(sqlite)
        for run in runs.all(in: folder, logID: log.id) where run.name.first >= start {
            if run.name.first > start { parts.append(.rows(start...run.name.first - 1)) }
            parts.append(.run(run))
            start = run.name.last + 1
        }
        self.parts = parts + [.rows(start...Int64.max - 1)]
        hasher = IndexHasher(secret: log.secret)
    }

    /// Returns `limit` sequence numbers, or fewer when no more follow.
    func sequences(of subject: EventSubject, in appID: String, _ side: Side, limit: Int) throws -> [Int64] {
        let hash = hasher.hash(of: subject, in: appID)
        var found: [Int64] = []
        for part in isAscending(side) ? parts : parts.reversed() where found.count < limit {
            switch part {
            case .rows(let range):
                found +=
                    subject == .app
                    ? try newestOfApp(appID, hash, range, side, limit - found.count)
                    : try rows(of: subject, in: appID, range, side, limit)
            case .run(let run):
                do {
                    found += try sequences(of: hash, in: run, side, limit)
                } catch {
                    found += try rows(of: subject, in: appID, run.name.first...run.name.last, side, limit)
                }
            }
        }
        let claims = try claims(of: subject, in: appID, side, limit)
        if claims.isEmpty { return Array(found.prefix(limit)) }
        let all = Set(found + claims).sorted()
        return Array((isAscending(side) ? all : all.reversed()).prefix(limit))
    }

    private func sequences(
        of hash: UInt64, in run: IndexRun, _ side: Side, _ limit: Int
    ) throws(IndexFileError) -> [Int64] {
        switch side {
        case .after(let sequence): try run.sequences(of: hash, after: sequence, limit: limit)
        case .before(let sequence): try run.sequences(of: hash, before: sequence, limit: limit)
        }
    }

    /// The app's events without a run. Scans the table for events that are not in the memory of this process.
    private func newestOfApp(
        _ appID: String, _ hash: UInt64, _ range: ClosedRange<Int64>, _ side: Side, _ limit: Int
    ) throws -> [Int64] {
        var (low, high) = (range.lowerBound, range.upperBound)
        switch side {
        case .after(let sequence):
            guard sequence < high else { return [] }
            low = max(low, sequence + 1)
        case .before(let sequence):
            guard sequence > low else { return [] }
            high = min(high, sequence - 1)
        }
        guard let first = recent.first, first <= high,
            let known = recent.sequences(
                of: hash, in: max(low, first)...high, newestFirst: !isAscending(side), limit: limit)
        else { return try rows(of: .app, in: appID, low...high, side, limit) }
        var found: [Int64] = []
        func scan(_ low: Int64, _ high: Int64) throws {
            guard low <= high, found.count < limit else { return }
            found += try rows(of: .app, in: appID, low...high, side, limit - found.count)
        }
        // Events of the last commit may not be in memory yet.
        if isAscending(side) {
            try scan(low, first - 1)
            found += known.found.prefix(limit - found.count)
            try scan(max(low, known.last + 1), high)
        } else {
            try scan(max(low, known.last + 1), high)
            found += known.found.prefix(limit - found.count)
            try scan(low, first - 1)
        }
        return found
    }

    /// The number of an app's events after a sequence number. May include deleted events that are still in the index.
    func count(of appID: String, after sequence: Int64) throws -> Int {
        let hash = hasher.hash(of: .app, in: appID)
        var count = 0
        for part in parts {
            switch part {
            case .run(let run):
                guard run.name.last > sequence else { continue }
                do {
                    count += try run.count(of: hash, after: sequence)
                } catch {
                    count += try countRows(
                        of: appID, from: max(run.name.first, sequence + 1), to: run.name.last)
                }
            case .rows(let range):
                count += try newestOfApp(appID, hash, range, .after(sequence), .max).count
            }
        }
        return count
    }

    /// Counts rows, for damaged parts of the index.
    private func countRows(of appID: String, from first: Int64, to last: Int64) throws -> Int {
        try sqlite.first(
            "SELECT count(*) FROM event WHERE app_id = ?1 AND seq BETWEEN ?2 AND ?3", .text(appID),
            .integer(first), .integer(last)
        ) { $0.int(0) } ?? 0
    }

    private func isAscending(_ side: Side) -> Bool {
        if case .after = side { true } else { false }
    }

    /// Events that were stored as anonymous events, and assigned to the user later.
    private func claims(
        of subject: EventSubject, in appID: String, _ side: Side, _ limit: Int
    ) throws -> [Int64] {
        guard case .user(let user) = subject else { return [] }
        return try sequences(
            "event_claim WHERE app_id = ?1 AND user_id = ?2", [.text(appID), .text(user)], side, limit)
    }

    private func rows(
        of subject: EventSubject, in appID: String, _ range: ClosedRange<Int64>, _ side: Side, _ limit: Int
    ) throws -> [Int64] {
        let (condition, id) =
            switch subject {
            case .app: ("app_id = ?1 AND ?2 = ?2", "")
            case .user(let id): ("app_id = ?1 AND user_id = ?2", id)
            case .device(let id): ("app_id = ?1 AND user_id IS NULL AND anonymous_id = ?2", id)
            case .message(let id): ("app_id = ?1 AND message_id = ?2", id)
            }
        return try sequences(
            "event WHERE \(condition) AND seq BETWEEN ?3 AND ?4",
            [.text(appID), .text(id), .integer(range.lowerBound), .integer(range.upperBound)], side, limit)
    }

    private func sequences(
        _ source: String, _ values: [SQLValue], _ side: Side, _ limit: Int
    ) throws -> [Int64] {
        let (condition, bound) =
            switch side {
            case .after(let sequence): ("seq > ?5 ORDER BY seq", sequence)
            case .before(let sequence): ("seq < ?5 ORDER BY seq DESC", sequence)
            }
        let rest = [SQLValue](repeating: .null, count: 4 - values.count)
        return try sqlite.all(
            "SELECT seq FROM \(source) AND \(condition) LIMIT ?6",
            values + rest + [.integer(bound), .integer(Int64(limit))]
        ) { $0.int64(0) }
    }
}
