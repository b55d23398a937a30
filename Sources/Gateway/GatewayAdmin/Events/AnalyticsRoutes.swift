internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

struct AnalyticsRoutes: Sendable {
    let analytics: any AnalyticsLog
    let flush: @Sendable () -> Void

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/analytics", .viewer, "Count verdicts over time", query: Self.filters,
                .json(Self.countsShape.shape), answer: counts),
            AdminRoute(
                "GET", "/apps/{app}/analytics/top", .viewer,
                "Rank the values of a property by their verdicts",
                query: Self.filters + [
                    .may("by", .choice(Self.properties.keys.sorted())), .may("limit", .integer(1...500)),
                    .may("code", SampleRoutes.code),
                ], .json(.page(of: Self.rank.shape)), answer: top),
            AdminRoute(
                "GET", "/apps/{app}/analytics/export", .viewer, "Export counts as CSV or NDJSON",
                query: Self.filters + [Export.format], .file(Export.mediaTypes), answer: export),
            AdminRoute(
                "GET", "/apps/{app}/enforcement/preview", .viewer,
                "Preview what requiring tokens would reject", query: [.may("hours", .integer(1...168))],
                .json(Self.previewShape.shape), answer: preview),
        ]
    }

    private static let filters: [JSONMember] = [
        .may("from_ms", .milliseconds), .may("to_ms", .milliseconds),
        .may("bucket", .choice(["auto"] + BucketLength.allCases.map(\.rawValue))),
        .may("endpoint", .text(longest: 512)), .may("mode", .choice(Enforcement.allCases.map(\.rawValue))),
        .may("sdk", .text(longest: 512)),
        .may("app_version", .text(longest: 512)), .may("key", .text(longest: 128)),
    ]

    private static let properties: BytewiseDictionary<AnalyticsProperty> = [
        "app_version": .appVersion, "sdk": .sdk, "key": .key, "endpoint": .endpoint, "mode": .mode,
    ]

    /// The audited actions that a chart marks, each with the kind and the text of its marker.
    static let markers: BytewiseDictionary<(kind: String, text: @Sendable (AuditEntry) -> String)> = [
        "key.add": ("key_added", { "Key \($0.target.prefix(8)) added" }),
        "key.primary": ("key_primary", { "Key \($0.target.prefix(8)) made primary" }),
        "key.delete": ("key_deleted", { "Key \($0.target.prefix(8)) deleted" }),
        "enforcement.set": ("enforcement", { "Enforcement set to \($0.target)" }),
        "policy.set": ("policy", { _ in "Policy changed" }),
        "enforcement.returned": ("returned", { _ in "Reverted to optional automatically" }),
        "enforcement.scheduled": ("scheduled", { "Switched to \($0.target) as scheduled" }),
    ]

    struct Range {
        var query: AnalyticsQuery
        let length: BucketLength
    }

    /// Parses `from_ms`, `to_ms`, `bucket` and the filters. Defaults to the last 24 hours.
    private func range(_ call: AdminCall) throws -> Range {
        let to = call.integer("to_ms") ?? call.nowMilliseconds
        let from = call.integer("from_ms") ?? max(0, to - 86_400_000)
        guard from < to else {
            throw AdminProblem.invalidParameter("from_ms", "must be less than to_ms")
        }
        let length: BucketLength
        if let named = call.query("bucket").flatMap({ BucketLength(rawValue: $0) }) {
            length = named
        } else {
            // Older counts are stored in longer buckets only.
            let suited = BucketLength.suited(to: to - from)
            let age = call.nowMilliseconds - from
            length =
                BucketLength.allCases.first {
                    $0.milliseconds >= suited.milliseconds && $0.retentionMilliseconds >= age
                } ?? .day
        }
        let step = length.milliseconds
        var query = AnalyticsQuery(
            appID: try call.app().id, fromMilliseconds: from / step * step,
            toMilliseconds: (to + step - 1) / step * step)
        query.endpoint = call.query("endpoint")
        query.mode = call.query("mode").flatMap { Enforcement(rawValue: $0) }
        query.sdk = call.query("sdk")
        query.appVersion = call.query("app_version")
        query.keyID = call.query("key")
        flush()
        return Range(query: query, length: length)
    }

    private func counts(_ call: AdminCall) throws -> HTTPResponse {
        let range = try range(call)
        let query = range.query
        let buckets = try analytics.buckets(query, by: range.length)
        let totals = try analytics.total(query, by: range.length)
        var earlier = query
        earlier.toMilliseconds = query.fromMilliseconds
        earlier.fromMilliseconds = max(0, 2 * query.fromMilliseconds - query.toMilliseconds)
        let previous = try analytics.total(earlier, by: range.length)
        let changes = try call.directory.auditLog.entries(
            app: query.appID, actions: Array(Self.markers.keys), from: query.fromMilliseconds,
            to: query.toMilliseconds)
        return call.answer(
            Self.countsShape.json(
                Counts(
                    range: range, buckets: buckets, totals: totals, previous: previous, changes: changes,
                    nowMilliseconds: call.nowMilliseconds)))
    }

    private func top(_ call: AdminCall) throws -> HTTPResponse {
        var range = try range(call)
        range.query.code = call.integer("code").map { AuthErrorCode(rawValue: Int($0)) }
        let property = Self.properties[call.query("by") ?? "app_version"] ?? .appVersion
        let rows = try analytics.top(range.query, by: property, range.length, limit: call.limit)
        return call.answer(all: rows, Self.rank)
    }

    private func export(_ call: AdminCall) throws -> HTTPResponse {
        let range = try range(call)
        let buckets = try analytics.buckets(range.query, by: range.length)
        let isCSV = Export.isCSV(call)
        var body: [UInt8] = []
        if isCSV {
            CSV.write(
                [
                    "start_ms", "accepted", "anonymous", "not_judged", "warned", "rejected", "code",
                    "failures",
                ],
                to: &body)
        }
        for bucket in buckets {
            let start = String(bucket.startMilliseconds)
            guard isCSV else {
                Self.bucket.json(bucket).write(to: &body)
                body.append(0x0A)
                continue
            }
            let counts = [
                bucket.accepted, bucket.anonymous, bucket.notJudged, bucket.warned, bucket.rejected,
            ].map { String($0) }
            CSV.write([start] + counts + ["", String(bucket.failures)], to: &body)
            for (code, failures) in bucket.codes.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                CSV.write(
                    [
                        start, "", "", "", "", "", String(code.rawValue),
                        String(failures.warned + failures.rejected),
                    ], to: &body)
            }
        }
        return Export.response(isCSV: isCSV, name: "\(range.query.appID)-analytics", body: body)
    }

    private func preview(_ call: AdminCall) throws -> HTTPResponse {
        let app = try call.app()
        let hours = call.integer("hours") ?? 24
        flush()
        let preview = try analytics.preview(of: app.id, at: call.nowMilliseconds, hours: Int(hours))
        return call.answer(Self.previewShape.json((hours: Int(hours), found: preview)))
    }
}
