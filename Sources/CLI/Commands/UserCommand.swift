internal import CountersignCore

enum UserCommand {
    static let commands = [block, limit, revoke, allow, list]

    private static let user = Positional(
        "USER", completes: .users, help: "the user's id; with --device the anonymousId of events")
    private static let revoked = Positional("USER", completes: .users, help: "the user's id")
    private static let restricted = Positional(
        user.name, completes: .ofApp("restrictions", member: "target"), help: user.help)
    private static let device = Flag("device", help: "a device instead of a user")
    private static let lasting = Flag(
        "for", .duration(.seconds, 1...315_360_000), help: "how long; without it, until it is lifted")
    private static let rate = Flag(
        "rate", .integer("NUMBER", 1...60_000), help: "the number of requests accepted in a minute")
    private static let reason = Flag("reason", .text("TEXT"), help: "a note for other operators")

    private static let block = Command(
        "user block", summary: "Reject the requests of a user or a device",
        details: """
            Requests get 403 with the code user_blocked or device_blocked, on all gateways within a second. `countersign
            user allow` lifts it.
            """,
        positionals: [.app, user], flags: [device, lasting, reason, .json] + Flag.target,
        examples: ["For an hour": "countersign user block shop ada --for 1h --reason 'floods the shop'"]
    ) { try await add("block", $0, $0[user], device: $0.isSet(device), seconds: try $0.integer(of: lasting)) }

    private static let limit = Command(
        "user limit", summary: "Limit the requests of a user or a device",
        details: """
            Requests above the rate get 429 with Retry-After and the code user_rate_limited or device_rate_limited. The
            gateways of a cluster share the rate. `countersign user allow` lifts it.
            """,
        positionals: [.app, user], flags: [rate, device, lasting, reason, .json] + Flag.target,
        examples: ["Ten a minute": "countersign user limit shop ada --rate 10 --for 1d"]
    ) { invocation in
        guard let perMinute = try invocation.integer(of: rate) else {
            throw CommandError(.usage, "--rate is missing", hint: "such as --rate 60 for one a second")
        }
        try await add(
            "limit", invocation, invocation[user], device: invocation.isSet(device), rate: perMinute,
            seconds: try invocation.integer(of: lasting))
    }

    private static let revoke = Command(
        "user revoke", summary: "Revoke all tokens that a user has",
        details: """
            Tokens issued before now get the code 36 on all gateways within a second, and the user's sessions end; newer tokens
            are accepted. The revocation ends after the policy's maximum lifetime, or never if the policy has none.
            """,
        positionals: [.app, revoked], flags: [reason, .json] + Flag.target,
        examples: ["A lost phone": "countersign user revoke shop ada --reason 'phone stolen'"]
    ) { try await add("revoke", $0, $0[revoked]) }

    private static func add(
        _ action: String, _ invocation: Invocation, _ target: String, device: Bool = false,
        rate: Int? = nil, seconds: Int? = nil
    ) async throws {
        let made = try await invocation.admin().post(
            "apps", invocation.app, "restrictions",
            body: [
                "action": .string(action), "target": .string(target),
                "subject": .string(device ? "device" : "user"),
                "requests_per_minute": rate.map { .integer(Int64($0)) } ?? .null,
                "seconds": seconds.map { .integer(Int64($0)) } ?? .null,
                "reason": try invocation.json(of: reason) ?? .null,
            ])
        try invocation.print(made) {
            let target = made["target"].shown
            let end = made["until_ms"] == .null ? "it is lifted" : made["until_ms"].time
            let done =
                switch action {
                case "block": "Blocked \(target) until \(end)."
                case "limit":
                    "Limited \(target) to \(made["requests_per_minute"].counted("request")) a minute until \(end)."
                default: "Revoked the tokens of \(target) that were issued before \(made["since_ms"].time)."
                }
            invocation.io.say(done)
        }
    }

    private static let allow = Command(
        "user allow", summary: "Lift the block and the limit of a user or a device",
        details: "A revocation stays. Lift it with the dashboard's enforcement screen or the admin API.",
        positionals: [.app, restricted], flags: [device] + Flag.target,
        examples: ["Lift a block": "countersign user allow shop ada"]
    ) { invocation in
        let admin = try invocation.admin()
        let subject = invocation.isSet(device) ? "device" : "user"
        let found = try await admin.items("apps", invocation.app, "restrictions").filter {
            $0["target"].text == invocation[restricted] && $0["subject"].text == subject
                && $0["action"].text != "revoke"
        }
        for one in found {
            try await admin.delete("apps", invocation.app, "restrictions", one["id"].text ?? "")
        }
        let name = TerminalText.safe(invocation[restricted])
        invocation.io.say(
            found.isEmpty ? "\(name) is neither blocked nor limited." : "\(name) is allowed again.")
    }

    private static let list = Command(
        "user list", summary: "List the blocked, limited and revoked users and devices of an app",
        positionals: [.app], flags: [.json] + Flag.target,
        examples: ["Is anyone blocked?": "countersign user list shop"]
    ) { invocation in
        try invocation.printList(
            try await invocation.admin().items("apps", invocation.app, "restrictions"),
            [
                "SUBJECT": "subject", "TARGET": "target", "ACTION": "action",
                "A MINUTE": "requests_per_minute", "SINCE": "since_ms", "UNTIL": "until_ms",
                "REASON": "reason",
            ], empty: "No user and no device of \(invocation.app) is blocked, limited or revoked.")
    }
}
