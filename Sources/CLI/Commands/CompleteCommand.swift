/// `countersign complete`: returns candidates to the completion scripts.
enum CompleteCommand {
    private static let kind = Positional(
        "KIND", choices: ["apps", "keys", "users", "profiles"], help: "apps, keys, users or profiles")
    private static let app = Positional("APP", .optional, help: "the app whose keys or users are listed")
    /// The number of recent events from which users are suggested.
    private static let newest = 200

    static let command = Command(
        "complete", summary: "Print ids for shell completion, one per line",
        details: """
            From the data directory or the profile in use. The scripts of `countersign completion` call it to complete an
            id. Users are those of an app's newest events, as in `event list`: pseudonyms if a remote gateway's token has only
            the scope read, which filters accept too.
            """,
        positionals: [kind, app], flags: Flag.place,
        examples: ["Which apps are offered?": "countersign complete apps"]
    ) { invocation in
        let ids: [String]
        switch invocation[kind] {
        case "apps": ids = try await invocation.admin().items("apps").map(\.["id"].shown)
        case "keys", "users":
            guard let app = invocation.word(of: app) else {
                throw CommandError(.usage, "\(invocation[kind]) of which app?")
            }
            if invocation[kind] == "users" {
                let events = try await invocation.admin().items("apps", app, "events", limit: newest)
                ids = Set(events.compactMap(\.["user_id"].text)).map { TerminalText.safe($0) }.sorted()
                break
            }
            ids = try await invocation.admin().items("apps", app, "keys").map(\.["id"].shown)
        default: ids = try Profiles(environment: invocation.io.environment).all.map(\.name)
        }
        for id in ids { try invocation.io.print(id) }
    }
}
