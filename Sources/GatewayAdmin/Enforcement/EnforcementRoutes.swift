internal import CountersignCore
internal import CountersignJOSE
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

/// How strictly an app is judged, by what rules, and who hears when it changes by itself.
struct EnforcementRoutes: Sendable {
    var all: [AdminRoute] {
        AdminRoute.setting(
            EnforcementPlan.self, "enforcement",
            ("Show how strictly an app is judged", "Set how strictly an app is judged"),
            named: "Enforcement"
        ) { call, _, _, plan in
            if let scheduled = plan.scheduled, scheduled.atMilliseconds <= call.nowMilliseconds {
                throw AdminProblem.invalid("scheduled.at_ms", "must lie in the future")
            }
            try call.directory.setEnforcementPlan(plan, for: call[0], at: call.nowMilliseconds)
            return [:]
        }
            + AdminRoute.setting(
                ClaimsPolicy.self, "policy",
                ("Show what an app's tokens must look like", "Set what an app's tokens must look like"),
                named: "Policy")
            + webhook
    }

    private var webhook: [AdminRoute] {
        let shape = JSONShape.object([
            .must("url", .nullable(.string)), .must("allow_private", .bool), .must("secret_set", .bool),
        ])
        return [
            AdminRoute("GET", "/apps/{app}/webhook", .viewer, "Show where an app's alerts go", .json(shape)) {
                call in
                let json = try Self.webhook(call)
                return call.answer(json, tag: json)
            },
            AdminRoute(
                "PUT", "/apps/{app}/webhook", .operator, "Set where an app's alerts go",
                body: .object([
                    .may("url", .text(longest: 2_048)), .may("secret", .text(longest: 200)),
                    .may("allow_private", .bool), .ignored("secret_set", .bool),
                ]), match: .required, .json(shape.with([.may("secret", .string)])), answer: setWebhook),
        ]
    }

    private func setWebhook(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        try call.checkMatch(Self.webhook(call))
        let url = body.optionalText("url")
        let allowsPrivate = body.bool("allow_private") ?? false
        if let url, allowsPrivate {
            let current = try call.directory.settingIfSet(PushWebhook.self, of: call[0])
            try call.checkPrivateAddress(url, before: current?.privateURL)
        }
        let made = try call.directory.setAlertWebhook(
            url: url, secret: body.optionalText("secret"), allowsPrivateAddresses: allowsPrivate, for: call[0]
        )
        let json = try Self.webhook(call)
        var members = json.members ?? [:]
        members["secret"] = made.map { .string($0) }
        return call.answer(.object(members), tag: json)
    }

    private static func webhook(_ call: AdminCall) throws -> JSONValue {
        let webhook = try call.directory.settingIfSet(PushWebhook.self, of: call[0])
        return [
            "url": webhook.map { .string($0.url) } ?? .null,
            "allow_private": .bool(webhook?.allowsPrivateAddresses ?? false),
            "secret_set": .bool(webhook != nil),
        ]
    }
}
