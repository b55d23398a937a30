internal import CountersignCore
internal import GatewayModel

enum AppCommand {
    static let commands = [create, list, show, delete]

    private static let id = Positional(
        "APP", help: "the app's id: 1 to 64 lower-case letters, digits, - and _")
    private static let name = Flag("name", .text("TEXT"), help: "display name; the id by default")

    private static let create = Command(
        "app create", summary: "Create an app and print its write key",
        details: """
            The write key goes into the client; `countersign write-key list` prints it again.
            A new app's enforcement is disabled: events are stored without checking tokens.
            """,
        positionals: [id], flags: [name] + Flag.target,
        examples: ["A first app": "countersign app create blog --name 'Our blog'"]
    ) { invocation in
        let id = invocation[AppCommand.id]
        let allowed = Set("abcdefghijklmnopqrstuvwxyz0123456789-_")
        guard (1...64).contains(id.utf8.count), id.allSatisfy(allowed.contains), !id.hasPrefix("-") else {
            throw CommandError(
                .usage,
                "an app's id must have 1 to 64 lower-case letters, digits, - and _, and must not begin with -: not "
                    + "'\(TerminalText.safe(id))'",
                hint: "give its display name with --name")
        }
        let admin = try invocation.admin(makingData: true)
        let made = try await admin.post(
            "apps", body: ["id": .string(id), "name": try invocation.json(of: name) ?? .null])
        let app = made["app"]["id"].shown
        invocation.io.say("Created the app \(app) in \(admin.location).")
        invocation.io.say("Its write key:")
        try invocation.io.print(made["write_key"].shown)
        invocation.io.say("Next: countersign key add \(app) public.pem")
    }

    private static let list = Command(
        "app list", summary: "List the apps", flags: [.json] + Flag.target,
        examples: ["Which apps are there?": "countersign app list"]
    ) { invocation in
        let admin = try invocation.admin()
        try invocation.printList(
            try await admin.items("apps"),
            ["APP": "id", "ENFORCEMENT": "enforcement", "KEYS": "keys", "NAME": "name"],
            empty: "No app in \(admin.location). Next: countersign app create shop")
        for deletion in try await admin.items("app-deletions")
        where deletion["erased_ms"] == .null || !TriggerApp.isOne(deletion["app"].shown) {
            invocation.io.say(state(of: deletion))
        }
    }

    private static func state(of deletion: JSONValue) -> String {
        let app = deletion["app"].shown
        guard deletion["erased_ms"] != .null else {
            return "\(app) is being deleted, since \(deletion["requested_ms"].time)."
        }
        return "\(app) was deleted; its id can be used again from \(deletion["free_ms"].time) on."
    }

    private static let delete = Command(
        "app delete", summary: "Delete an app and all its data",
        details: """
            Its keys, write keys, settings, clients and sessions stop working at once. Its events, customers and counts are
            removed in the background while a gateway runs; `countersign app list` shows when that is done. It cannot be
            undone. Backups and the audit log are not changed. The id can be used again a minute later, or a day if
            the gateway issued tokens for the app: by then they have expired.
            """,
        positionals: [.app], flags: [.confirm, .json] + Flag.target,
        examples: ["Without being asked": "countersign app delete shop --confirm shop"]
    ) { invocation in
        let id = invocation.app
        let admin = try invocation.admin()
        // Throws `notFound` for a mistyped id before asking for confirmation.
        _ = try await admin.get("apps", id)
        try invocation.confirm(to: "delete the app in \(admin.location)")
        let deletion = try await admin.deleteApp(id)
        try invocation.print(deletion) {
            invocation.io.say(
                "Deleted \(id) in \(admin.location). Nothing is accepted for it any more; its data is removed in the background."
            )
        }
    }

    private static let show = Command(
        "app show", summary: "Show an app, its token rules and its keys",
        details: "With --json, policy is as `policy show` and verification_keys as `key list` prints it.",
        positionals: [.app], flags: [.json] + Flag.target,
        examples: ["Which rules apply to this app?": "countersign app show shop"]
    ) { invocation in
        let admin = try invocation.admin()
        let id = invocation.app
        let app = try await admin.get("apps", id).body
        let plan = try await admin.get("apps", id, "enforcement").body
        let policy = try await admin.get("apps", id, "policy").body
        let keys = try await admin.items("apps", id, "keys")
        if invocation.printsJSON {
            let more: JSONObject = [
                "policy": policy, "ramp_percent": plan["ramp_percent"], "verification_keys": .array(keys),
            ]
            return try invocation.io.print(.object((app.members ?? [:]).merging(more) { $1 }))
        }
        var table = TextTable()
        table.add("app", app["id"].shown)
        table.add("name", app["name"].shown)
        table.add("enforcement", EnforcementCommand.stated(plan))
        table.add("algorithms", policy["algorithms"].joined(" "))
        table.add("leeway", policy["leeway_seconds"].duration)
        table.add("created", app["created_ms"].time(from: invocation.io.now))
        for key in keys {
            table.add("\(key["slot"].shown) key", key["id"].shown, key["description"].shown)
        }
        try invocation.io.print(table)
    }
}
