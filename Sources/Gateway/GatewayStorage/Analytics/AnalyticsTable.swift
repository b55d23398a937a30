internal import CountersignCore
internal import CountersignSQLite
internal import GatewayModel

/// Writes counts and samples within an exclusive transaction.
struct AnalyticsTable {
    /// The maximum number of stored samples of an app and code.
    private static let samplesPerCode = 200

    let connection: any SQLConnection

    func add(_ minute: GatheredAnalytics.Minute, _ count: Int) throws {
        let key = minute.key
        for length in BucketLength.allCases {
            try connection.run(
                """
                INSERT INTO \(length.table) (app_id, start_ms, verdict, code, endpoint, mode, sdk, app_version, key_id,
                    count)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
                ON CONFLICT (app_id, start_ms, verdict, code, endpoint, mode, sdk, app_version, key_id)
                    DO UPDATE SET count = \(length.table).count + excluded.count
                """, .text(key.appID), .integer(minute.start - minute.start % length.milliseconds),
                .text(key.verdict.rawValue), .integer(Int64(key.code?.rawValue ?? 0)), .text(key.endpoint),
                .text(key.enforcement?.rawValue ?? ""), .text(key.client.sdk ?? ""),
                .text(key.client.appVersion ?? ""), .text(key.keyID ?? ""), .integer(Int64(count)))
        }
    }

    func addSum(_ minute: GatheredAnalytics.Minute, _ count: Int) throws {
        for length in BucketLength.allCases {
            try connection.run(
                """
                INSERT INTO \(length.sumTable) (app_id, start_ms, verdict, code, count) VALUES (?1, ?2, ?3, ?4, ?5)
                ON CONFLICT (app_id, start_ms, verdict, code)
                    DO UPDATE SET count = \(length.sumTable).count + excluded.count
                """, .text(minute.key.appID), .integer(minute.start - minute.start % length.milliseconds),
                .text(minute.key.verdict.rawValue), .integer(Int64(minute.key.code?.rawValue ?? 0)),
                .integer(Int64(count)))
        }
    }

    func add(_ hour: GatheredAnalytics.Hour, _ users: DistinctCounter) throws {
        var merged = users
        let kept = try connection.first(
            "SELECT registers FROM users_hour WHERE app_id = ?1 AND start_ms = ?2", .text(hour.appID),
            .integer(hour.start)
        ) { $0.blob(0) }
        if let kept { merged.add(DistinctCounter(kept)) }
        try connection.run(
            """
            INSERT INTO users_hour (app_id, start_ms, registers) VALUES (?1, ?2, ?3)
            ON CONFLICT (app_id, start_ms) DO UPDATE SET registers = excluded.registers
            """, .text(hour.appID), .integer(hour.start),
            .blob(merged.bytes))
    }

    func add(_ user: GatheredAnalytics.FailedUser) throws {
        try connection.run(
            """
            INSERT INTO failed_user_hour (app_id, start_ms, code, app_version, "user") VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT DO NOTHING
            """, .text(user.hour.appID),
            .integer(user.hour.start), .integer(Int64(user.code.rawValue)), .text(user.appVersion),
            .integer(Int64(bitPattern: user.user)))
    }

    func add(_ sample: FailureSample) throws {
        try connection.run(
            """
            INSERT INTO sample (\(FailureSample.columns))
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
            ON CONFLICT DO NOTHING
            """,
            .text(sample.id), .text(sample.appID), .integer(sample.atMilliseconds),
            .integer(Int64(sample.code.rawValue)), .text(sample.verdict.rawValue), .text(sample.endpoint),
            .optionalText(sample.userID), .optionalText(sample.client.sdk),
            .optionalText(sample.client.appVersion), .text(sample.network),
            .text(sample.enforcement.rawValue), .text(sample.requestID),
            .text(String(decoding: sample.checks.jsonValue.bytes, as: UTF8.self)),
            .optionalText(sample.header),
            .optionalText(sample.claims), .text(sample.tokenWithoutSignature))
    }

    /// Deletes expired rows, and all but the latest ``samplesPerCode`` samples of each app and code.
    func sweep(_ milliseconds: Int64) throws {
        for length in BucketLength.allCases {
            for table in [length.table, length.sumTable] {
                try delete(from: table, before: milliseconds - length.retentionMilliseconds)
            }
        }
        for table in ["users_hour", "failed_user_hour"] {
            try delete(from: table, before: milliseconds - 8 * 86_400_000)
        }
        try connection.run(
            """
            DELETE FROM sample WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER (
                PARTITION BY app_id, code ORDER BY at_ms DESC, id DESC) AS place FROM sample) AS placed
                WHERE place > ?1)
            """, .integer(Int64(Self.samplesPerCode)))
    }

    /// Deletes rows by the primary key, app by app, so that remaining rows are not scanned.
    private func delete(from table: String, before milliseconds: Int64) throws {
        var appID = ""
        while let next = try connection.first(
            "SELECT app_id FROM \(table) WHERE app_id > ?1 ORDER BY app_id LIMIT 1", .text(appID),
            row: { $0.text(0) })
        {
            appID = next
            try connection.run(
                "DELETE FROM \(table) WHERE app_id = ?1 AND start_ms < ?2", .text(appID),
                .integer(milliseconds))
        }
    }
}

extension FailureSample {
    /// The columns of the table `sample`, in the order in which they are read and written.
    static let columns = """
        id, app_id, at_ms, code, verdict, endpoint, user_id, sdk, app_version, network, mode, request_id, checks,
        header, claims, token
        """
}
