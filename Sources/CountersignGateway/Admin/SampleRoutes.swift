internal import CountersignCore
internal import CountersignJOSE

/// Single failed requests.
struct SampleRoutes: Sendable {
    let dataDirectory: String
    /// Brings what a running gateway has noted into the file.
    let flush: @Sendable () -> Void
    let judge: SampleJudge

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/samples", .viewer, "List samples of failed requests",
                query: [
                    .init("code", Self.code), .init("from_ms", .milliseconds), .init("to_ms", .milliseconds),
                ], .list(.named("Sample", .object(Self.facts))), answer: list),
            AdminRoute(
                "GET", "/apps/{app}/samples/{id}", .viewer, "Show a sample",
                query: [.init("unmask", .choice(["0", "1"]))],
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

    static let code = AdminType.integer(1...999)

    private static let check = AdminType.named(
        "Check", .all(["name": .string, "ok": .nullable(.bool), "detail": .string]))

    private static let facts: [AdminMember] = [
        .must("id", .string), .must("at_ms", .milliseconds), .must("code", code), .must("reason", .string),
        .must("verdict", .choice(["rejected", "warned"])), .must("endpoint", .string),
        .must("user", .nullable(.string)), .must("sdk", .nullable(.string)),
        .must("app_version", .nullable(.string)), .must("client", .string),
        .must("enforcement", .choice(of: Enforcement.self)), .must("request_id", .string),
    ]

    private func list(_ call: AdminCall) throws -> HTTPResponse {
        let app = try call.app()
        flush()
        let found = try AnalyticsReader(dataDirectory: dataDirectory).samples(
            of: app.id, code: call.integer("code").map { AuthErrorCode(rawValue: Int($0)) },
            from: call.integer("from_ms") ?? 0, to: call.integer("to_ms") ?? .max,
            before: try call.cursor().map { ($0.number, $0.id) }, limit: call.limit + 1)
        return try call.page(read: found, at: { PagePosition($0.atMilliseconds, $0.id) }) {
            .object(Self.members($0))
        }
    }

    private func sample(_ call: AdminCall) throws -> FailureSample {
        let app = try call.app()
        flush()
        return try AnalyticsReader(dataDirectory: dataDirectory).sample(id: call[1], of: app.id)
    }

    private func show(_ call: AdminCall) throws -> HTTPResponse {
        let isUnmasked = call.query("unmask") == "1"
        guard !isUnmasked || call.identity.role >= .operator else {
            throw AdminProblem(403, "forbidden", "this needs the role operator")
        }
        let sample = try sample(call)
        var members = Self.members(sample)
        var claims = Self.json(sample.claims)
        if isUnmasked {
            try call.directory.note("sample.unmask", sample.id, app: sample.appID)
            members["user"] = sample.userID.map { .string($0) } ?? .null
        } else {
            claims = Self.masked(claims)
        }
        members["checks"] = Self.json(sample.checks)
        members["header"] = Self.json(sample.header)
        members["claims"] = claims
        members["token_without_signature"] = isUnmasked ? .string(sample.tokenWithoutSignature) : .null
        members["fix"] = .string(sample.code.fix)
        return call.answer(.object(members))
    }

    /// Claims for those who need not know whose they are: all but issuer, audience and times may say it.
    private static func masked(_ claims: JSONValue) -> JSONValue {
        guard case .object(let members) = claims else { return claims }
        let shown = members.map { name, value -> (String, JSONValue) in
            switch value {
            case _ where ["iss", "aud", "exp", "nbf", "iat"].contains(name): (name, value)
            case .string(let text): (name, FailureSample.mask(text).map { .string($0) } ?? .null)
            case .bool, .null: (name, value)
            default: (name, "…")
            }
        }
        return .object(Dictionary(uniqueKeysWithValues: shown))
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
            (try? StrictJSONParser(maximumBytes: 16_384, maximumDepth: 32).parse(bytes: bytes) { $0.value })
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

    private static func members(_ sample: FailureSample) -> [String: JSONValue] {
        [
            "id": .string(sample.id), "at_ms": .integer(sample.atMilliseconds),
            "code": .integer(Int64(sample.code.rawValue)), "reason": .string(sample.code.reason),
            "verdict": .string(sample.verdict.rawValue), "endpoint": .string(sample.endpoint),
            "user": FailureSample.mask(sample.userID).map { .string($0) } ?? .null,
            "sdk": sample.client.sdk.map { .string($0) } ?? .null,
            "app_version": sample.client.appVersion.map { .string($0) } ?? .null,
            "client": .string(sample.network), "enforcement": .string(sample.enforcement.rawValue),
            "request_id": .string(sample.requestID),
        ]
    }
}
