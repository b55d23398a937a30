internal import CountersignCore

/// `countersign profile …`: remote gateways and their API tokens.
enum ProfileCommand {
    static let commands = [add, show, list, use, delete]

    private static let name = Positional("NAME", completes: .profiles, help: "the profile's name")
    private static let chosen = Positional(
        "NAME", .optional, completes: .profiles, help: "the profile; omit it to use the data directory again")

    private static let add = Command(
        "profile add", summary: "Save a gateway's URL and API token under a name",
        details: """
            The token comes from --token-file, $COUNTERSIGN_TOKEN, a prompt or standard input. A token that the gateway
            rejects is not saved. It is kept in a file that only your account can read (mode 0600). The first profile is used
            at once. Flags take precedence over the environment, then the profile in use, then the data directory.
            """,
        positionals: [name], flags: Flag.connection,
        examples: [
            "A remote gateway":
                "countersign profile add live --server https://collect.example --token-file api-token.txt"
        ]
    ) { invocation in
        guard let url = try invocation.value(of: .server) else {
            throw CommandError(.usage, "--server is missing", hint: "where is the gateway?")
        }
        let name = invocation[name]
        let server = try invocation.server(url)
        var profiles = try Profiles(environment: invocation.io.environment)
        let token = try invocation.apiToken() ?? invocation.secret(of: .tokenFile, asking: "API token")
        do {
            let user = try await RemoteAdmin(server, token: token).get("session").body["user"]
            invocation.io.say(
                "The gateway accepts the token as \(user["name"].shown), \(user["role"].shown).")
        } catch let error as CommandError where error.code == .unavailable {
            invocation.io.say("The token was not checked: \(error.reason).")
        }
        try profiles.add(
            Profile(
                name: name, server: server.url, token: token,
                certificateAuthorityFile: server.certificateAuthorityFile,
                allowsPlainHTTP: server.allowsPlainHTTP))
        invocation.io.say("Saved in \(profiles.path). Next: countersign profile show")
    }

    private static let show = Command(
        "profile show", summary: "Show the gateway or data directory in use, and the user",
        flags: [.json] + Flag.target,
        examples: ["Which gateway, and which user?": "countersign profile show"]
    ) { invocation in
        let admin = try invocation.admin()
        let user = try await admin.get("session").body["user"]
        try invocation.printTable(
            ["place": .string(admin.location), "user": user],
            [
                "location": "place", "name": Column { $0["user"]["name"].shown },
                "role": Column { $0["user"]["role"].shown },
            ])
    }

    private static let list = Command(
        "profile list", summary: "List the profiles; a star marks the one in use", flags: [.json],
        examples: ["Which gateways are known?": "countersign profile list"]
    ) { invocation in
        let profiles = try Profiles(environment: invocation.io.environment)
        let items = profiles.all.map { profile -> JSONValue in
            .object(profile.members.merging(["in_use": .bool(profile.name == profiles.nameInUse)]) { $1 })
        }
        try invocation.printList(
            items, ["": Column { $0["in_use"].isTrue ? "*" : "" }, "NAME": "name", "SERVER": "server"],
            empty: "No profile. Next: countersign profile add NAME --server URL")
    }

    private static let use = Command(
        "profile use", summary: "Make commands work on a profile's gateway, or on the data directory again",
        positionals: [chosen],
        examples: ["On this machine's data again": "countersign profile use"]
    ) { invocation in
        var profiles = try Profiles(environment: invocation.io.environment)
        try profiles.use(invocation.word(of: chosen))
        let location = profiles.inUse?.server ?? "the data directory"
        let variables = ["SERVER", "PROFILE", "DATABASE", "DATA"].map { "COUNTERSIGN_" + $0 }
        let set = variables.filter { invocation.io.variable($0) != nil }
        guard !set.isEmpty else { return invocation.io.say("Commands work on \(location) now.") }
        let names = set.map { "$\($0)" }.joined(separator: " and ")
        let verb = set.count == 1 ? "takes" : "take"
        invocation.io.say("Commands work on \(location) only without \(names), which \(verb) precedence.")
    }

    private static let delete = Command(
        "profile delete", summary: "Delete a profile and its API token",
        details:
            "The gateway still accepts the token: delete it there with `countersign admin token delete`.",
        positionals: [name],
        examples: ["A gateway that no longer exists": "countersign profile delete old"]
    ) { invocation in
        var profiles = try Profiles(environment: invocation.io.environment)
        let name = invocation[name]
        try profiles.delete(name)
        invocation.io.say("Deleted \(name).")
    }
}
