internal import CountersignCore
internal import CountersignJOSE
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

struct EnforcementRoutes: Sendable {
    var all: [AdminRoute] {
        AdminRoute.setting(
            EnforcementPlan.self, "enforcement",
            ("Show how strictly an app's tokens are checked", "Set how strictly an app's tokens are checked"),
            named: "Enforcement"
        ) { call, _, _, plan in
            if let scheduled = plan.scheduled, scheduled.atMilliseconds <= call.nowMilliseconds {
                throw AdminProblem.invalid("scheduled.at_ms", "must be in the future")
            }
            try call.directory.setEnforcementPlan(plan, for: call[0], at: call.nowMilliseconds)
        }
            + AdminRoute.setting(
                ClaimsPolicy.self, "policy",
                ("Show what an app requires of its tokens", "Set what an app requires of its tokens"),
                named: "Policy")
            + webhook
    }

    private var webhook: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/webhook", .viewer, "Show where an app's alerts go",
                .json(Self.webhook.shape)
            ) { call in
                var webhook = try call.directory.settingIfSet(PushWebhook.self, of: call[0])
                if let url = webhook?.url { webhook?.url = try call.userMask().destination(url) }
                let json = Self.webhook.json(webhook)
                return call.answer(json, tag: json)
            },
            AdminRoute(
                "PUT", "/apps/{app}/webhook", .operator, "Set where an app's alerts go",
                body: .object([
                    .may("url", .text(longest: 2_048)), .may("secret", .text(longest: 200)),
                    .may("allow_private", .bool), .ignored("secret_set", .bool),
                ]), match: .required, .json(Self.webhook.shape.with([.may("secret", .string)]))
            ) { try $0.changing(setWebhook) },
        ]
    }

    private func setWebhook(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        try call.checkMatch(Self.webhook(call))
        let url: String? = body.value("url")
        let allowsPrivate = body.value("allow_private") ?? false
        if let url, allowsPrivate {
            let current = try call.directory.settingIfSet(PushWebhook.self, of: call[0])
            try call.checkPrivateAddress(url, before: current?.privateURL)
        }
        let made = try call.directory.setAlertWebhook(
            url: url, secret: body.value("secret"), allowsPrivateAddresses: allowsPrivate, for: call[0]
        )
        let kept = try call.directory.settingIfSet(PushWebhook.self, of: call[0])
        return call.answer(
            Self.webhook.json(kept, with: ["secret": made.map { .string($0) }]), tag: Self.webhook.json(kept))
    }

    private static let webhook = AnswerShape<PushWebhook?>(
        .init("url") { $0?.url }, .init("allow_private") { $0?.allowsPrivateAddresses ?? false },
        .init("secret_set") { $0 != nil })

    private static func webhook(_ call: AdminCall) throws -> JSONValue {
        webhook.json(try call.directory.settingIfSet(PushWebhook.self, of: call[0]))
    }
}
