internal import CountersignCore

enum CustomerCommand {
    static let commands = [show, delete]

    private static let id = Positional("ID", completes: .users, help: "the user id or the pseudonym")
    private static let kind = Flag(
        "id-name", .text("NAME"), default: "registered",
        help: "which id it is: registered is the user id, cookie an anonymous or device id")

    private static let show = Command(
        "customer show", summary: "Print everything an app stores about a person",
        details: """
            Prints ids, properties and the number of events; `countersign event export` prints the events. With --server it
            needs the scope write, and the look-up is audited.
            """,
        positionals: [.app, id], flags: [kind, .json] + Flag.target,
        examples: ["A request for access (GDPR, article 15)": "countersign customer show shop user-1"]
    ) { invocation in
        let customer = try await invocation.admin().get(
            "apps", invocation.app, "customers", invocation[id],
            query: [("id_name", try invocation.value(of: kind))]
        ).body
        try invocation.print(customer) {
            var table = TextTable()
            for id in customer["ids"].elements { table.add(id["name"].shown, id["value"].shown) }
            for property in customer["properties"].elements {
                table.add(property["name"].shown, property["value"].shownJSON)
            }
            try invocation.io.print(table)
            if customer["more_properties"].isTrue { try invocation.io.print("There are more properties.") }
            let seen = customer["seen_ms"] == .null ? "" : ", last seen \(customer["seen_ms"].time)"
            try invocation.io.print("\(customer["events"].counted("event"))\(seen).")
        }
    }

    private static let delete = Command(
        "customer delete", summary: "Delete a person's profile, events and sessions",
        details: """
            For a request under the GDPR, article 17: the profile, the user's events, those that devices listed by
            `countersign customer show` (the newest 64) sent anonymously, samples of failed requests, App Inbox messages
            to that person, and sessions. It cannot be undone.
            Backups and earlier entries of the audit log are not changed; the deletion itself is audited under the
            pseudonym. Events that the app still sends are stored again.
            """,
        positionals: [.app, id], flags: [kind, .yes, .json] + Flag.target,
        examples: ["Forget a person": "countersign customer delete shop user-1 --yes"]
    ) { invocation in
        let admin = try invocation.admin()
        _ = try await admin.get("apps", invocation.app)
        try invocation.requireYes("Deleting \(invocation[id]) of \(invocation.app) in \(admin.location)")
        let done = try await admin.delete(
            "apps", invocation.app, "customers", invocation[id],
            query: [("id_name", try invocation.value(of: kind))])
        try invocation.print(done) {
            let profile = done["profile"].isTrue ? "the profile" : "no profile"
            invocation.io.say(
                "Deleted \(profile), \(done["events"].counted("event")), \(done["samples"].counted("sample")) and \(done["inbox_messages"].counted("App Inbox message")); ended \(done["sessions"].counted("session"))."
            )
        }
    }
}
