internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
internal import GatewayModel

/// The only connection that adds events. Must be used by one thread. Can be used after a full disk or a violated
/// constraint. After any other error, the owner must close it and open a new one, which reads the disk's actual state.
final class EventLogWriter {
    private static let mostKnownUsers = 200_000
    /// The number of users not yet in `app_user` at which the counts are written early, to bound memory.
    private static let mostUnlistedUsers = 20_000
    private static let mostKnownApps = 1_000
    /// The size to which the write-ahead log is truncated. It grows during long reads, such as a backup.
    private static let logBytes = 32 << 20

    private static let insert = """
        INSERT INTO event
            (app_id, message_id, type, user_id, anonymous_id, name, timestamp_ms, received_ms, body, sender, seq,
            verdict, code, key_number, enforcement, dialect, request_id, token_id, request_uuid,
            claims)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)
        """

    let connection: SQLiteConnection
    /// Stored in a property, because a lookup by text costs more than binding all values.
    private let insertion: SQLiteStatement
    private let index: EventIndex
    /// The open files (runs) of the event index, for erasures.
    private let runs = OpenIndexRuns()
    private let hasher: IndexHasher
    private let now: @Sendable () -> Date
    private var next: Int64
    /// Users of previous commits that are not in `app_user` yet. The next write of `counts` adds them.
    private var unlisted: [EventCounts.User] = []
    /// Hashes of users known to be in `app_user` or `unlisted`.
    private var knownUsers: Set<UInt64> = []
    private var knownApps: [BytewiseText: UInt64] = [:]
    /// Keys of the events of the current commit. Reused to avoid allocations.
    private var staged: [EventKey: Int64] = [:]
    private var dataVersion: Int64
    private var counts: EventCounts
    private var times: EventTimes
    private var keys = EventKeys()

    /// Creates or migrates the schema, and builds missing parts of the index.
    ///
    /// After a failed flush, SQLite may recover commits that are only in memory, because the system considers their
    /// pages written. So recovered rows are copied into the database and flushed before they count as stored. While a
    /// reader needs the write-ahead log, the log is rewritten and flushed instead.
    init(
        path: String, recent: RecentEvents = RecentEvents(), afterFailure isAfterFailure: Bool = false,
        sizes: EventIndex.Sizes = EventIndex.Sizes(), now: @escaping @Sendable () -> Date = { Date() }
    ) throws {
        self.now = now
        connection = try SQLiteConnection(path: path)
        try connection.execute(
            EventLogSchema.pageSize
                + "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA mmap_size = 0;"
                + "PRAGMA journal_size_limit = \(Self.logBytes)")
        guard try connection.first("PRAGMA journal_mode", row: { $0.text(0) }) == "wal" else {
            throw SQLiteError(
                extendedCode: 14,
                message:
                    "\(path) is on a file system that cannot share memory, which SQLite's write-ahead log needs"
            )
        }
        let isBusy = try connection.first("PRAGMA wal_checkpoint(FULL)") { $0.int(0) != 0 } ?? false
        if isBusy, isAfterFailure { try connection.rewriteLog() }
        try EventLogSchema.migrate(connection, at: now())
        insertion = try connection.cached(Self.insert)
        guard let log = try EventLogState.read(connection) else {
            throw SQLiteError.damaged("the log of events has no id")
        }
        let hasher = IndexHasher(secret: log.secret)
        self.hasher = hasher
        // A subquery each for `min` and `max`. Otherwise SQLite reads every event instead of using the index.
        let range = try connection.first("SELECT (SELECT min(seq) FROM event), (SELECT max(seq) FROM event)")
        {
            (first: $0.optionalInt64(0), last: $0.int64(1))
        }
        let next = max(log.next, (range?.last ?? 0) + 1)
        self.next = next
        dataVersion = try connection.dataVersion()
        counts = try EventCounts(connection, uses: !isAfterFailure)
        times = EventTimes(size: sizes.timeEvents)
        index = try EventIndex(
            folder: IndexFolder.path(besides: path), logID: log.id, first: range?.first ?? next, next: next,
            sizes: sizes, recent: recent
        ) { [connection] range, add in
            var apps: BytewiseDictionary<UInt64> = [:]
            let statement = try connection.prepare(
                """
                SELECT seq, app_id, message_id, user_id, anonymous_id, sender FROM event
                WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq
                """)
            try statement.bind([.integer(range.lowerBound), .integer(range.upperBound)])
            while try statement.step() {
                let (user, device) = (statement.optionalText(3), statement.optionalText(4))
                let appID = statement.text(1)
                let app = apps[appID] ?? hasher.hash(of: .app, in: appID)
                apps[appID] = app
                try add(
                    hasher.entry(
                        sequence: statement.int64(0), appID: appID, app: app, messageID: statement.text(2),
                        userID: user, anonymousID: device,
                        senderHash: hasher.hash(ofUser: user, device: device, in: appID),
                        sender: statement.optionalText(5)))
            }
        }
    }

    func close() { index.stop() }

    /// Whether counts must be written now, because the list of new users is full.
    var mustCount: Bool { unlisted.count >= Self.mostUnlistedUsers }

    var hasUncounted: Bool { !counts.isEmpty }

    /// Stores batches in one transaction. A nil batch is a test write. With `uses`, also writes app and key counts.
    func store(
        _ batches: [EventBatch?], counting uses: KeyUseTally?,
        with changes: [@Sendable (SQLiteConnection) throws -> Void] = []
    ) throws -> [AppendOutcome] {
        try index.makeRoom()
        staged.removeAll(keepingCapacity: true)
        var commit = Commit(next: next, counts: counts, times: times, keys: keys)
        let outcomes = try connection.transaction {
            try clearKnownUsersIfOthersWrote()
            let outcomes = try batches.map { batch in
                guard let batch else {
                    try connection.run(
                        "INSERT OR REPLACE INTO probe VALUES (1, ?)",
                        .integer(Milliseconds(now()).count))
                    return AppendOutcome()
                }
                return try insert(batch, &commit)
            }
            if let uses {
                try commit.counts.write(uses, listing: unlisted + commit.unlisted, to: connection)
            }
            for change in changes { try change(connection) }
            return outcomes
        }
        // Must come after the commit, so that uncommitted events do not count as duplicates.
        index.add(commit.events)
        next = commit.next
        counts = commit.counts
        times = commit.times
        keys = commit.keys
        if knownUsers.count + commit.users.count > Self.mostKnownUsers { knownUsers = [] }
        knownUsers.formUnion(commit.users)
        if uses == nil { unlisted += commit.unlisted } else { unlisted = [] }
        return outcomes
    }

    /// Performs a step of a sweep. If the step deletes events, first writes the counts and resets `uses`, because
    /// deleted events must have been counted. Returns the consumers whose held events were deleted.
    func sweep(
        _ sweeper: inout RetentionSweeper, counting uses: inout KeyUseTally
    ) throws -> [EventConsumerID] {
        var counts = counts
        var isCounted = false
        let pending = uses
        let events = RetentionSweeper.Events(newest: next - 1) { [counts = self.counts] appID in
            counts.bytes(of: appID)
        } ofApp: { appID, sequence, limit in
            try self.index.sequences(ofApp: self.hash(ofApp: appID), after: sequence, limit: limit)
        } hasAny: { appID, userID, sequence in
            try self.hasEvents(userID, in: appID, after: sequence)
        }
        let passed = try sweeper.step(connection, events) {
            try counts.write(pending, listing: unlisted, to: connection)
            isCounted = true
        } removedUser: { appID, userID in
            knownUsers.remove(hasher.hash(of: .user(userID), in: appID))
        }
        if isCounted {
            self.counts = counts
            unlisted = []
            uses = KeyUseTally()
        }
        guard sweeper.isDone else { return passed }
        let first = try connection.first("SELECT min(seq) FROM event") { $0.optionalInt64(0) } ?? nil
        try EventTimes.remove(before: first ?? next, connection)
        index.removeRuns(before: first ?? next)
        return passed
    }

    /// Performs a step of an erasure. Writes and resets `uses` first. Returns true when all data of the app is deleted.
    func erase(_ erasure: inout EventErasure, counting uses: inout KeyUseTally) throws -> Bool {
        // Writes pending counts first. A later write would add rows of the erased app again.
        if !counts.isEmpty || !uses.isEmpty {
            var counts = counts
            try connection.transaction { try counts.write(uses, listing: unlisted, to: connection) }
            self.counts = counts
            unlisted = []
            uses = KeyUseTally()
        }
        let index = try EventIndexReader(
            connection, folder: IndexFolder.path(besides: connection.path), runs: runs)
        // Drops the cache, because SQLite may assign the numbers of deleted keys again.
        keys = EventKeys()
        let isDone = try erasure.step(connection, index)
        // If the app id is used again, its users must be added to `app_user` again.
        if isDone { knownUsers = [] }
        return isDone
    }

    private func hasEvents(_ userID: String, in appID: String, after sequence: Int64) throws -> Bool {
        let claim = try connection.first(
            "SELECT 1 FROM event_claim WHERE app_id = ?1 AND user_id = ?2 AND seq > ?3 LIMIT 1", .text(appID),
            .text(userID), .integer(sequence)
        ) { _ in true }
        return try claim == true
            || index.contains(hasher.hash(of: .user(userID), in: appID), after: sequence) { sequence in
                try connection.first(
                    "SELECT 1 FROM event WHERE seq = ?1 AND app_id = ?2 AND user_id = ?3", .integer(sequence),
                    .text(appID), .text(userID)
                ) { _ in true } == true
            }
    }

    // MARK: One transaction

    /// The effects of a transaction, applied after the commit.
    private struct Commit {
        var next: Int64
        var events: [EventIndexRecord] = []
        var users: Set<UInt64> = []
        var unlisted: [EventCounts.User] = []
        var counts: EventCounts
        var times: EventTimes
        var keys: EventKeys
    }

    /// Another connection may have deleted a user. The next event must add that user to `app_user` again.
    private func clearKnownUsersIfOthersWrote() throws {
        let version = try connection.dataVersion()
        if version != dataVersion { knownUsers = [] }
        dataVersion = version
    }

    private func insert(_ batch: EventBatch, _ commit: inout Commit) throws -> AppendOutcome {
        var outcome = AppendOutcome()
        let statement = insertion
        try batch.body.withUnsafeBufferPointer { body in
            defer { statement.reset() }
            try statement.bind(text: batch.appID, at: 1)
            try statement.bind(.integer(batch.receivedMilliseconds), at: 8)
            let proof = batch.proof
            try statement.bind(text: proof?.verdict.rawValue, at: 12)
            try statement.bind(.optionalInteger(proof?.code.map { Int64($0) }), at: 13)
            let key = try proof?.keyID.map { try commit.keys.number(of: $0, in: batch.appID, connection) }
            try statement.bind(.optionalInteger(key), at: 14)
            try statement.bind(text: proof?.enforcement, at: 15)
            try statement.bind(text: proof?.dialect, at: 16)
            let uuid = (proof?.requestID).flatMap { UUIDText.words(of: $0) }
            try statement.bind(text: uuid == nil ? proof?.requestID : nil, at: 17)
            try statement.bind(text: proof?.tokenID, at: 18)
            try statement.bind(text: proof?.claims, at: 20)
            if let uuid {
                try withUnsafeBytes(of: uuid) { try statement.bind(blob: $0, at: 19) }
            } else {
                try statement.bind(.null, at: 19)
            }
            statement.keepTexts()
            let app = hash(ofApp: batch.appID)
            var (user, device): (String?, String?) = (nil, nil)
            var senderHash: UInt64?
            var bytes = 0
            for event in batch.events {
                // Consecutive events of a request usually have the same user, so the hash is reused.
                if !event.userID.hasSameBytes(as: user) || !event.anonymousID.hasSameBytes(as: device) {
                    (user, device) = (event.userID, event.anonymousID)
                    senderHash = hasher.hash(ofUser: user, device: device, in: batch.appID)
                }
                let entry = hasher.entry(
                    sequence: commit.next, appID: batch.appID, app: app, messageID: event.messageID,
                    userID: user, anonymousID: device, senderHash: senderHash, sender: event.sender)
                let isKnown = try sequence(of: entry.key) != nil
                if try isKnown || claim(event, of: batch.appID) {
                    outcome.duplicates += 1
                    continue
                }
                try statement.bind(text: event.messageID, at: 2)
                try statement.bind(text: event.kind.rawValue, at: 3)
                try statement.bind(text: event.userID, at: 4)
                try statement.bind(text: event.anonymousID, at: 5)
                try statement.bind(text: event.name, at: 6)
                try statement.bind(.integer(event.timestampMilliseconds), at: 7)
                try statement.bind(borrowing: body, event.json, at: 9)
                try statement.bind(text: event.sender, at: 10)
                try statement.bind(.integer(commit.next), at: 11)
                _ = try statement.step()
                statement.rewind()
                if let user, let senderHash { list(user, senderHash, of: batch.appID, &commit) }
                staged[entry.key] = commit.next
                commit.events.append(entry)
                bytes += event.json.count
                commit.next += 1
                outcome.accepted += 1
            }
            if outcome.accepted > 0 {
                commit.counts.add(
                    events: outcome.accepted, bytes: bytes, to: batch.appID, through: commit.next - 1)
                try commit.times.add(
                    commit.next - Int64(outcome.accepted)...commit.next - 1,
                    receivedMilliseconds: batch.receivedMilliseconds, connection)
            }
        }
        let writer = CustomerWriter(connection: connection, appID: batch.appID)
        for customer in batch.customers {
            try writer.apply(customer, receivedMilliseconds: batch.receivedMilliseconds)
        }
        return outcome
    }

    private func hash(ofApp appID: String) -> UInt64 {
        if let hash = knownApps[BytewiseText(appID)] { return hash }
        let hash = hasher.hash(of: .app, in: appID)
        if knownApps.count >= Self.mostKnownApps { knownApps = [:] }
        knownApps[BytewiseText(appID)] = hash
        return hash
    }

    private func sequence(of key: EventKey) throws -> Int64? {
        if let sequence = staged[key] { return sequence }
        return try index.sequence(of: key) { sequence in
            // The event may have been deleted.
            try connection.first("SELECT 1 FROM event WHERE seq = ?1", .integer(sequence)) { _ in true }
                == true
        }
    }

    /// Assigns a stored anonymous event with the same content to the user of `event`. Returns false without such an
    /// event, or if another user has claimed it, because an attacker may know the content and send it first.
    private func claim(_ event: EventBatch.Event, of appID: String) throws -> Bool {
        guard event.isIdentifiedByContent, let user = event.userID else { return false }
        let key = hasher.key(
            of: EventIdentity(
                appID: appID, sender: .named(EventSender.anonymousContent), messageID: event.messageID))
        guard let sequence = try sequence(of: key) else { return false }
        try connection.run(
            "UPDATE event SET user_id = ?2 WHERE seq = ?1 AND user_id IS NULL", .integer(sequence),
            .text(user))
        if connection.changes > 0 {
            try connection.run(
                "INSERT OR IGNORE INTO event_claim VALUES (?1, ?2, ?3)", .text(appID), .text(user),
                .integer(sequence))
            try EventCounts.list(EventCounts.User(appID: appID, userID: user), connection)
            return true
        }
        return try connection.first(
            "SELECT 1 FROM event WHERE seq = ?1 AND user_id = ?2", .integer(sequence), .text(user)
        ) { _ in true } == true
    }

    private func list(_ user: String, _ hash: UInt64, of appID: String, _ commit: inout Commit) {
        guard !knownUsers.contains(hash), commit.users.insert(hash).inserted else { return }
        commit.unlisted.append(EventCounts.User(appID: appID, userID: user))
    }
}

extension String? {
    fileprivate func hasSameBytes(as other: String?) -> Bool {
        guard let self, let other else { return self == nil && other == nil }
        return self.hasSameBytes(as: other)
    }
}

extension IndexHasher {
    /// The index entry of an event. `app` is the hash of its app, `senderHash` the hash of its user or device.
    func entry(
        sequence: Int64, appID: String, app: UInt64, messageID: String, userID: String?,
        anonymousID: String?, senderHash: UInt64?, sender: String?
    ) -> EventIndexRecord {
        let from = EventSender(named: sender, userID: userID, anonymousID: anonymousID)
        return EventIndexRecord(
            sequence: sequence,
            key: key(of: EventIdentity(appID: appID, sender: from, messageID: messageID)), app: app,
            message: hash(of: .message(messageID), in: appID), senderHash: senderHash)
    }

    /// The hash of a user or, without a user, of a device; nil without both.
    func hash(ofUser userID: String?, device: String?, in appID: String) -> UInt64? {
        (userID.map { EventSubject.user($0) } ?? device.map { .device($0) }).map { hash(of: $0, in: appID) }
    }
}
