internal import CountersignCore

/// `countersign write-key …`.
enum WriteKeyCommand {
    static let commands = [create, list, delete]

    private static let key = Positional(
        "KEY", help: "the write key's id, as `countersign write-key list` prints it")
    private static let description = Flag("description", .text("TEXT"), help: "what the write key is for")

    private static let create = Command(
        "write-key create", summary: "Make a write key for an app and print it",
        details: """
            A client sends it with its events, so that the gateway knows the app. Shown only now: the gateway keeps a hash.
            An app may have several: make a new one, release the client with it, delete the old one when it is not used.
            """,
        positionals: [.app], flags: [description, .json] + Flag.place,
        examples: [
            .init(
                "One for the next release", "countersign write-key create shop --description 'from 2.0 on'")
        ]
    ) { invocation in
        let made = try await invocation.admin().post(
            "apps", invocation.requiredWord(of: .app), "write-keys",
            body: ["description": .string(try invocation.value(of: description) ?? "")])
        try invocation.printSecret(
            "write_key", of: made, notice: "The write key \(made["id"].shown), shown only now:")
        return .done
    }

    private static let list = Command(
        "write-key list", summary: "List an app's write keys and when each was used last",
        positionals: [.app], flags: [.json] + Flag.place,
        examples: [.init("Is the old one still used?", "countersign write-key list shop")]
    ) { invocation in
        let app = invocation.requiredWord(of: .app)
        try invocation.printList(
            try await invocation.admin().items("apps", app, "write-keys"),
            header: ["KEY", "MADE", "USED", "DESCRIPTION"],
            empty: "No write key, so nobody can send. Next: countersign write-key create \(app)"
        ) { [$0["id"].shown, $0["created_ms"].time, $0["last_used_ms"].time, $0["description"].shown] }
        return .done
    }

    private static let delete = Command(
        "write-key delete", summary: "Delete a write key; what is sent with it is refused from then on",
        positionals: [.app, key], flags: Flag.place,
        examples: [
            .init(
                "The first one",
                "countersign write-key delete shop \"$(countersign write-key list shop | awk 'NR==2 {print $1}')\""
            )
        ]
    ) { invocation in
        let (app, id) = (invocation.requiredWord(of: .app), invocation.requiredWord(of: key))
        try await invocation.admin().deleteAsRead("apps", app, "write-keys", id)
        invocation.io.say("Deleted \(id).")
        return .done
    }
}
