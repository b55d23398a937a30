internal import CountersignCore
internal import CountersignSQLite
package import Foundation
package import GatewayModel

/// Counted verdicts and samples in `analytics.sqlite`: written once a second, kept by minute, hour and day.
///
/// `synchronous=NORMAL`: a power failure may cost the last seconds of counts, never an event (`docs/adr/0013-analytics.md`).
package final class AnalyticsStore: AppData, @unchecked Sendable {
    package static let fileName = "analytics.sqlite"

    private static let migrations = [
        BucketLength.allCases.map { length in
            """
            CREATE TABLE \(length.table) (
                app_id TEXT NOT NULL, start_ms INTEGER NOT NULL, verdict TEXT NOT NULL, code INTEGER NOT NULL,
                endpoint TEXT NOT NULL, mode TEXT NOT NULL, sdk TEXT NOT NULL, app_version TEXT NOT NULL,
                key_id TEXT NOT NULL, count INTEGER NOT NULL,
                PRIMARY KEY (app_id, start_ms, verdict, code, endpoint, mode, sdk, app_version, key_id)
            ) STRICT, WITHOUT ROWID;
            """
        }.joined() + """
            CREATE TABLE users_hour (
                app_id TEXT NOT NULL, start_ms INTEGER NOT NULL, registers BLOB NOT NULL,
                PRIMARY KEY (app_id, start_ms)
            ) STRICT;
            CREATE TABLE failed_user_hour (
                app_id TEXT NOT NULL, start_ms INTEGER NOT NULL, code INTEGER NOT NULL, app_version TEXT NOT NULL,
                user INTEGER NOT NULL,
                PRIMARY KEY (app_id, start_ms, code, app_version, user)
            ) STRICT, WITHOUT ROWID;
            CREATE TABLE sample (
                id TEXT PRIMARY KEY, app_id TEXT NOT NULL, at_ms INTEGER NOT NULL, code INTEGER NOT NULL,
                verdict TEXT NOT NULL, endpoint TEXT NOT NULL, user_id TEXT, sdk TEXT, app_version TEXT,
                network TEXT NOT NULL, mode TEXT NOT NULL, request_id TEXT NOT NULL, checks TEXT NOT NULL,
                header TEXT, claims TEXT, token TEXT NOT NULL
            ) STRICT;
            CREATE INDEX sample_by_code ON sample (app_id, code, at_ms);
            """,
        BucketLength.allCases.map { length in
            """
            CREATE TABLE \(length.sumTable) (
                app_id TEXT NOT NULL, start_ms INTEGER NOT NULL, verdict TEXT NOT NULL, code INTEGER NOT NULL,
                count INTEGER NOT NULL,
                PRIMARY KEY (app_id, start_ms, verdict, code)
            ) STRICT, WITHOUT ROWID;
            INSERT INTO \(length.sumTable)
                SELECT app_id, start_ms, verdict, code, sum(count) FROM \(length.table) GROUP BY 1, 2, 3, 4;
            """
        }.joined(),
    ]

    /// Samples of an app and code that are kept.
    private static let samplesPerCode = 200

    /// Rows that one step of erasing deletes.
    private static let rowsPerStep = 1_000

    private let path: String
    private let source: any AnalyticsSource
    private let now: @Sendable () -> Date
    private let report: @Sendable (String) -> Void
    private let queue = DispatchQueue(label: "analytics")
    private let ticker: Ticker
    // Touched on `queue` only, after `init`.
    private var connection: SQLiteConnection
    private var nextSweep: Int64 = 0

    /// Opens the file, and makes it when it is not there. Throws `storage`.
    package init(
        path: String, source: any AnalyticsSource, now: @escaping @Sendable () -> Date,
        report: @escaping @Sendable (String) -> Void
    ) throws(GatewayError) {
        self.path = path
        self.source = source
        self.now = now
        self.report = report
        ticker = Ticker(queue: queue, everySeconds: 1)
        do {
            connection = try Self.open(path)
        } catch {
            throw GatewayError(.storage, "cannot open \(path): \(error)")
        }
    }

    package func start() {
        ticker.start { [weak self] in self?.write() }
    }

    /// Keeps what was gathered, and ends.
    package func stop() {
        ticker.stop()
        flush()
    }

    /// Keeps what was gathered so far.
    package func flush() {
        queue.sync { write() }
    }

    /// Removes the counts and samples of an app, a few rows at a time, those too that were gathered until now.
    package func erase(appID: String) throws(GatewayError) {
        flush()
        var isDone = false
        while !isDone {
            isDone = try GatewayError.storing {
                try queue.sync {
                    try connection.transaction {
                        var left = Self.rowsPerStep
                        for table in try AppTable.all(in: connection) where left > 0 {
                            left -= try table.delete(of: appID, rows: left, from: connection)
                        }
                        return left > 0
                    }
                }
            }
        }
    }

    private func write() {
        let gathered = source.take()
        let milliseconds = Int64(now().timeIntervalSince1970 * 1000)
        let isSweepDue = milliseconds >= nextSweep
        guard !gathered.isEmpty || isSweepDue else { return }
        do {
            try connection.transaction {
                for (minute, count) in gathered.counts { try add(minute, count) }
                for (minute, count) in gathered.sums { try addSum(minute, count) }
                for (hour, users) in gathered.users { try add(hour, users) }
                for user in gathered.failedUsers { try add(user) }
                for sample in gathered.samples { try add(sample) }
                if isSweepDue { try sweep(milliseconds) }
            }
            if isSweepDue { nextSweep = milliseconds + 600_000 }
        } catch {
            source.giveBack(gathered)
            report("\(error)")
            if let reopened = try? Self.open(path) { connection = reopened }
        }
    }

    private func add(_ minute: GatheredAnalytics.Minute, _ count: Int) throws {
        let key = minute.key
        for length in BucketLength.allCases {
            try connection.run(
                """
                INSERT INTO \(length.table) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
                ON CONFLICT DO UPDATE SET count = count + ?10
                """, .text(key.appID), .integer(minute.start - minute.start % length.milliseconds),
                .text(key.verdict.rawValue), .integer(Int64(key.code?.rawValue ?? 0)), .text(key.endpoint),
                .text(key.enforcement?.rawValue ?? ""), .text(key.client.sdk ?? ""),
                .text(key.client.appVersion ?? ""), .text(key.keyID ?? ""), .integer(Int64(count)))
        }
    }

    private func addSum(_ minute: GatheredAnalytics.Minute, _ count: Int) throws {
        for length in BucketLength.allCases {
            try connection.run(
                """
                INSERT INTO \(length.sumTable) VALUES (?1, ?2, ?3, ?4, ?5)
                ON CONFLICT DO UPDATE SET count = count + ?5
                """, .text(minute.key.appID), .integer(minute.start - minute.start % length.milliseconds),
                .text(minute.key.verdict.rawValue), .integer(Int64(minute.key.code?.rawValue ?? 0)),
                .integer(Int64(count)))
        }
    }

    private func add(_ hour: GatheredAnalytics.Hour, _ users: DistinctCounter) throws {
        var merged = users
        let kept = try connection.first(
            "SELECT registers FROM users_hour WHERE app_id = ?1 AND start_ms = ?2", .text(hour.appID),
            .integer(hour.start)
        ) { $0.blob(0) }
        if let kept { merged.add(DistinctCounter(kept)) }
        try connection.run(
            "INSERT OR REPLACE INTO users_hour VALUES (?1, ?2, ?3)", .text(hour.appID), .integer(hour.start),
            .blob(merged.bytes))
    }

    private func add(_ user: GatheredAnalytics.FailedUser) throws {
        try connection.run(
            "INSERT OR IGNORE INTO failed_user_hour VALUES (?1, ?2, ?3, ?4, ?5)", .text(user.hour.appID),
            .integer(user.hour.start), .integer(Int64(user.code.rawValue)), .text(user.appVersion),
            .integer(Int64(bitPattern: user.user)))
    }

    private func add(_ sample: FailureSample) throws {
        let checks = JSONValue.array(
            sample.checks.map { check in
                [
                    "name": .string(check.name), "ok": check.isOK.map { .bool($0) } ?? .null,
                    "detail": .string(check.detail),
                ]
            })
        try connection.run(
            """
            INSERT OR IGNORE INTO sample (\(FailureSample.columns))
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
            """,
            .text(sample.id), .text(sample.appID), .integer(sample.atMilliseconds),
            .integer(Int64(sample.code.rawValue)), .text(sample.verdict.rawValue), .text(sample.endpoint),
            .optionalText(sample.userID), .optionalText(sample.client.sdk),
            .optionalText(sample.client.appVersion), .text(sample.network),
            .text(sample.enforcement.rawValue), .text(sample.requestID),
            .text(String(decoding: checks.bytes, as: UTF8.self)), .optionalText(sample.header),
            .optionalText(sample.claims), .text(sample.tokenWithoutSignature))
    }

    /// Deletes what is older than it is kept, and all but the latest samples of each code.
    private func sweep(_ milliseconds: Int64) throws {
        for length in BucketLength.allCases {
            for table in [length.table, length.sumTable] {
                try connection.run(
                    "DELETE FROM \(table) WHERE start_ms < ?1",
                    .integer(milliseconds - length.retentionMilliseconds))
            }
        }
        for table in ["users_hour", "failed_user_hour"] {
            try connection.run(
                "DELETE FROM \(table) WHERE start_ms < ?1", .integer(milliseconds - 8 * 86_400_000))
        }
        try connection.run(
            """
            DELETE FROM sample WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER (
                PARTITION BY app_id, code ORDER BY at_ms DESC, id DESC) AS place FROM sample) WHERE place > ?1)
            """, .integer(Int64(Self.samplesPerCode)))
    }

    private static func open(_ path: String) throws -> SQLiteConnection {
        let connection = try SQLiteConnection(path: path)
        try connection.execute(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 16777216")
        try Schema.migrate(connection, migrations)
        return connection
    }
}

extension FailureSample {
    /// The columns of the table `sample`, in the order in which they are read and written.
    static let columns = """
        id, app_id, at_ms, code, verdict, endpoint, user_id, sdk, app_version, network, mode, request_id, checks,
        header, claims, token
        """
}
