package import CountersignCore
internal import CountersignJSON
internal import CountersignSQLite
package import GatewayModel

/// Selects verdicts. Nil members match everything; the empty string matches unknown values.
package struct AnalyticsQuery: Sendable {
    package var appID: String
    /// The range in milliseconds since 1970. `fromMilliseconds` is inclusive, `toMilliseconds` exclusive.
    package var fromMilliseconds: Int64
    package var toMilliseconds: Int64
    package var endpoint: String?
    package var mode: Enforcement?
    package var sdk: String?
    package var appVersion: String?
    package var keyID: String?
    package var code: AuthErrorCode?

    fileprivate var filters: [SQLValue] {
        [endpoint, mode?.rawValue, sdk, appVersion, keyID].map { .optionalText($0) }
            + [.optionalInteger(code.map { Int64($0.rawValue) })]
    }

    package init(appID: String, fromMilliseconds: Int64, toMilliseconds: Int64) {
        self.appID = appID
        self.fromMilliseconds = fromMilliseconds
        self.toMilliseconds = toMilliseconds
    }
}

/// The effect that requiring tokens would have had.
package struct EnforcementPreview: Sendable {
    package struct Part: Sendable {
        package var code: AuthErrorCode?
        package var appVersion: String?
        package var requests: Int
        package var users: Int
    }

    /// The start of the counts, in milliseconds since 1970: a full hour.
    package var fromMilliseconds: Int64 = 0
    /// Requests of identified users.
    package var requests = 0
    /// The number of identified users who sent requests, estimated with a standard error of 1.6 %.
    package var users = 0
    package var failedRequests = 0
    package var failedUsers = 0
    package var byCode: [Part] = []
    package var byAppVersion: [Part] = []
    /// Requests that could not be evaluated, because enforcement was disabled and the token was not verified.
    package var notJudged = 0
}

/// Reads counts of verdicts and samples of failed requests, also while a gateway writes. All functions except
/// `activity` throw `notFound` if no gateway has run on the data directory.
package protocol AnalyticsLog: Sendable {
    /// The buckets of a range in order, including empty ones. Throws `invalid` for no or more than 5,000 buckets.
    func buckets(_ query: AnalyticsQuery, by length: BucketLength) throws(GatewayError) -> [VerdictBucket]

    /// The counts of a range, which is extended to whole buckets.
    func total(_ query: AnalyticsQuery, by length: BucketLength) throws(GatewayError) -> VerdictBucket

    /// The activity by app id in a range of minutes. A nil `appID` selects all apps; apps without requests are missing.
    func activity(of appID: String?, from: Int64, to: Int64) throws(GatewayError) -> BytewiseDictionary<
        AppActivity
    >

    /// The values of a property with the most failed requests. An empty string stands for an unknown value.
    func top(
        _ query: AnalyticsQuery, by property: AnalyticsProperty, _ length: BucketLength, limit: Int
    ) throws(GatewayError) -> [(value: String, requests: Int, verified: Int, failures: Int)]

    /// The effect that requiring tokens would have had in the last 1 to 168 hours, from the start of an hour.
    func preview(of appID: String, at now: Int64, hours: Int) throws(GatewayError) -> EnforcementPreview

    /// The samples of an app, newest first. `before` is the last sample of the previous page. Nil filters match all.
    func samples(
        of appID: String, requestID: String?, code: AuthErrorCode?, from: Int64, to: Int64,
        before: (atMilliseconds: Int64, id: String)?, limit: Int
    ) throws(GatewayError) -> [FailureSample]

    /// Throws `notFound` for an unknown or deleted sample.
    func sample(id: String, of appID: String) throws(GatewayError) -> FailureSample
}

package enum AnalyticsProperty: String, Sendable, TextEnum {
    case appVersion = "app_version"
    case sdk
    case key = "key_id"
    case endpoint
    case mode
}

package struct AnalyticsReader: AnalyticsLog {
    let database: any SQLReader

    package init(_ database: any SQLReader) {
        self.database = database
    }

    package func buckets(_ query: AnalyticsQuery, by length: BucketLength) throws(GatewayError)
        -> [VerdictBucket]
    {
        let step = length.milliseconds
        let first = query.fromMilliseconds - query.fromMilliseconds % step
        guard query.toMilliseconds > first, query.toMilliseconds - first <= 5_000 * step else {
            throw GatewayError(
                .invalid, "a range must have 1 to 5000 buckets; choose longer buckets or a shorter range")
        }
        var buckets = stride(from: first, to: query.toMilliseconds, by: Int64.Stride(step)).map {
            VerdictBucket(startMilliseconds: $0)
        }
        try each(query, from: first, length, columns: "start_ms, verdict, code") { row in
            let index = Int((row.int64(0) - first) / step)
            guard buckets.indices.contains(index), let verdict = VerdictKind(rawValue: row.text(1)) else {
                return
            }
            buckets[index].add(verdict, Self.code(row.int64(2)), row.int(3))
        }
        return buckets
    }

    package func total(_ query: AnalyticsQuery, by length: BucketLength) throws(GatewayError) -> VerdictBucket
    {
        let first = query.fromMilliseconds - query.fromMilliseconds % length.milliseconds
        var total = VerdictBucket(startMilliseconds: first)
        try each(query, from: first, length, columns: "verdict, code") { row in
            guard let verdict = VerdictKind(rawValue: row.text(0)) else { return }
            total.add(verdict, Self.code(row.int64(1)), row.int(2))
        }
        return total
    }

    package func activity(
        of appID: String?, from: Int64, to: Int64
    ) throws(GatewayError) -> BytewiseDictionary<AppActivity> {
        guard database.isThere else { return [:] }
        let length = BucketLength.minute
        let first = from - from % length.milliseconds
        let hours = max(1, Int((to - first) / 3_600_000))
        var found: BytewiseDictionary<AppActivity> = [:]
        try rows(
            """
            SELECT app_id, verdict, sum(count), max(start_ms), (start_ms - ?1) / 3600000 FROM \(length.sumTable)
            WHERE start_ms >= ?1 AND start_ms < ?2 \(appID == nil ? "" : "AND app_id = ?3")
            GROUP BY app_id, verdict, 5
            """,
            [.integer(first), .integer(to)] + (appID.map { [.text($0)] } ?? [])
        ) { row in
            guard let verdict = VerdictKind(rawValue: row.text(1)) else { return }
            var activity = found[row.text(0)] ?? AppActivity()
            if activity.hours.isEmpty { activity.hours = Array(repeating: .init(), count: hours) }
            activity.requests += row.int(2)
            if verdict.isVerified { activity.verified += row.int(2) }
            if verdict == .rejected { activity.rejected += row.int(2) }
            if verdict == .acceptedWithWarning { activity.warned += row.int(2) }
            activity.lastMilliseconds = max(activity.lastMilliseconds ?? 0, row.int64(3))
            // Adds minutes after the last full hour to that hour.
            let hour = min(row.int(4), hours - 1)
            activity.hours[hour].requests += row.int(2)
            if verdict == .rejected || verdict == .acceptedWithWarning {
                activity.hours[hour].failures += row.int(2)
            }
            found[row.text(0)] = activity
        }
        return found
    }

    package func top(
        _ query: AnalyticsQuery, by property: AnalyticsProperty, _ length: BucketLength, limit: Int
    ) throws(GatewayError) -> [(value: String, requests: Int, verified: Int, failures: Int)] {
        let first = query.fromMilliseconds - query.fromMilliseconds % length.milliseconds
        var found: BytewiseDictionary<(requests: Int, verified: Int, failures: Int)> = [:]
        try each(query, from: first, length, columns: "\(property.rawValue), verdict", property: property) {
            row in
            let verdict = VerdictKind(rawValue: row.text(1))
            var counts = found[row.text(0)] ?? (0, 0, 0)
            counts.requests += row.int(2)
            if verdict?.isVerified == true { counts.verified += row.int(2) }
            if verdict == .rejected || verdict == .acceptedWithWarning { counts.failures += row.int(2) }
            found[row.text(0)] = counts
        }
        return found.map { ($0.key, $0.value.requests, $0.value.verified, $0.value.failures) }
            .sorted { ($0.3, $0.1) == ($1.3, $1.1) ? $0.0 < $1.0 : ($0.3, $0.1) > ($1.3, $1.1) }.prefix(limit)
            .map { $0 }
    }

    package func preview(of appID: String, at now: Int64, hours: Int) throws(GatewayError)
        -> EnforcementPreview
    {
        // Counts requests from the same full hour as users. Otherwise there could be more users than requests.
        let from = (now / 3_600_000 - Int64(hours)) * 3_600_000
        let query = AnalyticsQuery(appID: appID, fromMilliseconds: from, toMilliseconds: now + 60_000)
        let length = hours <= 47 ? BucketLength.minute : .hour
        let total = try total(query, by: length)
        var preview = EnforcementPreview()
        preview.fromMilliseconds = from
        preview.requests = total.accepted + total.failures + total.notJudged
        preview.failedRequests = total.failures
        preview.notJudged = total.notJudged
        var users = DistinctCounter()
        try rows(
            "SELECT registers FROM users_hour WHERE app_id = ?1 AND start_ms >= ?2", .text(appID),
            .integer(from)
        ) { users.add(DistinctCounter($0.blob(0))) }
        preview.users = users.count
        func failed(_ columns: String) throws(GatewayError) -> BytewiseDictionary<Int> {
            var counts: BytewiseDictionary<Int> = [:]
            try rows(
                """
                SELECT \(columns), count(DISTINCT "user") FROM failed_user_hour
                WHERE app_id = ?1 AND start_ms >= ?2 GROUP BY 1
                """, .text(appID), .integer(from)
            ) { counts[$0.text(0)] = $0.int(1) }
            return counts
        }
        preview.failedUsers = try failed("''")[""] ?? 0
        // The estimated number of all users may be lower than the exact number of failed users.
        preview.users = max(preview.users, preview.failedUsers)
        let byCode = try failed("code")
        preview.byCode = total.codes.map { code, failures in
            EnforcementPreview.Part(
                code: code, requests: failures.warned + failures.rejected,
                users: byCode[String(code.rawValue)] ?? 0)
        }.sorted { $0.requests > $1.requests }
        let byVersion = try failed("app_version")
        preview.byAppVersion = try top(query, by: .appVersion, length, limit: 20).filter { $0.failures > 0 }
            .map {
                EnforcementPreview.Part(
                    appVersion: $0.value, requests: $0.failures, users: byVersion[$0.value] ?? 0)
            }
        return preview
    }

    package func samples(
        of appID: String, requestID: String?, code: AuthErrorCode?, from: Int64, to: Int64,
        before: (atMilliseconds: Int64, id: String)?, limit: Int
    ) throws(GatewayError) -> [FailureSample] {
        var samples: [FailureSample] = []
        try rows(
            """
            SELECT \(FailureSample.columns) FROM sample WHERE app_id = ?1 AND (code = ?2 OR ?2 IS NULL) AND at_ms >= ?3 AND at_ms < ?4
                AND ((at_ms, id) < (?5, ?6) OR ?5 IS NULL) AND (request_id = ?8 OR ?8 IS NULL)
            ORDER BY at_ms DESC, id DESC LIMIT ?7
            """, .text(appID), .optionalInteger(code.map { Int64($0.rawValue) }), .integer(from),
            .integer(to),
            .optionalInteger(before?.atMilliseconds), .optionalText(before?.id), .integer(Int64(limit)),
            .optionalText(requestID)
        ) { if let sample = Self.sample($0) { samples.append(sample) } }
        return samples
    }

    package func sample(id: String, of appID: String) throws(GatewayError) -> FailureSample {
        var found: FailureSample?
        try rows(
            "SELECT \(FailureSample.columns) FROM sample WHERE app_id = ?1 AND id = ?2", .text(appID),
            .text(id)
        ) { found = Self.sample($0) }
        guard let found else {
            throw GatewayError(.notFound, "there is no such sample; older ones were deleted")
        }
        return found
    }

    /// Reads the detailed tables if there is a filter or a property, and otherwise the tables of sums.
    private func each(
        _ query: AnalyticsQuery, from first: Int64, _ length: BucketLength, columns: String,
        property: AnalyticsProperty? = nil, _ body: (any SQLRow) -> Void
    ) throws(GatewayError) {
        let range: [SQLValue] = [
            .text(query.appID), .integer(first), .integer(query.toMilliseconds),
        ]
        let filters = query.filters
        let isSum = property == nil && filters.allSatisfy { $0 == .null }
        try rows(
            """
            SELECT \(columns), sum(count) FROM \(isSum ? length.sumTable : length.table)
            WHERE app_id = ?1 AND start_ms >= ?2 AND start_ms < ?3
                \(isSum ? "" : """
                AND (endpoint = ?4 OR ?4 IS NULL) AND (mode = ?5 OR ?5 IS NULL) AND (sdk = ?6 OR ?6 IS NULL)
                AND (app_version = ?7 OR ?7 IS NULL) AND (key_id = ?8 OR ?8 IS NULL)
                AND (code = ?9 OR ?9 IS NULL)
                """)
            GROUP BY \(columns)
            """, isSum ? range : range + filters, body: body)
    }

    private func rows(
        _ sql: String, _ values: SQLValue..., body: (any SQLRow) -> Void
    ) throws(GatewayError) {
        try rows(sql, values, body: body)
    }

    private func rows(
        _ sql: String, _ values: [SQLValue], body: (any SQLRow) -> Void
    ) throws(GatewayError) {
        guard database.isThere else { throw GatewayError(.notFound, "nothing has been counted yet") }
        try database.read { connection in
            try connection.each(sql, values) {
                body($0)
                return true
            }
        }
    }

    private static func code(_ number: Int64) -> AuthErrorCode? {
        number == 0 ? nil : AuthErrorCode(rawValue: Int(number))
    }

    private static func sample(_ row: any SQLRow) -> FailureSample? {
        guard let verdict = VerdictKind(rawValue: row.text(4)) else { return nil }
        let text = Array(row.text(12).utf8)
        let checks = try? StrictJSONParser(maximumBytes: max(1, text.count)).parse(bytes: text) {
            [FailureSample.Check](jsonValue: $0.value)
        }
        return FailureSample(
            id: row.text(0), appID: row.text(1), atMilliseconds: row.int64(2),
            code: AuthErrorCode(rawValue: row.int(3)), verdict: verdict, endpoint: row.text(5),
            userID: row.optionalText(6),
            client: ClientInfo(sdk: row.optionalText(7), appVersion: row.optionalText(8)),
            network: row.text(9),
            enforcement: Enforcement(rawValue: row.text(10)) ?? .required, requestID: row.text(11),
            checks: checks ?? [], header: row.optionalText(13), claims: row.optionalText(14),
            tokenWithoutSignature: row.text(15))
    }
}
