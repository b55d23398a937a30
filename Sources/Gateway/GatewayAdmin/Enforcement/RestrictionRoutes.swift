internal import CountersignCore
internal import CountersignCrypto
internal import CountersignJOSE
internal import GatewayHTTP
internal import GatewayIngest
internal import GatewayModel
internal import GatewayStorage

struct RestrictionRoutes: Sendable {
    let families: TokenFamilyDirectory
    /// Ten years, in seconds.
    private static let longest: Int64 = 315_360_000

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/restrictions", .viewer,
                "List the blocked, limited and revoked users and devices of an app", .list(Self.shape)
            ) { call in
                let mask = try call.userMask()
                return try call.page(
                    try call.directory.restrictions.all(of: call[0]),
                    at: { PageCursor($0.sinceMilliseconds, $0.key) }
                ) { Self.json($0, mask.user($0.id, of: call[0])) }
            },
            AdminRoute(
                "POST", "/apps/{app}/restrictions", .operator,
                "Block or limit a user or device, or revoke the tokens that a user has",
                body: .object([
                    .must("target", .text(longest: 512)),
                    .may("subject", .choice(of: UserRestriction.Subject.self)),
                    .must("action", .choice(of: UserRestriction.Action.self)),
                    .may("requests_per_minute", .integer(1...60_000)),
                    .may("seconds", .integer(1...Self.longest)), .may("reason", .text(longest: 200)),
                ]), .json(Self.shape, status: 201), answer: add),
            AdminRoute.delete(
                "/apps/{app}/restrictions/{id}", .operator, "Lift a restriction of a user or device"
            ) { call in
                try call.directory.restrictions.remove(call[1], from: call[0])
            },
        ]
    }

    private static let shape = JSONShape.named(
        "Restriction", UserRestriction.shape.shape.with([.must("target", .string)]))

    private static func json(_ restriction: UserRestriction, _ target: String?) -> JSONValue {
        UserRestriction.shape.json(restriction, with: ["target": target.jsonValue])
    }

    private func add(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let app = try call.app()
        let target = try body.text("target")
        guard !target.isEmpty else { throw AdminProblem.invalid("target", "is empty") }
        let kind: String? = body.value("subject")
        let subject = kind.flatMap { UserRestriction.Subject(rawValue: $0) } ?? .user
        guard let action = UserRestriction.Action(rawValue: try body.text("action")) else {
            throw AdminProblem.invalid("action", "is not known")
        }
        let rate: Int? = body.value("requests_per_minute")
        var seconds: Int64? = body.value("seconds")
        switch action {
        case .block: break
        case .limit:
            if rate == nil { throw AdminProblem.invalid("requests_per_minute", "is missing") }
        case .revoke:
            guard subject == .user else { throw AdminProblem.invalid("subject", "must be user for revoke") }
            guard seconds == nil else {
                throw AdminProblem.invalid("seconds", "must be omitted: the lifetime of tokens decides")
            }
            seconds = try lifetime(of: app, call)
        }
        // Ends token families before `now` is read. Otherwise a family could get a token that is not revoked.
        if action == .revoke { _ = try families.revokeAll(of: target, in: app.id) }
        let now = Milliseconds(call.directory.restrictions.now()).count
        let restriction = UserRestriction(
            key: "measure_" + Base64URL.encode(.random(count: 9)), subject: subject, id: target,
            action: action, requestsPerMinute: action == .limit ? rate : nil,
            reason: body.value("reason") ?? "", sinceMilliseconds: now,
            untilMilliseconds: seconds.map { now + $0 * 1_000 })
        try call.directory.restrictions.put(restriction, in: app.id)
        return call.answer(Self.json(restriction, target), status: 201)
    }

    /// The seconds until tokens issued now are no longer accepted; nil without a maximum lifetime or above ten years.
    private func lifetime(of app: App, _ call: AdminCall) throws -> Int64? {
        guard let maximum = app.policy.maximumLifetime else { return nil }
        let own = try call.directory.tokenRules(of: app.id).accessSeconds
        let seconds = max(maximum, Double(own)).rounded(.up) + app.policy.leeway.rounded(.up) + 1
        return (1...Double(Self.longest)).contains(seconds) ? Int64(seconds) : nil
    }
}
