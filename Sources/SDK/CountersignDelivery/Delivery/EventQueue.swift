internal import CountersignCore
internal import CountersignSQLite
internal import CountersignTransport
internal import Foundation

/// The events that wait for a server's answer, in one SQLite file.
///
/// An event leaves through `settle(_:)` (delivered or quarantined), through a limit of `QueueLimits`, or because the app
/// wipes the data. Each way is counted in the same transaction as the change.
///
/// Rollback journal and `synchronous=NORMAL`: two processes may share the file, and a power failure may undo the last
/// transaction, which `IncomingLog` and the server's check for duplicates make good (see docs/adr/0014). Not thread-safe:
/// `Storage` calls it on one thread.
final class EventQueue {
    /// An older version of the SDK must be able to work with the file of a newer one, so a migration may add tables and
    /// columns with defaults, and nothing else. A released one is never changed.
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

    /// What a row takes on disk beside its body: its columns, its index entry, its share of the pages.
    static let rowOverheadBytes = 160

    let connection: SQLiteConnection
    let limits: QueueLimits
    private(set) var queueTime: QueueTime
    private let clock: any ClientClock
    /// The device's time, for events in quarantine.
    var now: Date { clock.now }
    private var claimOrder = ClaimOrder(newestFirst: false)
    /// Whether the counter of rows was compared with the events of all blocked users since the file was opened.
    var hasComparedBlockedUsers = false
    /// The values of `rows` and `bytes` when this connection last knew them to be right.
    var countedSize: Size?

    /// Opens the queue at `path`, or makes it. A file that is up to date is only read, so that it can be opened on a full disk.
    init(path: String, limits: QueueLimits, clock: any ClientClock) throws {
        // Whoever is slower than this is tried again by the caller, a second later.
        connection = try SQLiteConnection(path: path, keepsJournal: true, busyTimeoutMilliseconds: 1_000)
        self.limits = limits
        self.clock = clock
        queueTime = QueueTime(uptime: clock.uptime)
        let version =
            try connection.first("PRAGMA user_version") { row throws(SQLiteError) in row.int(0) } ?? 0
        // Writes to the file, and has an effect before the first table is made only.
        if version == 0 { try connection.execute("PRAGMA auto_vacuum = INCREMENTAL") }
        try connection.execute(
            """
            PRAGMA journal_mode = TRUNCATE;
            PRAGMA synchronous = NORMAL;
            PRAGMA fullfsync = 1;
            PRAGMA temp_store = MEMORY;
            """)
        if version < Self.migrations.count { try connection.migrate(Self.migrations) }
        queueTime.resume(from: try setting("queue_time").flatMap(QueueTime.Saved.init(text:)))
        try checkSequences()
        try correctCounters()
    }

    // MARK: Recording

    /// Stores those events of a log, in order and with their numbers in it, that were not stored yet. Those that are too long
    /// are set aside at once. How far the log was taken over is kept in the same transaction.
    func append(
        _ events: [(sequence: Int64, event: RenderedEvent)], from log: String, clock: any ClientClock
    ) throws {
        try connection.transaction {
            // Another process may have taken some of them for those of a process that is gone.
            let mark = try mark(of: log)
            // A higher mark than the last number is damaged. To store events twice is better than to lose them.
            let isDamaged = mark > events.last?.sequence ?? mark
            try take(isDamaged ? events : events.filter { $0.sequence > mark }, from: log, clock: clock)
        }
    }

    /// Stores those events of another's log that were not stored yet.
    ///
    /// The log is read while nobody else can write to the queue file: whoever removes the log or forgets its mark has done so
    /// before, or not yet.
    ///
    /// Stores the first events only, of so many bytes, if there is no room for all of them. Once all are stored, events that are
    /// damaged are counted if `isOver`: nothing is added to the log any more, and it is not read again. Returns whether all are
    /// stored, and the files with damage.
    @discardableResult
    func adopt(
        _ log: IncomingLog.Found, isOver: Bool, maximumBytes: Int = .max, clock: any ClientClock
    ) throws -> (isComplete: Bool, damagedPaths: [String]) {
        try connection.transaction {
            let found = log.events(after: try mark(of: log.id))
            let events = found.events.prefix(bytes: maximumBytes) { $0.event.body.count }
            try take(events, from: log.id, clock: clock)
            guard events.count == found.events.count else { return (false, []) }
            guard isOver, !hasOptedOut else { return (true, []) }
            try add(.recorded, found.unreadable)
            try add(.unreadable, found.unreadable)
            return (true, found.damagedPaths)
        }
    }

    private func take(
        _ events: [(sequence: Int64, event: RenderedEvent)], from log: String, clock: any ClientClock
    ) throws {
        // Under the write lock: whoever opts out wipes after this, or has said so before.
        guard let last = events.last?.sequence, !hasOptedOut else { return }
        try insert(events.map(\.event), clock: clock)
        try save("\(last)", as: Self.markPrefix + log)
    }

    private var directory: URL { URL(fileURLWithPath: connection.path).deletingLastPathComponent() }

    private var hasOptedOut: Bool {
        FileManager.default.fileExists(atPath: directory.appendingPathComponent(DataFolder.optOutName).path)
    }

    private static let markPrefix = "incoming:"

    /// The number of the last event that was taken over from a log.
    private func mark(of log: String) throws -> Int64 {
        try setting(Self.markPrefix + log).flatMap { Int64($0) } ?? 0
    }

    /// Forgets how far logs were taken over that no longer exist.
    func forgetMarks(of directory: URL) throws {
        func staleMarks() throws -> [String] {
            let kept = Set(IncomingLog.all(in: directory).map { Self.markPrefix + $0.id })
            return try connection.all(
                "SELECT name FROM setting WHERE name LIKE '\(Self.markPrefix)%'"
            ) { row throws(SQLiteError) in row.text(0) }.filter { !kept.contains($0) }
        }
        guard try !staleMarks().isEmpty else { return }
        // A log that a power failure brings back needs its mark.
        try Self.synchronize(directory.path)
        // A log has its files before it has a mark, so nobody's log is missed while nobody else can write a mark.
        try connection.transaction {
            for mark in try staleMarks() {
                try connection.run("DELETE FROM setting WHERE name = ?", .text(mark))
            }
        }
    }

    /// After this the last transaction outlives a power failure: its journal is gone on the disk too.
    func makeCertain() throws {
        if try Self.synchronize("\(connection.path)-journal") { return }
        try Self.synchronize(directory.path)
    }

    /// Returns false if there is no such file.
    @discardableResult
    private static func synchronize(_ path: String) throws -> Bool {
        let failure = synchronizeFile(path)
        guard failure == 0 || failure == ENOENT else {
            throw CountersignError(.notStored, "fsync: \(String(cString: strerror(failure)))")
        }
        return failure == 0
    }

    /// As `connection.transaction`; when it returns, the transaction outlives a power failure.
    private func certainTransaction<Result>(_ body: () throws -> Result) throws -> Result {
        try connection.execute("PRAGMA synchronous = EXTRA")
        defer { try? connection.execute("PRAGMA synchronous = NORMAL") }
        return try connection.transaction(body)
    }

    /// Stores events that come from no log.
    func append(_ rows: [RenderedEvent], clock: any ClientClock) throws {
        try connection.transaction { try insert(rows, clock: clock) }
    }

    private func insert(_ rows: [RenderedEvent], clock: any ClientClock) throws {
        let time = queueTime.seconds(uptime: clock.uptime)
        var count = 0
        var bytes = 0
        let rows = try withDeviceID(rows)
        // One statement for all rows: to look it up by its text costs as much as a row.
        let insert = try connection.prepare(
            "INSERT INTO event (message_id, user_id, session_id, queue_time_s, body) VALUES (?, ?, ?, ?, ?)"
        )
        for row in rows {
            guard row.body.count <= limits.maximumEventBytes else {
                try quarantine(row, Self.tooLarge, at: clock.now)
                continue
            }
            defer { insert.reset() }
            try insert.bind([
                .text(row.messageID), .text(row.userID ?? ""), .text(row.sessionID),
                .integer(
                    row.uptime.map { queueTime.seconds(uptime: $0) } ?? time),
                .blob(row.body),
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

    /// The events with this device's id where they have a provisional one. The first of those becomes the id of a device that
    /// has none yet.
    private func withDeviceID(_ rows: [RenderedEvent]) throws -> [RenderedEvent] {
        guard let provisionalID = rows.first(where: { $0.provisionalID != nil })?.provisionalID else {
            return rows
        }
        let saved = try savedAnonymousID()
        let deviceID = saved ?? provisionalID
        if saved == nil { try save(deviceID, as: Self.anonymousIDName) }
        return rows.map { $0.withDeviceID(deviceID) }
    }

    private static let tooLarge = Settlement.Verdict(
        code: "event_too_large", reason: "the event is longer than limits.maximumEventBytes")

    private func enforceLimits(at time: Int64) throws {
        var size = try size()
        // Damage to a counter must not evict events.
        if size != countedSize, size.rows > limits.maximumEvents || size.bytes > limits.maximumBytes {
            size = try recount()
        }
        let before = size
        var evicted: [Counter: Int] = [:]
        search: while true {
            // In the usual case one look at the oldest is enough.
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

    /// The oldest events of one user that may be sent now, in order; or the newest, in the opposite order.
    ///
    /// Events whose sequence numbers are in `undeleted` were delivered already. Rows that are damaged are set aside.
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
            // If the last sequence number is damaged, new events have lower numbers than rows that were read.
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
                    // An index that lost its way hides events for good, and SQLite does not notice.
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

    /// Returns the user's first event from `sequence` on, and the first one that may be claimed.
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
        try connection.first("SELECT 1 FROM event NOT INDEXED WHERE seq = ?", .integer(sequence)) { _ in true
        }
            ?? false
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
            // A number would be read as its digits.
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

    /// Removes what a server has taken, and sets aside what it never will. Events that are gone already (evicted,
    /// wiped) are passed over.
    func settle(_ settlement: Settlement, at date: Date) throws {
        try connection.transaction {
            var sent = Size(rows: 0, bytes: 0)
            for event in settlement.delivered {
                guard let bytes = try delete(event.sequence) else { continue }
                sent.rows += 1
                sent.bytes += bytes
            }
            try add(.sent, sent.rows)
            try addSize(rows: -sent.rows, bytes: -sent.bytes)
            for (event, verdict) in settlement.quarantined {
                try quarantine(event.sequence, verdict, at: date)
            }
            try add(.duplicates, settlement.duplicates)
        }
        if try size().rows == 0 { try shrink(from: 1_000) }
    }

    /// Gives the space of removed events back to the file system, but not for as few `pages`: the file will grow again.
    func shrink(from pages: Int) throws {
        func free() throws -> Int {
            try connection.first("PRAGMA freelist_count") { row throws(SQLiteError) in row.int(0) } ?? 0
        }
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

    /// Deletes an event without changing a counter. Returns the event's bytes, or nil if it was not in the queue.
    func delete(_ sequence: Int64) throws -> Int? {
        let bytes = try connection.first("SELECT length(body) FROM event WHERE seq = ?", .integer(sequence)) {
            row throws(SQLiteError) in row.int(0) + Self.rowOverheadBytes
        }
        guard let bytes else { return nil }
        try connection.run("DELETE FROM event WHERE seq = ?", .integer(sequence))
        return bytes
    }

    /// Deletes an event. Returns false if it was not in the queue.
    func remove(_ sequence: Int64) throws -> Bool {
        guard let bytes = try delete(sequence) else { return false }
        try addSize(rows: -1, bytes: -bytes)
        return true
    }

    /// Removes every event, also those in quarantine and those in the logs, and perhaps the id of this device.
    ///
    /// Nothing up to number `through` of `own` comes into the queue any more; so many events that it held were thrown away. Of
    /// another's log nothing that it holds now does.
    func wipe(
        _ own: (id: String, through: Int64, events: Int), forgettingDevice: Bool
    ) throws {
        try certainTransaction {
            func pass(_ log: String, through last: Int64, events: Int) throws {
                try save("\(last)", as: Self.markPrefix + log)
                try add(.recorded, events)
                try add(.wiped, events)
            }
            try pass(own.id, through: own.through, events: own.events)
            for log in IncomingLog.all(in: directory) where log.id != own.id {
                let events = log.events(after: try mark(of: log.id)).events
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
        try shrink(from: 1_000)
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

    /// The id under which events without a user are sent; made once for each queue file.
    func anonymousID() throws -> String {
        if let id = try savedAnonymousID() { return id }
        return try certainTransaction {
            // Another process may have been faster.
            if let id = try savedAnonymousID() { return id }
            let id = UUIDv7.make()
            try save(id, as: Self.anonymousIDName)
            return id
        }
    }

    /// As `anonymousID()`, or another id as long as the disk is too full to store one.
    func anonymousID(orOnFullDisk temporary: String) throws -> String {
        do {
            return try anonymousID()
        } catch let error as SQLiteError where error.isFull {
            return temporary
        }
    }

    /// Nil if there is none, or a damaged one.
    private func savedAnonymousID() throws -> String? {
        try setting(Self.anonymousIDName).flatMap { UUIDText.bytes(of: $0) == nil ? nil : $0 }
    }

    private static let anonymousIDName = "anonymous_id"

    // MARK: Counters

    /// What is counted, for as long as the file lives; ``CountersignSnapshot`` says how the counts add up.
    enum Counter: String, CaseIterable {
        /// Events in the queue now.
        case rows
        /// Their bytes, with `rowOverheadBytes` for each.
        case bytes
        case recorded, sent, quarantined, requeued
        /// Events that a server said it had already.
        case duplicates
        case evictedByCount, evictedByBytes, evictedByAge, wiped
        /// Events that were set aside and then pushed out by others; `quarantined` counts them too.
        case evictedFromQuarantine
        /// Events that a damaged file was saved from, and those that could no longer be read.
        case salvaged, unreadable
    }

    func value(of counter: Counter) throws -> Int {
        min(max(0, try storedValue(of: counter)), Self.maximumCount)
    }

    func storedValue(of counter: Counter) throws -> Int {
        try connection.first("SELECT value FROM counter WHERE name = ?", .text(counter.rawValue)) {
            row throws(SQLiteError) in row.int(0)
        } ?? 0
    }

    func add(_ counter: Counter, _ amount: Int) throws {
        guard amount != 0 else { return }
        try set(counter, try value(of: counter) + amount)
    }

    func set(_ counter: Counter, _ value: Int) throws {
        try connection.run(
            "INSERT INTO counter (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2",
            .text(counter.rawValue), .integer(Int64(min(max(0, value), Self.maximumCount))))
    }
}
