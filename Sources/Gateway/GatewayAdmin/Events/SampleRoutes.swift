internal import CountersignCore
internal import CountersignJSON
internal import GatewayHTTP
internal import GatewayIngest
internal import GatewayModel
internal import GatewayStorage

struct SampleRoutes: Sendable {
    let analytics: any AnalyticsLog
    let flush: @Sendable () -> Void
    let verifier: SampleVerifier

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/samples", .viewer, "List samples of failed requests",
                query: [
                    .may("code", Self.code), .may("from_ms", .milliseconds), .may("to_ms", .milliseconds),
                    .may("request_id", .text(longest: 128)),
                ], .list(.named("Sample", Self.facts.shape)), answer: list),
            AdminRoute(
                "GET", "/apps/{app}/samples/{id}", .viewer, "Show a sample",
                .json(
                    .all([
                        "checks": [FailureSample.Check].jsonShape, "header": .any, "claims": .any,
                        "token_without_signature": .nullable(.string), "fix": .string,
                    ]).with(Self.facts.members)), answer: show),
            AdminRoute(
                "POST", "/apps/{app}/samples/{id}/recheck", .viewer,
                "Check a sample again with the current keys and policy", queueClass: .otherGateways,
                .json(
                    .all([
                        "checks": [FailureSample.Check].jsonShape, "code": .nullable(.count),
                        "note": .nullable(.string),
                    ])), answer: recheck),
        ]
    }

    static let code = JSONShape.integer(1...999)

    private struct Resource {
        let sample: FailureSample
        let user: String?
        let requestID: String?

        init(_ sample: FailureSample, _ mask: UserMask) {
            self.sample = sample
            user = mask.user(sample.userID, of: sample.appID)
            requestID = mask.clientText(sample.requestID)
        }
    }

    private static let facts = AnswerShape<Resource>(
        .init("id", \.sample.id), .time("at_ms", \.sample.atMilliseconds),
        .init("code", code, \.sample.code.rawValue), .init("reason", \.sample.code.reason),
        .init("verdict", .choice(["rejected", "warned"]), \.sample.verdict.rawValue),
        .init("endpoint", \.sample.endpoint), .init("user", \.user), .init("sdk", \.sample.client.sdk),
        .init("app_version", \.sample.client.appVersion), .init("client", \.sample.network),
        .init("enforcement", \.sample.enforcement), .init("request_id", \.requestID))

    private func list(_ call: AdminCall) throws -> HTTPResponse {
        let app = try call.app()
        let requestID = call.query("request_id")
        if requestID != nil { try call.checkSeesContent("a search for a request id") }
        flush()
        let found = try analytics.samples(
            of: app.id, requestID: requestID,
            code: call.integer("code").map { AuthErrorCode(rawValue: Int($0)) },
            from: call.integer("from_ms") ?? 0, to: call.integer("to_ms") ?? .max,
            before: try call.cursor().map { ($0.number, $0.id) }, limit: call.limit + 1)
        let mask = try call.userMask()
        return try call.page(read: found, at: { PageCursor($0.atMilliseconds, $0.id) }) {
            Self.facts.json(Resource($0, mask))
        }
    }

    private func sample(_ call: AdminCall) throws -> FailureSample {
        let app = try call.app()
        flush()
        return try analytics.sample(id: call[1], of: app.id)
    }

    private func show(_ call: AdminCall) throws -> HTTPResponse {
        let sample = try sample(call)
        let mask = try call.userMask()
        let more: BytewiseDictionary<JSONValue?> = [
            "checks": sample.checks.jsonValue,
            "header": Self.json(mask.clientText(sample.header)),
            "claims": Self.json(mask.clientText(sample.claims)),
            "token_without_signature": mask.clientText(sample.tokenWithoutSignature).jsonValue,
            "fix": .string(sample.code.fix),
        ]
        return call.answer(Self.facts.json(Resource(sample, mask), with: more))
    }

    private func recheck(_ call: AdminCall) throws -> HTTPResponse {
        let sample = try sample(call)
        guard let verdict = verifier.again(sample) else {
            return call.answer([
                "checks": sample.checks.jsonValue, "code": .integer(Int64(sample.code.rawValue)),
                "note": "The signature was only kept in memory and is gone, so this is the original verdict.",
            ])
        }
        return call.answer([
            "checks": verdict.checks.jsonValue,
            "code": (verdict.code?.rawValue).jsonValue, "note": verdict.note.jsonValue,
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
}
