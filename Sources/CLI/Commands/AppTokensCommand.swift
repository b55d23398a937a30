internal import CountersignCore
internal import GatewayModel

enum AppTokensCommand {
    static let commands = [tokens]

    private static let registration = Flag(
        "registration", .choice(["open", "closed"]), help: "whether devices may register at /api/register")
    private static let access = Flag(
        "access-seconds", .duration(.seconds, TokenRules.accessRange), help: "how long an access token lives")
    private static let refresh = Flag(
        "refresh-seconds", .duration(.seconds, TokenRules.refreshRange),
        help: "how long a session lives if it is not used")
    private static let reuse = Flag(
        "reuse-seconds", .duration(.seconds, TokenRules.reuseRange),
        help: "how long after a refresh the old refresh token returns the new one again")
    private static let absolute = Flag(
        "absolute-seconds", .duration(.seconds, TokenRules.absoluteRange),
        help: "how long a session lives at most, however much it is used")

    private static let tokens = Command(
        "app tokens", summary: "Print or set how the gateway issues an app's tokens",
        details: """
            Without a flag it prints the rules. Registration is closed by default: if it is open, a client that knows the
            app's id can register a device and get a token for it, but never for a user. Existing tokens keep their
            lifetime; a shorter absolute lifetime also applies to existing sessions.
            """,
        positionals: [.app], flags: [registration, access, refresh, reuse, absolute, .json] + Flag.target,
        examples: [
            "Let devices register": "countersign app tokens shop --registration open",
            "Tokens of ten minutes": "countersign app tokens shop --access-seconds 10m",
        ]
    ) { invocation in
        let admin = try invocation.admin()
        var changes: JSONObject = [:]
        for flag in [registration, access, refresh, reuse, absolute] {
            changes[flag.name.replacing("-", with: "_")] = try invocation.json(of: flag)
        }
        let rules =
            changes.isEmpty
            ? try await admin.get("apps", invocation.app, "token-rules").body
            : try await admin.change("apps", invocation.app, "token-rules") { $0.merge(changes) { $1 } }
        if let absolute = rules["absolute_seconds"].integer, let refresh = rules["refresh_seconds"].integer,
            absolute < refresh
        {
            invocation.io.say(
                "Every session ends \(Quantity.text(seconds: absolute)) after it was opened, so --refresh-seconds (\(Quantity.text(seconds: refresh))) has no effect."
            )
        }
        try invocation.printTable(
            rules,
            [
                "registration": "registration", "access": Column { $0["access_seconds"].duration },
                "refresh": Column { $0["refresh_seconds"].duration },
                "reuse": Column { $0["reuse_seconds"].duration },
                "absolute": Column { $0["absolute_seconds"].duration },
            ])
    }
}
