internal import GatewayModel

/// What the analytics answer.
extension AnalyticsRoutes {
    private static let verdicts: [JSONMember] = [
        .must("accepted", .count), .must("anonymous", .count), .must("not_judged", .count),
        .must("warned", .count), .must("rejected", .count),
        .must("codes", .map(.all(["rejected": .count, "warned": .count]))),
    ]

    static let counts = JSONShape.named(
        "Analytics",
        .all([
            "from_ms": .milliseconds, "to_ms": .count,
            "bucket": .choice(of: BucketLength.self),
            "buckets": .list(.all(["start_ms": .milliseconds]).with(verdicts)), "totals": .object(verdicts),
            "previous": .object(verdicts),
            "markers": .list(
                .all([
                    "at_ms": .milliseconds, "kind": .choice(Set(markers.values).sorted()), "text": .string,
                    "by": .string,
                ])), "now_ms": .milliseconds,
        ]))

    static let rank = JSONShape.all(["value": .string, "requests": .count, "failures": .count])

    static let preview = JSONShape.named(
        "EnforcementPreview",
        .all([
            "hours": .count, "requests": .count, "users": .count, "users_estimated": .bool,
            "would_reject": .all(["requests": .count, "users": .count]),
            "by_code": .list(
                .all([
                    "code": .nullable(.count), "reason": .nullable(.string), "requests": .count,
                    "users": .count,
                ])),
            "by_app_version": .list(.all(["app_version": .string, "requests": .count, "users": .count])),
            "unknown": .nullable(.string),
        ]))
}
