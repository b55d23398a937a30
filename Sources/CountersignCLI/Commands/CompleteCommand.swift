/// `countersign complete`: what the completion scripts ask for.
enum CompleteCommand {
    private static let kind = Positional(
        "KIND", choices: ["apps", "keys", "profiles"], help: "apps, keys or profiles")
    private static let app = Positional("APP", .optional, help: "the app whose keys are listed")

    static let command = Command(
        "complete", summary: "Print ids for a shell's completion, one a line",
        details: """
            Where commands work: the data directory, or the profile in use. The scripts of `countersign completion` call it
            when an app's or a key's id is to be typed. Users' ids are not offered: they would stand in the terminal.
            """,
        positionals: [kind, app], flags: Flag.place,
        examples: ["Which apps are offered?": "countersign complete apps"]
    ) { invocation in
        let ids: [String]
        switch invocation[kind] {
        case "apps": ids = try await invocation.admin().items("apps").map(\.["id"].shown)
        case "keys":
            guard let app = invocation.word(of: app) else { throw CommandError(.usage, "keys of which app?") }
            ids = try await invocation.admin().items("apps", app, "keys").map(\.["id"].shown)
        default: ids = try Profiles(environment: invocation.io.environment).all.map(\.name)
        }
        for id in ids { try invocation.io.print(id) }
    }
}
