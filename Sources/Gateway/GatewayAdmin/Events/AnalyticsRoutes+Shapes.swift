internal import CountersignCore
internal import GatewayModel
internal import GatewayStorage

extension AnalyticsRoutes {
    private typealias Failures = VerdictBucket.Failures

    private static let failures = AnswerShape<Failures>(
        .init("rejected", \.rejected), .init("warned", \.warned))

    static let verdicts = AnswerShape<VerdictBucket>(
        .init("accepted", \.accepted), .init("anonymous", \.anonymous), .init("not_judged", \.notJudged),
        .init("warned", \.warned), .init("rejected", \.rejected),
        .init("codes", .map(failures.shape)) { bucket in
            JSONValue.object(
                JSONObject(
                    uniqueKeysWithValues: bucket.codes.map {
                        (String($0.key.rawValue), failures.json($0.value))
                    }))
        })

    static let bucket = AnswerShape<VerdictBucket>(
        first: verdicts.fields, .time("start_ms", \.startMilliseconds))

    private static let marker = AnswerShape<AuditEntry>(
        .time("at_ms", \.atMilliseconds),
        .init("kind", .choice(BytewiseSet(markers.values.map { $0.kind }).sorted())) {
            markers[$0.action]?.kind ?? ""
        },
        .init("text") { markers[$0.action]?.text($0) ?? "" }, .init("by", \.actor))

    struct Counts {
        let range: Range
        let buckets: [VerdictBucket]
        let totals: VerdictBucket
        let previous: VerdictBucket
        let changes: [AuditEntry]
        let nowMilliseconds: Int64
    }

    static let countsShape = AnswerShape<Counts>(
        named: "Analytics", .time("from_ms", \.range.query.fromMilliseconds),
        .init("to_ms", .count, \.range.query.toMilliseconds),
        .init("bucket", .choice(of: BucketLength.self), \.range.length.rawValue),
        .list("buckets", bucket, \.buckets), .object("totals", verdicts, \.totals),
        .object("previous", verdicts, \.previous), .list("markers", marker, \.changes),
        .time("now_ms", \.nowMilliseconds))

    static let rank = AnswerShape<(value: String, requests: Int, verified: Int, failures: Int)>(
        .init("value") { $0.value }, .init("requests") { $0.requests }, .init("verified") { $0.verified },
        .init("failures") { $0.failures })

    private static let codePart = AnswerShape<EnforcementPreview.Part>(
        .init("code", \.code?.rawValue), .init("reason", \.code?.reason), .init("requests", \.requests),
        .init("users", \.users))

    private static let versionPart = AnswerShape<EnforcementPreview.Part>(
        .init("app_version") { $0.appVersion ?? "" }, .init("requests", \.requests), .init("users", \.users))

    static let previewShape = AnswerShape<(hours: Int, found: EnforcementPreview)>(
        named: "EnforcementPreview", .init("hours") { $0.hours },
        .time("from_ms") { $0.found.fromMilliseconds }, .init("requests") { $0.found.requests },
        .init("not_judged") { $0.found.notJudged }, .init("users") { $0.found.users },
        .init("users_estimated") { _ in true },
        .object("would_reject", rejected) { $0.found }, .list("by_code", codePart) { $0.found.byCode },
        .list("by_app_version", versionPart) { $0.found.byAppVersion },
        .init("unknown") { preview in
            preview.found.notJudged == 0
                ? nil
                : "\(preview.found.notJudged) requests came while enforcement was disabled: their tokens were not checked, "
                    + "so it is unknown what would happen to them. Set it to optional for a while first."
        })

    private static let rejected = AnswerShape<EnforcementPreview>(
        .init("requests", \.failedRequests), .init("users", \.failedUsers))
}
