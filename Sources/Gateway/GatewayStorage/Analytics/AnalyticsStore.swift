internal import CountersignCore
internal import CountersignSQLite
package import Foundation
package import GatewayModel

/// Stores verdict counts by minute, hour and day, and samples of failed requests. Writes once a second.
///
/// SQLite uses `synchronous=NORMAL`: a power failure may lose the last seconds of counts, but no event
/// (`docs/adr/0013-analytics.md`).
package final class AnalyticsStore: AppData, @unchecked Sendable {
    package static let fileName = "analytics.sqlite"

    package static let schema =
        BucketLength.allCases.map { length in
            """
            CREATE TABLE \(length.table) (
                app_id TEXT NOT NULL, start_ms INTEGER NOT NULL, verdict TEXT NOT NULL, code INTEGER NOT NULL,
                endpoint TEXT NOT NULL, mode TEXT NOT NULL, sdk TEXT NOT NULL, app_version TEXT NOT NULL,
                key_id TEXT NOT NULL, count INTEGER NOT NULL,
                PRIMARY KEY (app_id, start_ms, verdict, code, endpoint, mode, sdk, app_version, key_id)
            ) STRICT, WITHOUT ROWID;
            CREATE TABLE \(length.sumTable) (
                app_id TEXT NOT NULL, start_ms INTEGER NOT NULL, verdict TEXT NOT NULL, code INTEGER NOT NULL,
                count INTEGER NOT NULL,
                PRIMARY KEY (app_id, start_ms, verdict, code)
            ) STRICT, WITHOUT ROWID;
            """
        }.joined() + """
            CREATE TABLE users_hour (
                app_id TEXT NOT NULL, start_ms INTEGER NOT NULL, registers BLOB NOT NULL,
                PRIMARY KEY (app_id, start_ms)
            ) STRICT;
            CREATE TABLE failed_user_hour (
                app_id TEXT NOT NULL, start_ms INTEGER NOT NULL, code INTEGER NOT NULL, app_version TEXT NOT NULL,
                "user" INTEGER NOT NULL,
                PRIMARY KEY (app_id, start_ms, code, app_version, "user")
            ) STRICT, WITHOUT ROWID;
            CREATE TABLE sample (
                id TEXT PRIMARY KEY, app_id TEXT NOT NULL, at_ms INTEGER NOT NULL, code INTEGER NOT NULL,
                verdict TEXT NOT NULL, endpoint TEXT NOT NULL, user_id TEXT, sdk TEXT, app_version TEXT,
                network TEXT NOT NULL, mode TEXT NOT NULL, request_id TEXT NOT NULL, checks TEXT NOT NULL,
                header TEXT, claims TEXT, token TEXT NOT NULL
            ) STRICT;
            CREATE INDEX sample_by_code ON sample (app_id, code, at_ms);
            """

    private static let rowsPerStep = 1_000
    private static let sweepMilliseconds: Int64 = 600_000

    private let open: @Sendable () throws(GatewayError) -> any SQLDatabase
    private let source: any AnalyticsSource
    private let now: @Sendable () -> Date
    private let report: @Sendable (String) -> Void
    private let queue = DispatchQueue(label: "analytics")
    private let ticker: Ticker
    /// Limits how long reports wait for a locked file. A report may then lack the newest counts.
    private let reports: BoundedWait
    private let droppedRequests = Lock(0)
    // Accessed on `queue` only, after `init`.
    private var database: any SQLDatabase
    private var pending = GatheredAnalytics()
    private var nextSweep: Int64 = 0
    private var retention: RetentionClock

    package convenience init(
        path: String, source: any AnalyticsSource, now: @escaping @Sendable () -> Date,
        report: @escaping @Sendable (String) -> Void
    ) throws(GatewayError) {
        try self.init(
            open: { () throws(GatewayError) in
                try Self.file(path, at: now())
            }, source: source, now: now, report: report)
    }

    static func file(_ path: String, at now: Date) throws(GatewayError) -> SQLiteWriter {
        try SQLiteWriter(
            path: path,
            pragmas:
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 16777216",
            [schema], from: 2, at: now)
    }

    /// `open` is called again after a failed write, unless the file was locked.
    package init(
        open: @escaping @Sendable () throws(GatewayError) -> any SQLDatabase, source: any AnalyticsSource,
        now: @escaping @Sendable () -> Date, report: @escaping @Sendable (String) -> Void
    ) throws(GatewayError) {
        self.open = open
        self.source = source
        self.now = now
        self.report = report
        retention = RetentionClock(Milliseconds(now()).count)
        ticker = Ticker(queue: queue, everySeconds: 1)
        reports = BoundedWait(queue: queue, milliseconds: 1_000)
        database = try open()
    }

    package func start() {
        ticker.start { [weak self] in self?.write() }
    }

    /// Ends the periodic writes, and stores the gathered counts.
    package func stop() {
        ticker.stop()
        flush()
    }

    package func flush() {
        queue.sync { write() }
    }

    /// Stores the gathered counts. Returns before they are stored if the write takes longer than a second.
    package func flushForReport() {
        _ = reports.result { [self] in write() }
    }

    /// The number of uncounted requests. They were dropped because the memory for different counts was full.
    package var dropped: Int { droppedRequests.withLock { $0 } }

    /// Deletes an app's counts and samples in small steps. Stores pending data first, so that it is deleted too.
    package func erase(appID: String) throws(GatewayError) {
        flush()
        var isDone = false
        while !isDone {
            isDone = try GatewayError.storing {
                try queue.sync {
                    try database.write { connection in
                        var left = Self.rowsPerStep
                        for table in try connection.appTables() where left > 0 {
                            left -= try connection.delete(of: appID, in: table, most: left)
                        }
                        return left > 0
                    }
                }
            }
        }
    }

    private func write() {
        pending.add(source.take())
        droppedRequests.withLock { $0 += pending.dropped }
        pending.dropped = 0
        let milliseconds = Milliseconds(now()).count
        let isSweepDue = DueTime.hasCome(
            nextSweep, at: milliseconds, within: Self.sweepMilliseconds)
        guard !pending.isEmpty || isSweepDue else { return }
        let gathered = pending
        var isLocked = false
        do {
            try GatewayError.storing {
                do {
                    // In one exclusive transaction, because user registers are read, merged and written back.
                    try database.commit(alone: true) { connection in
                        let table = AnalyticsTable(connection: connection)
                        for (minute, count) in gathered.counts { try table.add(minute, count) }
                        for (minute, count) in gathered.sums { try table.addSum(minute, count) }
                        for (hour, users) in gathered.users { try table.add(hour, users) }
                        for user in gathered.failedUsers { try table.add(user) }
                        for sample in gathered.samples { try table.add(sample) }
                        if isSweepDue { try table.sweep(retention.time(milliseconds)) }
                    }
                } catch let error as SQLiteError where error.isBusy {
                    isLocked = true
                    throw error
                }
            }
            pending = GatheredAnalytics()
            if isSweepDue { nextSweep = milliseconds + Self.sweepMilliseconds }
        } catch {
            report(error.reason)
            // A new connection would not help with a locked file.
            if !isLocked, let reopened = try? open() { database = reopened }
        }
    }
}
