internal import CountersignCore
internal import CountersignJOSE

/// How strictly an app is judged, by what rules, and who hears when it changes by itself.
struct EnforcementRoutes: Sendable {
    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/enforcement", .viewer, "Show how strictly an app is judged",
                .json(Self.plan)
            ) { call in
                let plan = try call.directory.enforcementPlan(of: call[0]).json
                return call.answer(plan, tag: plan)
            },
            AdminRoute(
                "PUT", "/apps/{app}/enforcement", .operator, "Set how strictly an app is judged",
                body: Self.newPlan, match: .required, .json(Self.plan), answer: setEnforcement),
            AdminRoute(
                "GET", "/apps/{app}/policy", .viewer, "Show what an app's tokens must look like",
                .json(Self.policy)
            ) { call in
                let policy = try call.app().policy.json
                return call.answer(policy, tag: policy)
            },
            AdminRoute(
                "PUT", "/apps/{app}/policy", .operator, "Set what an app's tokens must look like",
                body: Self.newPolicy, match: .required, .json(Self.policy), answer: setPolicy),
            AdminRoute(
                "GET", "/apps/{app}/webhook", .viewer, "Show where an app's alerts go", .json(Self.webhook)
            ) { call in
                let json = try Self.json(call.directory.alertWebhook(of: call[0]))
                return call.answer(json, tag: json)
            },
            AdminRoute(
                "PUT", "/apps/{app}/webhook", .operator, "Set where an app's alerts go",
                body: .object([
                    .may("url", .text(longest: 2_048)), .may("secret", .text(longest: 200)),
                    .may("allow_private", .bool), .ignored("secret_set", .bool),
                ]), match: .required, .json(Self.webhook.with([.may("secret", .string)])), answer: setWebhook),
        ]
    }

    // MARK: Shapes

    private static func scheduled(_ ramp: (String, AdminType) -> AdminMember) -> AdminType {
        .object([
            .must("state", .choice(of: Enforcement.self)),
            .must("at_ms", .integer(1...253_402_300_799_999)), ramp("ramp_percent", .integer(1...100)),
        ])
    }

    private static func autoReturn(_ minimum: AdminMember) -> AdminType {
        .object([
            .must("rejected_percent", .integer(1...100)), .must("window_minutes", .integer(1...60)), minimum,
        ])
    }

    private static let minimum = AdminType.integer(1...1_000_000_000)

    private static let plan = AdminType.named(
        "Enforcement",
        .all([
            "state": .choice(of: Enforcement.self), "ramp_percent": .integer(1...100),
            "scheduled": .nullable(scheduled(AdminMember.must)),
            "auto_return": .nullable(autoReturn(.must("minimum_requests", minimum))),
            "returned": .nullable(.all(["at_ms": .milliseconds, "rejected_percent": .number])),
        ]))

    private static let newPlan = AdminType.object([
        .must("state", .choice(of: Enforcement.self)), .may("ramp_percent", .integer(1...100)),
        .may("scheduled", scheduled(AdminMember.may)),
        .may("auto_return", autoReturn(.may("minimum_requests", minimum))),
        .ignored("returned", .any),
    ])

    private static let algorithms = AdminType.list(.choice(JWSAlgorithm.all.map(\.rawValue)))
    private static let required = AdminType.list(.choice(["aud", "iss", "typ"]))

    private static let policy = AdminType.named(
        "Policy",
        .all([
            "algorithms": algorithms, "leeway_seconds": .number,
            "maximum_lifetime_seconds": .nullable(.number), "audience": .nullable(.string),
            "issuer": .nullable(.string), "required": required,
        ]))

    private static let newPolicy = AdminType.object([
        .may("algorithms", algorithms), .may("leeway_seconds", .number),
        .may("maximum_lifetime_seconds", .number), .may("audience", .text(longest: 512)),
        .may("issuer", .text(longest: 512)), .may("required", required),
    ])

    private static let webhook = AdminType.all([
        "url": .nullable(.string), "allow_private": .bool, "secret_set": .bool,
    ])

    // MARK: Answers

    private func setEnforcement(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        try call.checkMatch(try call.directory.enforcementPlan(of: call[0]).json)
        var plan = EnforcementPlan()
        plan.state = body.choice("state") ?? .required
        plan.rampPercent = Int(body.integer("ramp_percent") ?? 100)
        if let scheduled = body.object("scheduled"), let state: Enforcement = scheduled.choice("state"),
            let time = scheduled.integer("at_ms")
        {
            guard time > call.nowMilliseconds else {
                throw AdminProblem.invalid("scheduled.at_ms", "must lie in the future")
            }
            plan.scheduled = .init(
                state: state, atMilliseconds: time,
                rampPercent: Int(scheduled.integer("ramp_percent") ?? 100))
        }
        if let rule = body.object("auto_return"), let percent = rule.integer("rejected_percent"),
            let minutes = rule.integer("window_minutes")
        {
            plan.autoReturn = .init(
                rejectedPercent: Int(percent), windowMinutes: Int(minutes),
                minimumRequests: Int(rule.integer("minimum_requests") ?? 100))
        }
        try call.directory.setEnforcementPlan(plan, for: call[0], at: call.nowMilliseconds)
        let json = try call.directory.enforcementPlan(of: call[0]).json
        return call.answer(json, tag: json)
    }

    private func setPolicy(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let app = try call.app()
        try call.checkMatch(app.policy.json)
        var policy = ClaimsPolicy()
        if let names = body.texts("algorithms") {
            policy.algorithms = names.map { JWSAlgorithm(rawValue: $0) }
        }
        if let leeway = body.number("leeway_seconds") { policy.leeway = leeway }
        policy.maximumLifetime = body.number("maximum_lifetime_seconds")
        policy.audience = body.optionalText("audience")
        policy.issuer = body.optionalText("issuer")
        let required = body.texts("required") ?? []
        policy.requiresAudience = required.contains("aud")
        policy.requiresIssuer = required.contains("iss")
        policy.requiresType = required.contains("typ")
        try call.directory.setPolicy(policy, for: app.id)
        let json = try call.app().policy.json
        return call.answer(json, tag: json)
    }

    private func setWebhook(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let current = try call.directory.alertWebhook(of: call[0])
        try call.checkMatch(Self.json(current))
        let url = body.optionalText("url")
        let allowsPrivate = body.bool("allow_private") ?? false
        if let url, allowsPrivate { try call.checkPrivateAddress(url, before: current?.privateURL) }
        let made = try call.directory.setAlertWebhook(
            url: url, secret: body.optionalText("secret"), allowsPrivateAddresses: allowsPrivate, for: call[0]
        )
        let json = try Self.json(call.directory.alertWebhook(of: call[0]))
        guard let made, case .object(var members) = json else { return call.answer(json, tag: json) }
        members["secret"] = .string(made)
        return call.answer(.object(members), tag: json)
    }

    private static func json(_ webhook: PushWebhook?) -> JSONValue {
        [
            "url": webhook.map { .string($0.url) } ?? .null,
            "allow_private": .bool(webhook?.allowsPrivateAddresses ?? false),
            "secret_set": .bool(webhook != nil),
        ]
    }
}
