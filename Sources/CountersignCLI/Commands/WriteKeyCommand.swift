internal import CountersignCore

/// `countersign write-key …`.
enum WriteKeyCommand {
    static let commands = [create, list, delete]

    private static let key = Positional(
        "KEY", help: "the write key's id, as `countersign write-key list` prints it")
    private static let description = Flag("description", .text("TEXT"), help: "what the write key is for")

    private static let create = Command(
        "write-key create", summary: "Create a write key for an app and print it",
        details: """
            A client sends it with its events, so that the gateway knows the app. It is shown only once: the gateway keeps a
            hash. An app may have several: create a new one, release a client with it, and delete the old one when it is no
            longer used.
            """,
        positionals: [.app], flags: [description, .json] + Flag.place,
        examples: [
            "One for the next release": "countersign write-key create shop --description 'from 2.0 on'"
        ]
    ) { invocation in
        let made = try await invocation.admin().post(
            "apps", invocation.app, "write-keys",
            body: ["description": .string(try invocation.value(of: description) ?? "")])
        try invocation.printSecret(
            "write_key", of: made, notice: "The write key \(made["id"].shown), shown only once:")
    }

    private static let list = Command(
        "write-key list", summary: "List an app's write keys and when each was last used",
        positionals: [.app], flags: [.json] + Flag.place,
        examples: ["Is the old one still used?": "countersign write-key list shop"]
    ) { invocation in
        try invocation.printList(
            try await invocation.admin().items("apps", invocation.app, "write-keys"),
            [
                "KEY": "id", "BEGINS": Column { $0["prefix"] == .null ? "-" : $0["prefix"].shown + "…" },
                "CREATED": "created_ms", "LAST USED": "last_used_ms", "DESCRIPTION": "description",
            ],
            empty: "No write key, so nobody can send. Next: countersign write-key create \(invocation.app)")
    }

    private static let delete = Command(
        "write-key delete", summary: "Delete a write key; requests with it are refused from then on",
        positionals: [.app, key], flags: Flag.place,
        examples: [
            "The one that nobody uses any more": "countersign write-key delete shop 05188a308f089ab7"
        ]
    ) { invocation in
        let (app, id) = (invocation.app, invocation[key])
        try await invocation.admin().delete("apps", app, "write-keys", id)
        invocation.io.say("Deleted \(id).")
    }
}
