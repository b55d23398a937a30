internal import CountersignCore
internal import CountersignJOSE
internal import GatewayAdmission
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

/// Single failed requests.
struct SampleRoutes: Sendable {
    let analytics: any AnalyticsLog
    /// Brings what a running gateway has noted into the file.
    let flush: @Sendable () -> Void
    let judge: SampleJudge

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/samples", .viewer, "List samples of failed requests",
                query: [
                    .init("code", Self.code), .init("from_ms", .milliseconds), .init("to_ms", .milliseconds),
                    .unmask,
                ], .list(.named("Sample", .object(Self.facts))), answer: list),
            AdminRoute(
                "GET", "/apps/{app}/samples/{id}", .viewer, "Show a sample",
                query: [.unmask],
                .json(
                    .all([
                        "checks": .list(Self.check), "header": .any, "claims": .any,
                        "token_without_signature": .nullable(.string), "fix": .string,
                    ]).with(Self.facts)), answer: show),
            AdminRoute(
                "POST", "/apps/{app}/samples/{id}/recheck", .viewer,
                "Judge a sample by today's keys and policy",
                .json(
                    .all([
                        "checks": .list(Self.check), "code": .nullable(.count), "note": .nullable(.string),
                    ])), answer: recheck),
        ]
    }

    static let code = JSONShape.integer(1...999)

    private static let check = JSONShape.named(
        "Check", .all(["name": .string, "ok": .nullable(.bool), "detail": .string]))

    private static let facts: [JSONMember] = [
        .must("id", .string), .must("at_ms", .milliseconds), .must("code", code), .must("reason", .string),
        .must("verdict", .choice(["rejected", "warned"])), .must("endpoint", .string),
        .must("user", .nullable(.string)), .must("sdk", .nullable(.string)),
        .must("app_version", .nullable(.string)), .must("client", .string),
        .must("enforcement", .choice(of: Enforcement.self)), .must("request_id", .string),
    ]

    private func list(_ call: AdminCall) throws -> HTTPResponse {
        let app = try call.app()
        flush()
        let found = try analytics.samples(
            of: app.id, code: call.integer("code").map { AuthErrorCode(rawValue: Int($0)) },
            from: call.integer("from_ms") ?? 0, to: call.integer("to_ms") ?? .max,
            before: try call.cursor().map { ($0.number, $0.id) }, limit: call.limit + 1)
        let mask = try call.userMask("sample", "list", app: app.id)
        return try call.page(read: found, at: { PagePosition($0.atMilliseconds, $0.id) }) {
            .object(Self.members($0, mask))
        }
    }

    private func sample(_ call: AdminCall) throws -> FailureSample {
        let app = try call.app()
        flush()
        return try analytics.sample(id: call[1], of: app.id)
    }

    private func show(_ call: AdminCall) throws -> HTTPResponse {
        let sample = try sample(call)
        let mask = try call.userMask("sample", sample.id, app: sample.appID)
        var members = Self.members(sample, mask)
        members["checks"] = Self.json(sample.checks)
        members["header"] = mask.header(Self.json(sample.header), user: sample.userID)
        members["claims"] = mask.claims(
            Self.json(sample.claims), user: sample.userID, of: sample.appID)
        members["token_without_signature"] = mask.hides ? .null : .string(sample.tokenWithoutSignature)
        members["fix"] = .string(sample.code.fix)
        return call.answer(.object(members))
    }

    private func recheck(_ call: AdminCall) throws -> HTTPResponse {
        let sample = try sample(call)
        guard let verdict = judge.again(sample) else {
            return call.answer([
                "checks": Self.json(sample.checks), "code": .integer(Int64(sample.code.rawValue)),
                "note": "The signature is kept in memory only and is gone, so this is the verdict of then.",
            ])
        }
        return call.answer([
            "checks": Self.json(verdict.checks),
            "code": verdict.code.map { .integer(Int64($0.rawValue)) } ?? .null,
            "note": verdict.note.map { .string($0) } ?? .null,
        ])
    }

    private static func json(_ text: String?) -> JSONValue {
        let bytes = Array((text ?? "").utf8)
        return
            (try? StrictJSONParser(maximumBytes: 16_384, maximumDepth: 32, maximumNameBytes: 256).parse(
                bytes: bytes
            ) { $0.value })
            ?? .null
    }

    private static func json(_ checks: [FailureSample.Check]) -> JSONValue {
        .array(
            checks.map {
                [
                    "name": .string($0.name), "ok": $0.isOK.map { .bool($0) } ?? .null,
                    "detail": .string($0.detail),
                ]
            })
    }

    private static func members(_ sample: FailureSample, _ mask: UserMask) -> [String: JSONValue] {
        [
            "id": .string(sample.id), "at_ms": .integer(sample.atMilliseconds),
            "code": .integer(Int64(sample.code.rawValue)), "reason": .string(sample.code.reason),
            "verdict": .string(sample.verdict.rawValue), "endpoint": .string(sample.endpoint),
            "user": mask.user(sample.userID, of: sample.appID).map { .string($0) } ?? .null,
            "sdk": sample.client.sdk.map { .string($0) } ?? .null,
            "app_version": sample.client.appVersion.map { .string($0) } ?? .null,
            "client": .string(sample.network), "enforcement": .string(sample.enforcement.rawValue),
            "request_id": .string(sample.requestID),
        ]
    }
}
