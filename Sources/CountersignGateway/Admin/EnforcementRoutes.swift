internal import CountersignCore
internal import CountersignJOSE

/// How strictly an app is judged, by what rules, and who hears when it changes by itself.
struct EnforcementRoutes: Sendable {
    var all: [AdminRoute] {
        [
            AdminRoute("GET", "/apps/{app}/enforcement", .viewer, "Show how strictly an app is judged") {
                call in
                let plan = try call.directory.enforcementPlan(of: call[0]).json
                return call.answer(plan, tag: plan)
            },
            AdminRoute(
                "PUT", "/apps/{app}/enforcement", .operator, "Set how strictly an app is judged",
                answer: setEnforcement),
            AdminRoute("GET", "/apps/{app}/policy", .viewer, "Show what an app's tokens must look like") {
                call in
                let policy = try call.app().policy.json
                return call.answer(policy, tag: policy)
            },
            AdminRoute(
                "PUT", "/apps/{app}/policy", .operator, "Set what an app's tokens must look like",
                answer: setPolicy),
            AdminRoute("GET", "/apps/{app}/webhook", .viewer, "Show where an app's alerts go") { call in
                let json = try Self.json(call.directory.alertWebhook(of: call[0]))
                return call.answer(json, tag: json)
            },
            AdminRoute(
                "PUT", "/apps/{app}/webhook", .operator, "Set where an app's alerts go", answer: setWebhook),
        ]
    }

    private func setEnforcement(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body("state", "ramp_percent", "scheduled", "auto_return", "returned")
        let current = try call.directory.enforcementPlan(of: call[0])
        try call.checkMatch(current.json)
        var plan = EnforcementPlan()
        guard let state = try body.choice("state", Enforcement.allCases) else {
            throw AdminProblem.invalid("state", "is missing")
        }
        plan.state = state
        let percent = try body.integer("ramp_percent", 1...100) ?? 100
        plan.rampPercent = state == .required ? Int(percent) : 100
        if let scheduled = try body.object("scheduled", known: ["state", "at_ms"]) {
            guard let state = try scheduled.choice("state", Enforcement.allCases),
                let time = try scheduled.integer("at_ms", 1...253_402_300_799_999)
            else { throw AdminProblem.invalid("scheduled", "needs state and at_ms") }
            guard time > call.nowMilliseconds else {
                throw AdminProblem.invalid("scheduled.at_ms", "must lie in the future")
            }
            plan.scheduled = .init(state: state, atMilliseconds: time)
        }
        if let rule = try body.object(
            "auto_return", known: ["rejected_percent", "window_minutes", "minimum_requests"])
        {
            guard let percent = try rule.integer("rejected_percent", 1...100),
                let minutes = try rule.integer("window_minutes", 1...60)
            else { throw AdminProblem.invalid("auto_return", "needs rejected_percent and window_minutes") }
            plan.autoReturn = .init(
                rejectedPercent: Int(percent), windowMinutes: Int(minutes),
                minimumRequests: Int(try rule.integer("minimum_requests", 1...1_000_000_000) ?? 1))
        }
        try call.directory.setEnforcementPlan(plan, for: call[0], at: call.nowMilliseconds)
        let json = try call.directory.enforcementPlan(of: call[0]).json
        return call.answer(json, tag: json)
    }

    private func setPolicy(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body(
            "algorithms", "leeway_seconds", "maximum_lifetime_seconds", "audience", "issuer", "required")
        let app = try call.app()
        try call.checkMatch(app.policy.json)
        var policy = ClaimsPolicy()
        if let names = try body.texts("algorithms") {
            policy.algorithms = try names.map { name in
                guard let known = JWSAlgorithm.all.first(where: { $0.rawValue == name }) else {
                    throw AdminProblem.invalid(
                        "algorithms", "may have \(JWSAlgorithm.all.map(\.rawValue).joined(separator: ", "))")
                }
                return known
            }
        }
        if let leeway = try body.number("leeway_seconds") { policy.leeway = leeway }
        policy.maximumLifetime = try body.number("maximum_lifetime_seconds")
        policy.audience = try body.optionalText("audience", longest: 512)
        policy.issuer = try body.optionalText("issuer", longest: 512)
        let required = try body.texts("required") ?? []
        if let unknown = required.first(where: { !["aud", "iss", "typ"].contains($0) }) {
            throw AdminProblem.invalid("required", "may have aud, iss and typ, not \(unknown)")
        }
        policy.requiresAudience = required.contains("aud")
        policy.requiresIssuer = required.contains("iss")
        policy.requiresType = required.contains("typ")
        try call.directory.setPolicy(policy, for: app.id)
        let json = try call.app().policy.json
        return call.answer(json, tag: json)
    }

    private func setWebhook(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body("url", "secret", "secret_set")
        try call.checkMatch(try Self.json(call.directory.alertWebhook(of: call[0])))
        let made = try call.directory.setAlertWebhook(
            url: try body.optionalText("url", longest: 2_048),
            secret: try body.optionalText("secret", longest: 200), for: call[0])
        let json = try Self.json(call.directory.alertWebhook(of: call[0]))
        guard let made, case .object(var members) = json else { return call.answer(json, tag: json) }
        members["secret"] = .string(made)
        return call.answer(.object(members), tag: json)
    }

    private static func json(_ webhook: PushWebhook?) -> JSONValue {
        ["url": webhook.map { .string($0.url) } ?? .null, "secret_set": .bool(webhook != nil)]
    }
}
