internal import CountersignCore
internal import CountersignSQLite
internal import CountersignTransport
internal import Foundation

/// A queue of events that wait for delivery, in one SQLite file. Counters change in the same transaction as events.
///
/// Uses a rollback journal and `synchronous=NORMAL`. Two processes may share the file. A power failure may undo the
/// last transaction; `WriteAheadLog` and the server's deduplication compensate (see docs/adr/0014). Not thread-safe:
/// `Storage` calls it on one thread.
final class EventQueue {
    /// A migration may only add tables and columns with defaults, because older versions of the SDK must be able to
    /// use the file. Released migrations never change.
    static let migrations = [
        """
        CREATE TABLE event (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            message_id TEXT NOT NULL,
            user_id TEXT NOT NULL,
            session_id TEXT NOT NULL,
            queue_time_s INTEGER NOT NULL,
            body BLOB NOT NULL
        );
        CREATE INDEX event_user ON event (user_id, seq);
        CREATE TABLE quarantine (
            seq INTEGER PRIMARY KEY,
            message_id TEXT NOT NULL,
            user_id TEXT NOT NULL,
            session_id TEXT NOT NULL,
            body BLOB NOT NULL,
            code TEXT NOT NULL,
            reason TEXT NOT NULL,
            quarantined_ms INTEGER NOT NULL
        );
        CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE lease (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            holder TEXT NOT NULL,
            process_id INTEGER NOT NULL,
            until_uptime_ms INTEGER NOT NULL
        );
        """,
        "ALTER TABLE lease ADD COLUMN duration_ms INTEGER NOT NULL DEFAULT 60000;",
    ]

    /// Estimated bytes on disk for each row in addition to its body: columns, index entry and page overhead.
    static let rowOverheadBytes = 160

    let connection: SQLiteConnection
    let limits: QueueLimits
    private(set) var queueTime = QueueTime(uptime: 0)
    let clock: any ClientClock
    private var claimOrder = ClaimOrder(newestFirst: false)
    /// Set by `mayHaveMissedEvents` once after the file was opened.
    var hasComparedBlockedUsers = false
    var countedSize: Size?

    /// Does not write to a file that is up to date, so that it can be opened on a full disk.
    init(path: String, limits: QueueLimits, clock: any ClientClock) throws {
        // A short time-out, because the recorder and the sender try again later.
        connection = try SQLiteConnection(
            path: path, keepsJournal: true, busyTimeoutMilliseconds: 1_000, waitsOnceForLock: true)
        self.limits = limits
        self.clock = clock
        let version = try connection.userVersion()
        // The pragma writes to the file, so it is set only for a new file. It has no effect once a table exists.
        if version == 0 { try connection.execute("PRAGMA auto_vacuum = INCREMENTAL") }
        try connection.execute(
            """
            PRAGMA journal_mode = TRUNCATE;
            PRAGMA synchronous = NORMAL;
            PRAGMA fullfsync = 1;
            PRAGMA temp_store = MEMORY;
            """)
        if version < Self.migrations.count { try connection.migrate(Self.migrations) }
        let saved = try setting("queue_time").flatMap(QueueTime.Saved.init(text:))
        queueTime = QueueTime(uptime: clock.uptime, after: saved)
        try checkSequences()
        try correctCounters()
    }

    // MARK: Recording

    /// Stores events that the queue does not have, and the log's checkpoint in the same transaction. Events that are
    /// too large go to quarantine.
    func append(_ events: [RenderedEvent], from log: String) throws {
        try connection.transaction {
            // Another process may have stored some of them, if it assumed that this process had ended.
            let checkpoint = try checkpoint(of: log)
            // A checkpoint above the last sequence number is damaged. Storing events twice is better than losing them.
            let isDamaged = checkpoint > events.last?.sequence ?? checkpoint
            try take(isDamaged ? events : events.filter { $0.sequence > checkpoint }, from: log)
        }
    }

    /// Stores the events of another client's log that are not in the queue yet, at most `maximumBytes` at once.
    /// Stores nothing after an opt-out.
    ///
    /// Reads the log and its checkpoint in one write transaction, so that no other process can store the events or
    /// delete the checkpoint meanwhile. If `isOver` (the client has ended) and all events are stored, also counts
    /// the damaged events and returns the damaged files. `isComplete` is true if no event is left to store.
    @discardableResult
    func adopt(
        _ log: WriteAheadLog.Found, isOver: Bool, maximumBytes: Int = .max
    ) throws -> (isComplete: Bool, damagedPaths: [String]) {
        try connection.transaction {
            let checkpoint = try checkpoint(of: log.id)
            guard let found = try? log.events(after: checkpoint) else { return (false, []) }
            let events = found.events.prefix(bytes: maximumBytes, of: \.body.count)
            try take(events, from: log.id)
            guard events.count == found.events.count else { return (false, []) }
            guard isOver, !hasOptedOut else { return (true, []) }
            try add(.recorded, found.unreadable)
            try add(.unreadable, found.unreadable)
            return (true, found.damagedPaths)
        }
    }

    private func take(_ events: [RenderedEvent], from log: String) throws {
        // Checked under the write lock, so that no event is stored after an opt-out has wiped the queue.
        guard let last = events.last?.sequence, !hasOptedOut else { return }
        try insert(events)
        try save("\(last)", as: Self.checkpointPrefix + log)
    }

    private var directory: URL { URL(fileURLWithPath: connection.path).deletingLastPathComponent() }

    private var hasOptedOut: Bool {
        FileManager.default.fileExists(atPath: directory.appendingPathComponent(DataFolder.optOutName).path)
    }

    private static let checkpointPrefix = "incoming:"

    /// The sequence number of the log's last event in the queue.
    private func checkpoint(of log: String) throws -> Int64 {
        try setting(Self.checkpointPrefix + log).flatMap { Int64($0) } ?? 0
    }

    /// Deletes the checkpoints of logs that have no files, except that of the log `own`, which may get new files.
    func deleteStaleCheckpoints(of directory: URL, except own: String) throws {
        func staleCheckpoints() throws -> [String] {
            let logs = try WriteAheadLog.all(in: directory).map(\.id) + [own]
            let kept = Set(logs.map { Self.checkpointPrefix + $0 })
            return try connection.all(
                "SELECT name FROM setting WHERE name LIKE '\(Self.checkpointPrefix)%'"
            ) { row throws(SQLiteError) in row.text(0) }.filter { !kept.contains($0) }
        }
        guard try !staleCheckpoints().isEmpty else { return }
        // Make the directory durable first. A log that reappears after a power failure needs its checkpoint.
        try Self.synchronize(directory.path)
        // Search again: no other process can add a checkpoint now, and a log creates its files before its checkpoint.
        try connection.transaction {
            for name in try staleCheckpoints() {
                try connection.run("DELETE FROM setting WHERE name = ?", .text(name))
            }
        }
    }

    /// Makes the last transaction durable: flushes its truncated journal, or the directory of a deleted journal.
    func makeDurable() throws {
        if try Self.synchronize("\(connection.path)-journal") { return }
        try Self.synchronize(directory.path)
    }

    @discardableResult
    private static func synchronize(_ path: String) throws -> Bool {
        let failure = synchronizeFile(path)
        guard failure == 0 || failure == ENOENT else {
            throw CountersignError.failed("fsync", path, failure)
        }
        return failure == 0
    }

    private func durableTransaction<Result>(_ body: () throws -> Result) throws -> Result {
        try connection.execute("PRAGMA synchronous = EXTRA")
        defer { try? connection.execute("PRAGMA synchronous = NORMAL") }
        return try connection.transaction(body)
    }

    func append(_ rows: [RenderedEvent]) throws {
        try connection.transaction { try insert(rows) }
    }

    private func insert(_ rows: [RenderedEvent]) throws {
        let time = queueTime.seconds(uptime: clock.uptime)
        var count = 0
        var bytes = 0
        let rows = try withDeviceID(rows)
        // Prepare once: looking a statement up by its text costs as much as inserting a row.
        let insert = try connection.prepare(
            "INSERT INTO event (message_id, user_id, session_id, queue_time_s, body) VALUES (?, ?, ?, ?, ?)"
        )
        for row in rows {
            guard row.body.count <= limits.maximumEventBytes else {
                try quarantine(row, Self.tooLarge)
                continue
            }
            defer { insert.reset() }
            try insert.bind([
                .text(row.messageID), .text(row.userID ?? ""), .text(row.sessionID),
                .integer(row.uptime.map { queueTime.seconds(uptime: $0) } ?? time), .blob(row.body),
            ])
            _ = try insert.step()
            count += 1
            bytes += row.body.count + Self.rowOverheadBytes
        }
        try add(.recorded, rows.count)
        try addSize(rows: count, bytes: bytes)
        try save(queueTime.saved(now: clock.now, uptime: clock.uptime).text, as: "queue_time")
        try enforceLimits(at: time)
    }

    /// Replaces provisional device ids by the device's id. A device without an id gets the first provisional one.
    private func withDeviceID(_ rows: [RenderedEvent]) throws -> [RenderedEvent] {
        guard let provisionalID = rows.first(where: { $0.provisionalID != nil })?.provisionalID else {
            return rows
        }
        let saved = try savedAnonymousID()
        let deviceID = saved ?? provisionalID
        if saved == nil { try save(deviceID, as: Self.anonymousIDName) }
        return rows.map { $0.withDeviceID(deviceID) }
    }

    private static let tooLarge = ServerAnswer.Explanation(
        "event_too_large", "the event is longer than limits.maximumEventBytes")

    private func enforceLimits(at time: Int64) throws {
        var size = try size()
        // Count again before evicting events, because the counter may be damaged.
        if size != countedSize, size.rows > limits.maximumEvents || size.bytes > limits.maximumBytes {
            size = try recount()
        }
        let before = size
        var evicted: [Counter: Int] = [:]
        search: while true {
            // Usually one query for the oldest events is enough.
            let excess = max(size.rows - limits.maximumEvents, size.bytes > limits.maximumBytes ? 32 : 0, 0)
            let heads = try connection.all(
                "SELECT seq, length(body), queue_time_s FROM event ORDER BY seq LIMIT ?",
                .integer(Int64(min(excess + 1, 256)))
            ) {
                row throws(SQLiteError) in (row.int64(0), row.int(1) + Self.rowOverheadBytes, row.int64(2))
            }
            if heads.isEmpty { break }
            for (sequence, bytes, recorded) in heads {
                if size.rows > limits.maximumEvents {
                    evicted[.evictedByCount, default: 0] += 1
                } else if size.bytes > limits.maximumBytes {
                    evicted[.evictedByBytes, default: 0] += 1
                } else if recorded >= 0, TimeInterval(time) - TimeInterval(recorded) > limits.maximumAge {
                    evicted[.evictedByAge, default: 0] += 1
                } else {
                    break search
                }
                try connection.run("DELETE FROM event WHERE seq = ?", .integer(sequence))
                size.rows -= 1
                size.bytes -= bytes
            }
        }
        for (cause, count) in evicted { try add(cause, count) }
        if size != before { try saveSize(size) }
    }

    // MARK: Sending

    /// Returns the oldest events of one user that can be sent now (with `newestFirst`, the newest in descending
    /// order). Moves damaged rows to quarantine. `undeleted` are delivered or rejected events still in the file.
    func claim(_ request: ClaimRequest, undeleted: Set<Int64> = []) throws -> [QueuedEvent] {
        var excluded = request.excluded
        var hasSearchedAgain = false
        while true {
            var damaged: [Int64] = []
            var events: [QueuedEvent] = []
            let head = try nextHead(
                request, isExcluded: { excluded.contains($0) || undeleted.contains($0) }, damaged: &damaged)
            if let head {
                events = try read(
                    from: head, request, isExcluded: { excluded.contains($0) || undeleted.contains($0) },
                    damaged: &damaged)
            }
            if !damaged.isEmpty {
                excluded.formUnion(damaged)
                try setAsideDamaged(damaged)
            }
            if !events.isEmpty { return events }
            guard head == nil else { continue }
            guard try mayHaveMissedEvents(request, undeleted: undeleted) else { return [] }
            if hasSearchedAgain {
                try checkIndexAndCounter()
                return []
            }
            // With a damaged last sequence number, new events may have lower numbers than rows already read.
            hasSearchedAgain = true
            claimOrder = ClaimOrder(newestFirst: request.newestFirst)
        }
    }

    private func nextHead(
        _ request: ClaimRequest, isExcluded: (Int64) -> Bool, damaged: inout [Int64]
    ) throws -> (user: UserKey, sequence: Int64)? {
        if claimOrder.newestFirst != request.newestFirst {
            claimOrder = ClaimOrder(newestFirst: request.newestFirst)
        }
        do {
            return try claimOrder.next(
                blocked: request.blockedUsers,
                read: { search, use in
                    let statement: SQLiteStatement
                    switch search {
                    case .after(let sequence):
                        statement = try connection.cached(
                            "SELECT seq, user_id FROM event NOT INDEXED WHERE seq > ? ORDER BY seq")
                        try statement.bind([.integer(sequence)])
                    case .before(let sequence):
                        statement = try connection.cached(
                            "SELECT seq, user_id FROM event NOT INDEXED WHERE seq < ? ORDER BY seq DESC")
                        try statement.bind([.integer(sequence)])
                    }
                    defer { statement.reset() }
                    while try statement.step() {
                        let user = statement.validText(1).map { UserKey(column: $0) }
                        if user == nil { damaged.append(statement.int64(0)) }
                        if !use(ClaimOrder.Row(sequence: statement.int64(0), user: user)) { break }
                    }
                },
                first: { user, sequence, isNew in
                    let found = try first(
                        of: user, from: sequence, newestFirst: request.newestFirst, isExcluded: isExcluded)
                    // SQLite does not detect a damaged index, which hides events permanently.
                    if isNew, found?.any != sequence, try hasEvent(sequence) {
                        throw SQLiteError.damaged("event \(sequence) is missing in the index")
                    }
                    return found
                })
        } catch {
            claimOrder = ClaimOrder(newestFirst: request.newestFirst)
            throw error
        }
    }

    private func first(
        of user: UserKey, from sequence: Int64, newestFirst: Bool, isExcluded: (Int64) -> Bool
    ) throws -> (any: Int64, claimable: Int64?)? {
        let (order, comparison) = newestFirst ? ("DESC", "<=") : ("ASC", ">=")
        let statement = try connection.cached(
            "SELECT seq FROM event WHERE user_id = ? AND seq \(comparison) ? ORDER BY seq \(order)")
        defer { statement.reset() }
        try statement.bind([.text(user.column), .integer(sequence)])
        var any: Int64?
        while try statement.step() {
            let found = statement.int64(0)
            if !isExcluded(found) { return (any ?? found, found) }
            if any == nil { any = found }
        }
        return any.map { ($0, nil) }
    }

    private func hasEvent(_ sequence: Int64) throws -> Bool {
        try connection.integer("SELECT 1 FROM event NOT INDEXED WHERE seq = ?", .integer(sequence)) != nil
    }

    private func read(
        from head: (user: UserKey, sequence: Int64), _ request: ClaimRequest, isExcluded: (Int64) -> Bool,
        damaged: inout [Int64]
    ) throws -> [QueuedEvent] {
        var events: [QueuedEvent] = []
        var bytes = 0
        let (order, comparison) = request.newestFirst ? ("DESC", "<=") : ("ASC", ">=")
        let statement = try connection.cached(
            "SELECT seq, message_id, body FROM event WHERE user_id = ? AND seq \(comparison) ? ORDER BY seq \(order)"
        )
        defer { statement.reset() }
        try statement.bind([.text(head.user.column), .integer(head.sequence)])
        while events.count < request.maximumEvents, try statement.step() {
            let sequence = statement.int64(0)
            if isExcluded(sequence) { continue }
            let body = statement.blob(2)
            // SQLite would convert a number to its decimal digits.
            guard let messageID = statement.validText(1), !body.isEmpty, !statement.isNumber(2) else {
                damaged.append(sequence)
                continue
            }
            bytes += body.count + 1
            if bytes > request.maximumBytes, !events.isEmpty { break }
            events.append(
                QueuedEvent(
                    sequence: sequence, messageID: messageID, userID: head.user.userID, body: body))
        }
        return events
    }

    /// Ignores events that are no longer in the queue.
    func apply(_ outcome: DeliveryOutcome) throws {
        try connection.transaction {
            var sent = Size(rows: 0, bytes: 0)
            for event in outcome.delivered {
                guard let bytes = try delete(event.sequence) else { continue }
                sent.rows += 1
                sent.bytes += bytes
            }
            try add(.sent, sent.rows)
            try addSize(rows: -sent.rows, bytes: -sent.bytes)
            for rejected in outcome.quarantined {
                try quarantine(rejected.event.sequence, rejected.reason)
            }
            try add(.duplicates, outcome.duplicates)
        }
    }

    /// Returns free pages to the file system if there are more than `pages`.
    func shrink(from pages: Int) throws {
        func free() throws -> Int { try connection.integer("PRAGMA freelist_count") ?? 0 }
        var rest = try free()
        guard rest > pages else { return }
        // Uses small transactions, because their journals fit on a disk that is almost full.
        while rest > 0 {
            try connection.execute("PRAGMA incremental_vacuum(256)")
            let left = try free()
            if left >= rest { return }
            rest = left
        }
    }

    /// Changes no counter. Returns the event's bytes, or nil if it was not in the queue.
    func delete(_ sequence: Int64) throws -> Int? {
        let bytes = try connection.integer("SELECT length(body) FROM event WHERE seq = ?", .integer(sequence))
        guard let bytes else { return nil }
        try connection.run("DELETE FROM event WHERE seq = ?", .integer(sequence))
        return bytes + Self.rowOverheadBytes
    }

    /// Returns false if the event was not in the queue.
    func remove(_ sequence: Int64) throws -> Bool {
        guard let bytes = try delete(sequence) else { return false }
        try addSize(rows: -1, bytes: -bytes)
        return true
    }

    /// Deletes all events, also those in quarantine. Moves the checkpoints of all logs past their events, so that no
    /// event of a log enters the queue. `own` is the log of this client: its id, its new checkpoint, and the number of
    /// events to count as wiped.
    func wipe(
        _ own: (id: String, through: Int64, events: Int), forgettingDevice: Bool
    ) throws {
        try durableTransaction {
            func pass(_ log: String, through last: Int64, events: Int) throws {
                try save("\(last)", as: Self.checkpointPrefix + log)
                try add(.recorded, events)
                try add(.wiped, events)
            }
            try pass(own.id, through: own.through, events: own.events)
            for log in try WriteAheadLog.all(in: directory) where log.id != own.id {
                let events = try log.events(after: checkpoint(of: log.id)).events
                if let last = events.last?.sequence { try pass(log.id, through: last, events: events.count) }
            }
            try connection.run("DELETE FROM event")
            let rows = connection.changes
            try connection.run("DELETE FROM quarantine")
            if forgettingDevice {
                try connection.run("DELETE FROM setting WHERE name = ?", .text(Self.anonymousIDName))
            }
            try add(.wiped, rows)
            try saveSize(Size(rows: 0, bytes: 0))
        }
    }

    // MARK: Settings

    func setting(_ name: String) throws -> String? {
        try connection.first("SELECT value FROM setting WHERE name = ?", .text(name)) {
            row throws(SQLiteError) in row.text(0)
        }
    }

    func save(_ value: String, as name: String) throws {
        try connection.run(
            "INSERT INTO setting (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2",
            .text(name), .text(value))
    }

    /// The device's id. Created at first use, and again after a wipe that removes it.
    func anonymousID() throws -> String {
        if let id = try savedAnonymousID() { return id }
        return try durableTransaction {
            // Another process may have stored an id meanwhile.
            if let id = try savedAnonymousID() { return id }
            let id = UUIDv7.make()
            try save(id, as: Self.anonymousIDName)
            return id
        }
    }

    /// Returns `temporary` while the disk is too full to store an id.
    func anonymousID(orOnFullDisk temporary: String) throws -> String {
        do {
            return try anonymousID()
        } catch let error as SQLiteError where error.isFull {
            return temporary
        }
    }

    /// Nil if it is missing or damaged.
    private func savedAnonymousID() throws -> String? {
        try setting(Self.anonymousIDName).flatMap { UUIDText.bytes(of: $0) == nil ? nil : $0 }
    }

    private static let anonymousIDName = "anonymous_id"

    // MARK: Counters

    /// The present size, and totals over the life of the file. ``CountersignSnapshot`` describes how they add up.
    enum Counter: String, CaseIterable {
        case rows
        /// Including `rowOverheadBytes` for each event.
        case bytes
        case recorded, sent, quarantined, requeued
        case duplicates
        case evictedByCount, evictedByBytes, evictedByAge, wiped
        /// Also counted in `quarantined`.
        case evictedFromQuarantine
        /// Events recovered from a damaged file, and events that could not be read.
        case salvaged, unreadable
    }

    func value(of counter: Counter) throws -> Int {
        min(max(0, try storedValue(of: counter)), Self.maximumCount)
    }

    func storedValue(of counter: Counter) throws -> Int {
        try connection.integer("SELECT value FROM counter WHERE name = ?", .text(counter.rawValue)) ?? 0
    }

    func add(_ counter: Counter, _ amount: Int) throws {
        guard amount != 0 else { return }
        try set(counter, try value(of: counter) + min(amount, Self.maximumCount))
    }

    func set(_ counter: Counter, _ value: Int) throws {
        try connection.run(
            "INSERT INTO counter (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2",
            .text(counter.rawValue), .integer(Int64(min(max(0, value), Self.maximumCount))))
    }
}

extension SQLiteConnection {
    /// Returns the first column of the first row, where `NULL` is 0; nil without a row.
    func integer(_ sql: String, _ values: SQLValue...) throws(SQLiteError) -> Int? {
        let statement = try cached(sql)
        defer { statement.reset() }
        try statement.bind(values)
        return try statement.step() ? statement.int(0) : nil
    }
}
