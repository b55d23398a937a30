internal import CountersignCore
internal import CountersignGateway

/// `countersign app tokens`.
enum AppTokensCommand {
    static let commands = [tokens]

    private static let app = Positional("APP", help: "the app's id")
    private static let registration = Flag(
        "registration", .choice(["open", "closed"]), help: "whether devices may register at /api/register")
    private static let access = Flag(
        "access-seconds", .integer("SECONDS", TokenRules.accessRange), help: "how long an access token lives")
    private static let refresh = Flag(
        "refresh-seconds", .integer("SECONDS", TokenRules.refreshRange),
        help: "how long a session lives without being used")
    private static let reuse = Flag(
        "reuse-seconds", .integer("SECONDS", TokenRules.reuseRange),
        help: "how long an exchanged refresh token still gets the active one")

    private static let tokens = Command(
        "app tokens", summary: "Print or set how the gateway issues an app's tokens",
        details: """
            Without a flag it prints the rules. Registration is closed at first: where it is open, anybody who knows the
            app's id gets a token for a device of their own, though never for a user. Tokens that exist keep their lifetime.
            """,
        positionals: [app], flags: [registration, access, refresh, reuse, .json, .data],
        examples: [
            .init("Let devices register", "countersign app tokens shop --registration open"),
            .init("Tokens of ten minutes", "countersign app tokens shop --access-seconds 600"),
        ]
    ) { invocation in
        let appID = invocation.requiredWord(of: app)
        let directory = try invocation.appDirectory()
        let before = try directory.tokenRules(of: appID)
        var rules = before
        if let word = try invocation.value(of: registration) { rules.allowsRegistration = word == "open" }
        if let seconds = try invocation.integer(of: access) { rules.accessSeconds = seconds }
        if let seconds = try invocation.integer(of: refresh) { rules.refreshSeconds = seconds }
        if let seconds = try invocation.integer(of: reuse) { rules.reuseSeconds = seconds }
        if rules != before { try directory.setTokenRules(rules, for: appID) }
        let word = rules.allowsRegistration ? "open" : "closed"
        if invocation.isSet(.json) {
            try invocation.io.print([
                "app": .string(appID), "registration": .string(word),
                "access_seconds": .integer(Int64(rules.accessSeconds)),
                "refresh_seconds": .integer(Int64(rules.refreshSeconds)),
                "reuse_seconds": .integer(Int64(rules.reuseSeconds)),
            ])
            return .done
        }
        var table = TextTable()
        table.add("registration", word)
        table.add("access", "\(rules.accessSeconds) s")
        table.add("refresh", "\(rules.refreshSeconds) s")
        table.add("reuse", "\(rules.reuseSeconds) s")
        for line in table.lines { try invocation.io.print(line) }
        return .done
    }
}
