enum AuditCommand {
    static let commands = [list, verify]

    private static let app = Flag("app", .text("APP"), completes: .apps, help: "only changes to this app")
    private static let actor = Flag(
        "actor", .text("NAME"),
        help: "only changes by this actor: a user, token:NAME#ID or cli:ACCOUNT")
    private static let since = Flag(
        "since", .text("TIME"), help: "at or after this time: 2026-11-21T08:30:00Z, or 10m, 2h, 7d ago")
    private static let limit = Flag.limit(default: 50)

    private static let list = Command(
        "audit list", summary: "List what was changed and by whom, newest first",
        details: """
            --json prints one object per line, with the values before and after. A server omits values and hashes for a
            viewer and for a token with only the scope read.
            """,
        flags: [app, actor, since, limit, .json] + Flag.target,
        examples: [
            "What happened lately?": "countersign audit list",
            "Who changed this app?": "countersign audit list --app shop",
        ]
    ) { invocation in
        let since = try invocation.time(of: since) ?? .min
        let entries = try await invocation.admin().items(
            "audit",
            query: [
                ("app", try invocation.value(of: app)), ("actor", try invocation.value(of: actor)),
            ],
            limit: try invocation.integer(of: limit))
        try invocation.printList(
            entries.filter { $0["at_ms"].integer ?? 0 >= since },
            [
                "SEQ": "seq", "TIME": "at_ms", "ACTOR": "actor", "ACTION": "action", "APP": "app",
                "TARGET": "target",
            ], empty: "No entry found.", isLong: true)
    }

    private static let verify = Command(
        "audit verify", summary: "Check that no entry of the audit log was altered or removed",
        details: "Each entry holds the hash of the one before. Exit 3 when the chain is broken.",
        flags: [.json] + Flag.target,
        examples: ["Is the log intact?": "countersign audit verify"]
    ) { invocation in
        let found = try await invocation.admin().get("audit", "verify").body
        if invocation.printsJSON { try invocation.io.print(found) }
        guard found["ok"].isTrue else {
            throw CommandError(
                .verificationFailed, "the audit log is broken at the entry \(found["broken_at"].shown)",
                hint: "the file was altered: compare it with a backup")
        }
        invocation.io.say("Intact: \(found["entries"].counted("entry", "entries")).")
    }
}
