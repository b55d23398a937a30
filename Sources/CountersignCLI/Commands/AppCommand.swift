internal import CountersignCore

/// `countersign app …`.
enum AppCommand {
    static let commands = [create, list, show]

    private static let id = Positional(
        "APP", help: "the app's id: 1 to 64 lower-case letters, digits, - and _")
    private static let name = Flag("name", .text("TEXT"), help: "what people call it; the id when not given")

    private static let create = Command(
        "app create", summary: "Make an app and print its write key",
        details: """
            The write key goes into the client. You won't see it again: the gateway keeps a hash.
            A new app's enforcement is disabled: events are stored without checking tokens.
            """,
        positionals: [id], flags: [name] + Flag.place,
        examples: ["A first app": "countersign app create blog --name 'Our blog'"]
    ) { invocation in
        let admin = try invocation.admin(makingData: true)
        let made = try await admin.post(
            "apps",
            body: [
                "id": .string(invocation[id]),
                "name": try invocation.value(of: name).map { .string($0) } ?? .null,
            ])
        let app = made["app"]["id"].shown
        invocation.io.say("Made the app \(app) in \(admin.place).")
        invocation.io.say("Its write key, shown only once:")
        try invocation.io.print(made["write_key"].shown)
        invocation.io.say("Next: countersign key add \(app) public.pem")
    }

    private static let list = Command(
        "app list", summary: "List the apps", flags: [.json] + Flag.place,
        examples: ["Which apps are there?": "countersign app list"]
    ) { invocation in
        let admin = try invocation.admin()
        try invocation.printList(
            try await admin.items("apps"),
            ["APP": "id", "ENFORCEMENT": "enforcement", "KEYS": "keys", "NAME": "name"],
            empty: "No app in \(admin.place). Next: countersign app create shop")
    }

    private static let show = Command(
        "app show", summary: "Show an app, its rules for tokens and its keys",
        details: "With --json the app alone; `policy show` and `key list` have the rest.",
        positionals: [id], flags: [.json] + Flag.place,
        examples: ["How is this app judged?": "countersign app show shop"]
    ) { invocation in
        let admin = try invocation.admin()
        let id = invocation[id]
        let app = try await admin.get("apps", id).body
        if invocation.isSet(.json) {
            try invocation.io.print(app)
            return
        }
        let policy = try await admin.get("apps", id, "policy").body
        var table = TextTable()
        table.add("app", app["id"].shown)
        table.add("name", app["name"].shown)
        table.add("enforcement", app["enforcement"].shown)
        table.add("algorithms", policy["algorithms"].joined(" "))
        table.add("leeway", "\(policy["leeway_seconds"].shown) s")
        table.add("made", app["created_ms"].time)
        for key in try await admin.items("apps", id, "keys") {
            table.add("\(key["slot"].shown) key", key["id"].shown, key["description"].shown)
        }
        try invocation.io.print(table)
    }
}
