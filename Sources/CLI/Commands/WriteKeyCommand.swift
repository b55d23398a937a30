internal import CountersignCore

enum WriteKeyCommand {
    static let commands = [create, list, delete]

    private static let key = Positional(
        "KEY", completes: .ofApp("write-keys"),
        help: "the write key's id, as `countersign write-key list` prints it")
    private static let description = Flag("description", .text("TEXT"), help: "what the write key is for")

    private static let create = Command(
        "write-key create", summary: "Create a write key for an app and print it",
        details: """
            A client sends it with its events to identify the app. It is not a secret: it ships in every copy of
            the client. An app may have several: create a new one, release a client with it, and delete the old one when it
            is no longer used.
            """,
        positionals: [.app], flags: [description, .json] + Flag.target,
        examples: [
            "One for the next release": "countersign write-key create shop --description 'from 2.0 on'"
        ]
    ) { invocation in
        let made = try await invocation.admin().post(
            "apps", invocation.app, "write-keys",
            body: ["description": try invocation.json(of: description) ?? ""])
        try invocation.printSecret("write_key", of: made, notice: "The write key \(made["id"].shown):")
    }

    private static let list = Command(
        "write-key list", summary: "List an app's write keys and when each was last used",
        details: """
            A key that ends in … is shown in part: it was created by a version that stored only its hash, or the API token may
            only read. On a data directory the last use may be five minutes old. If none is stored, it is shown as unknown here;
            --server shows what the running gateway has.
            """,
        positionals: [.app], flags: [.json] + Flag.target,
        examples: ["Is the old one still used?": "countersign write-key list shop"]
    ) { invocation in
        let admin = try invocation.admin()
        let unused = admin is LocalAdmin ? "unknown here" : "never"
        try invocation.printList(
            try await admin.items("apps", invocation.app, "write-keys"),
            [
                "ID": "id", "WRITE KEY": Column { text(of: $0) }, "CREATED": "created_ms",
                "LAST USED": Column(time: "last_used_ms", missing: unused),
                "DESCRIPTION": "description",
            ],
            empty: "No write key, so no app can send. Next: countersign write-key create \(invocation.app)")
    }

    private static let delete = Command(
        "write-key delete", summary: "Delete a write key; requests with it are rejected from then on",
        details: """
            Deleting the app's last write key, or one that was used within 30 days, must be confirmed. On a data directory,
            this also applies to a key without a stored use.
            """,
        positionals: [.app, key], flags: [.yes] + Flag.target,
        examples: [
            "A key that is no longer used": "countersign write-key delete --yes shop 05188a308f089ab7"
        ]
    ) { invocation in
        let (app, id) = (invocation.app, invocation[key])
        let admin = try invocation.admin()
        do {
            try await admin.delete("apps", app, "write-keys", id)
        } catch let error as CommandError where error.problem == "confirmation_required" {
            let reason = error.reason.split(separator: ";").first.map(String.init) ?? error.reason
            try invocation.requireYes("Deleting the write key \(id) of \(app): \(reason)")
            try await admin.delete("apps", app, "write-keys", id, query: [("confirm", id)])
        }
        invocation.io.say("Deleted \(id).")
    }

    /// A write key, or its prefix followed by … if the gateway does not return the whole key.
    private static func text(of key: JSONValue) -> String {
        if key["write_key"] != .null { return key["write_key"].shown }
        return key["prefix"] == .null ? "-" : key["prefix"].shown + "…"
    }
}
