internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
package import GatewayModel

/// Events in `events.sqlite`: one writer thread, one connection, and one commit for all that waits.
///
/// WAL with `synchronous=FULL`: what `completion` reports is on disk. A lone batch is committed at once; batches that
/// come during a commit share the next one, so there is no timer and no added latency.
package final class SQLiteEventStore: EventStore, @unchecked Sendable {
    private struct Job {
        let batch: EventBatch?
        let completion: @Sendable (Result<AppendOutcome, StoreFailure>) -> Void
    }

    static let migrations = [
        """
        CREATE TABLE event (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            app_id TEXT NOT NULL,
            message_id TEXT NOT NULL,
            type TEXT NOT NULL,
            user_id TEXT,
            anonymous_id TEXT,
            name TEXT,
            timestamp_ms INTEGER NOT NULL,
            received_ms INTEGER NOT NULL,
            body TEXT NOT NULL,
            UNIQUE (app_id, message_id)
        ) STRICT;
        CREATE TABLE probe (id INTEGER PRIMARY KEY CHECK (id = 1), at_ms INTEGER NOT NULL) STRICT;
        """,
        CustomerSchema.script,
        RetentionSweeper.script,
        KeyUse.schema,
        "CREATE INDEX event_user ON event (app_id, user_id) WHERE user_id IS NOT NULL",
        messageIDsOfSenders,
        CustomerSchema.usage,
        // Whoever is deleted takes along what their devices sent before anybody had signed in.
        "CREATE INDEX event_device ON event (app_id, anonymous_id) WHERE user_id IS NULL",
    ]

    /// Message ids were unique in an app before, so anybody could use up somebody else's. A unique constraint can only
    /// be taken away by making the table anew.
    ///
    /// Ids that were made from the content of a Bloomreach event get their sender too: such an event is the same after
    /// its customer has signed in (`docs/adr/0008-message-ids-of-bloomreach-clients.md`).
    private static let messageIDsOfSenders = """
        CREATE TABLE event_of_sender (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            app_id TEXT NOT NULL,
            message_id TEXT NOT NULL,
            type TEXT NOT NULL,
            user_id TEXT,
            anonymous_id TEXT,
            name TEXT,
            timestamp_ms INTEGER NOT NULL,
            received_ms INTEGER NOT NULL,
            body TEXT NOT NULL,
            sender TEXT
        ) STRICT;
        INSERT INTO event_of_sender
            SELECT seq, app_id, message_id, type, user_id, anonymous_id, name, timestamp_ms, received_ms, body,
                CASE WHEN message_id GLOB 'sha256-*' AND coalesce(user_id, anonymous_id) IS NOT NULL
                    AND json_type(iif(json_valid(body), body, 'null'), '$.customer_ids') = 'object'
                THEN 'content' END
            FROM event ORDER BY seq;
        DELETE FROM sqlite_sequence WHERE name = 'event_of_sender';
        INSERT INTO sqlite_sequence SELECT 'event_of_sender', seq FROM sqlite_sequence WHERE name = 'event';
        DROP TABLE event;
        ALTER TABLE event_of_sender RENAME TO event;
        CREATE UNIQUE INDEX event_once ON event (
            app_id, message_id, coalesce(sender, 'user ' || user_id, 'device ' || anonymous_id, ''));
        CREATE INDEX event_user ON event (app_id, user_id) WHERE user_id IS NOT NULL;
        """

    private static let insert = """
        INSERT INTO event
            (app_id, message_id, type, user_id, anonymous_id, name, timestamp_ms, received_ms, body, sender)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
        ON CONFLICT DO NOTHING
        """

    /// An event that is known by its content may have come before its customer had signed in: then it becomes the user's.
    /// That of another user is another event, for a stranger may know what it says and be first.
    private static let claim = """
        UPDATE OR IGNORE event SET user_id = ?3, sender = 'content ' || ?3
        WHERE app_id = ?1 AND message_id = ?2 AND sender = 'content' AND coalesce(user_id, ?3) = ?3
        """

    private let path: String
    private let pendingLimit: Int
    private let diskFloorBytes: Int
    private let observer: (any GatewayObserver)?
    private let retentionSeconds: Double
    private let retention: @Sendable () -> [String: AppRules]
    // `condition` guards `gathering`, `waiting`, `waitingBytes`, `keyUses`, `isClosing` and `hasEnded`.
    private let condition = NSCondition()
    private var gathering = 0
    private var waiting: [Job] = []
    private var waitingBytes = 0
    private var keyUses = KeyUseTally()
    private var isClosing = false
    private var hasEnded = false
    // Touched by the writer thread only, after `init`.
    private var connection: SQLiteConnection?
    private var sweeper = RetentionSweeper()
    private var nextSweep = Date.distantPast

    /// Opens the file, creates or migrates its schema and starts the writer.
    ///
    /// - Parameters:
    ///   - path: The database file.
    ///   - pendingBytes: How much may wait for the disk before batches are refused.
    ///   - diskFloorBytes: Free bytes below which nothing is stored.
    ///   - observer: Hears of every commit.
    ///   - retentionSeconds: How often the apps' retention is looked after.
    ///   - retention: What each app keeps.
    /// - Throws: `SQLiteError` when the file cannot be opened, or was written by a newer version.
    package init(
        path: String, pendingBytes: Int, diskFloorBytes: Int = 0,
        observer: (any GatewayObserver)? = nil, retentionSeconds: Double = 60,
        retention: @escaping @Sendable () -> [String: AppRules] = { [:] }
    ) throws {
        self.diskFloorBytes = diskFloorBytes
        self.retentionSeconds = retentionSeconds
        self.retention = retention
        self.path = path
        self.pendingLimit = pendingBytes
        self.observer = observer
        connection = try Self.open(path)
        let thread = Thread { [self] in run() }
        thread.name = "event writer"
        thread.start()
    }

    package func append(
        _ batch: EventBatch, completion: @escaping @Sendable (Result<AppendOutcome, StoreFailure>) -> Void
    ) {
        enqueue(Job(batch: batch, completion: completion))
    }

    package func together(_ body: () -> Void) {
        condition.lock()
        gathering += 1
        condition.unlock()
        body()
        condition.lock()
        gathering -= 1
        if !waiting.isEmpty { condition.signal() }
        condition.unlock()
    }

    package func probe(completion: @escaping @Sendable (Result<Void, StoreFailure>) -> Void) {
        enqueue(Job(batch: nil) { completion($0.map { _ in }) })
    }

    package func noteKeyUse(appID: String, keyID: String, milliseconds: Int64) {
        condition.lock()
        keyUses.add(appID: appID, keyID: keyID, milliseconds: milliseconds)
        condition.unlock()
    }

    package var load: StoreLoad {
        condition.lock()
        var load = StoreLoad(waitingBatches: waiting.count, waitingBytes: waitingBytes)
        condition.unlock()
        load.fileBytes = DiskSpace.size(of: path) + DiskSpace.size(of: path + "-wal")
        load.freeBytes = DiskSpace.free(at: path) ?? 0
        return load
    }

    package func close() {
        condition.lock()
        isClosing = true
        condition.broadcast()
        while !hasEnded { condition.wait() }
        condition.unlock()
    }

    private func enqueue(_ job: Job) {
        condition.lock()
        let size = job.batch?.body.count ?? 0
        let refusal: StoreFailure? =
            isClosing
            ? StoreFailure(reason: .closed, detail: "the store is closed")
            : waitingBytes + size > pendingLimit
                ? StoreFailure(reason: .overloaded, detail: "\(waitingBytes) bytes wait for the disk") : nil
        if refusal == nil {
            waiting.append(job)
            waitingBytes += size
            if gathering == 0 { condition.signal() }
        }
        condition.unlock()
        if let refusal { job.completion(.failure(refusal)) }
    }

    private func run() {
        while true {
            condition.lock()
            while waiting.isEmpty || gathering > 0, !isClosing, sweeper.isDone,
                condition.wait(until: nextSweep)
            {}
            var jobs: [Job] = []
            if gathering == 0 || isClosing { swap(&jobs, &waiting) }
            var uses = KeyUseTally()
            let isLast = isClosing && jobs.isEmpty
            if !jobs.isEmpty || isLast { swap(&uses, &keyUses) }
            condition.unlock()
            if isLast {
                if !uses.isEmpty { _ = write([], uses) }
                break
            }
            sweep()
            if jobs.isEmpty { continue }
            let results = write(jobs, uses)
            condition.lock()
            waitingBytes -= jobs.reduce(0) { $0 + ($1.batch?.body.count ?? 0) }
            condition.unlock()
            // All at once after the commit: the server's threads then wake once for many answers.
            for (job, result) in zip(jobs, results) { job.completion(result) }
        }
        connection = nil
        condition.lock()
        hasEnded = true
        condition.broadcast()
        condition.unlock()
    }

    private func write(_ jobs: [Job], _ uses: KeyUseTally) -> [Result<AppendOutcome, StoreFailure>] {
        let began = DispatchTime.now()
        var record = CommitRecord(
            batches: jobs.count, events: jobs.reduce(0) { $0 + ($1.batch?.events.count ?? 0) }, seconds: 0)
        defer {
            record.seconds = Double(DispatchTime.now().uptimeNanoseconds - began.uptimeNanoseconds) / 1e9
            observer?.commitEnded(record)
        }
        if let free = DiskSpace.free(at: path), free < diskFloorBytes {
            let failure = StoreFailure(
                reason: .full, detail: "\(free) bytes are free, the floor is \(diskFloorBytes)")
            record.failure = failure
            keep(uses)
            return jobs.map { _ in .failure(failure) }
        }
        do {
            let open = try connection ?? Self.open(path)
            connection = open
            let outcomes = try open.transaction {
                try uses.write(to: open)
                var usage: [String: Usage] = [:]
                let outcomes = try jobs.map { job in
                    guard let batch = job.batch else {
                        try open.run(
                            "INSERT OR REPLACE INTO probe VALUES (1, ?)",
                            .integer(Int64(Date().timeIntervalSince1970 * 1000)))
                        return AppendOutcome()
                    }
                    return try Self.insert(batch, open, &usage[batch.appID, default: Usage()])
                }
                try Self.note(usage, open)
                return outcomes
            }
            return outcomes.map { .success($0) }
        } catch {
            let sqlite = error as? SQLiteError
            if sqlite?.isConstraint == true, jobs.count > 1 {
                // One batch cannot be stored; the others must not fail with it, now and at every retry.
                return jobs.enumerated().flatMap { write([$1], $0 == 0 ? uses : KeyUseTally()) }
            }
            keep(uses)
            let failure = StoreFailure(reason: sqlite?.isFull == true ? .full : .failed, detail: "\(error)")
            record.failure = failure
            // After a failed write or fsync the state of the pages is unknown: open again, which recovers from the
            // log, instead of trying the same fsync twice. A full disk leaves the connection sound.
            if sqlite?.isFull != true { connection = nil }
            return jobs.map { _ in .failure(failure) }
        }
    }

    /// Leaves for the next commit what this one could not keep.
    private func keep(_ uses: KeyUseTally) {
        condition.lock()
        keyUses.add(uses)
        condition.unlock()
    }

    /// Does a small part of what retention asks for; what fails is tried again at the next sweep.
    private func sweep() {
        if sweeper.isDone {
            guard Date() >= nextSweep else { return }
            nextSweep = Date(timeIntervalSinceNow: retentionSeconds)
            sweeper.begin(retention(), nowMilliseconds: Int64(Date().timeIntervalSince1970 * 1000))
        }
        guard !sweeper.isDone else { return }
        do {
            let open = try connection ?? Self.open(path)
            connection = open
            try sweeper.step(open)
        } catch {
            sweeper = RetentionSweeper()
            if (error as? SQLiteError)?.isFull != true { connection = nil }
        }
    }

    /// What a commit adds to an app.
    private struct Usage {
        var events = 0
        var bytes = 0
    }

    private static func note(_ usage: [String: Usage], _ connection: SQLiteConnection) throws {
        for (appID, added) in usage where added.events > 0 {
            try connection.run(
                """
                INSERT INTO app_usage (app_id, events, bytes) VALUES (?1, ?2, ?3)
                ON CONFLICT (app_id) DO UPDATE SET events = events + ?2, bytes = bytes + ?3
                """, .text(appID), .integer(Int64(added.events)), .integer(Int64(added.bytes)))
        }
    }

    private static func insert(
        _ batch: EventBatch, _ connection: SQLiteConnection, _ usage: inout Usage
    ) throws -> AppendOutcome {
        var outcome = AppendOutcome()
        let statement = try connection.cached(insert)
        try batch.body.withUnsafeBufferPointer { body in
            defer { statement.reset() }
            try statement.bind(.text(batch.appID), at: 1)
            try statement.bind(.integer(batch.receivedMilliseconds), at: 8)
            for event in batch.events {
                if event.isIdentifiedByContent, let user = event.userID {
                    try connection.run(
                        claim, .text(batch.appID), .text(event.messageID), .text(user))
                    if connection.changes > 0 {
                        outcome.duplicates += 1
                        continue
                    }
                }
                try statement.bind(.text(event.messageID), at: 2)
                try statement.bind(.text(event.kind.rawValue), at: 3)
                try statement.bind(.optionalText(event.userID), at: 4)
                try statement.bind(.optionalText(event.anonymousID), at: 5)
                try statement.bind(.optionalText(event.name), at: 6)
                try statement.bind(.integer(event.timestampMilliseconds), at: 7)
                try statement.bind(borrowing: body, event.json, at: 9)
                try statement.bind(.optionalText(event.sender), at: 10)
                _ = try statement.step()
                if connection.changes > 0 {
                    outcome.accepted += 1
                    usage.events += 1
                    usage.bytes += event.json.count
                } else {
                    outcome.duplicates += 1
                }
                statement.rewind()
            }
        }
        let writer = CustomerWriter(connection: connection, appID: batch.appID)
        for customer in batch.customers {
            try writer.apply(customer, receivedMilliseconds: batch.receivedMilliseconds)
        }
        return outcome
    }

    /// What is left of the log when it begins anew: it grows while somebody reads for long, such as a backup.
    private static let logBytes = 16 << 20

    private static func open(_ path: String) throws -> SQLiteConnection {
        let connection = try SQLiteConnection(path: path)
        // The page size holds for a new file only; 8 KiB suits rows of about 1 KB.
        try connection.execute(
            "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA mmap_size = 0;"
                + "PRAGMA journal_size_limit = \(logBytes)"
        )
        try Schema.migrate(connection, migrations)
        return connection
    }
}
