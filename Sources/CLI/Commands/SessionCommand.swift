internal import CountersignCore

enum SessionCommand {
    static let commands = [create, list, revoke]

    private static let id = Positional(
        "SESSION", .optional, completes: .ofApp("sessions"), help: "the session's id, instead of --user")
    private static let user = Flag(
        "user", .text("ID"), completes: .users,
        help: "the user's id, or device:ID for a device that registered itself")
    private static let client = Flag(
        "client", .text("CLIENT"), completes: .ofApp("clients", member: "client_id"),
        help: "only this client may use it")

    private static let create = Command(
        "session create", summary: "Open a session for a user and print its refresh token",
        details: """
            The refresh token is exchanged for access tokens at /oauth/token or /api/refresh_token. You won't see it again: the
            gateway keeps a hash.
            """,
        positionals: [.app], flags: [user, client, .json] + Flag.target,
        examples: ["For one user": "countersign session create shop --user user-1"]
    ) { invocation in
        guard let userID = try invocation.json(of: user) else {
            throw CommandError(.usage, "--user is missing", hint: "such as --user user-1")
        }
        let session = try await invocation.admin().post(
            "apps", invocation.app, "sessions",
            body: ["user": userID, "client": try invocation.json(of: client) ?? .null])
        try invocation.printSecret(
            "refresh_token", of: session,
            notice: "Opened the session \(session["id"].shown). Its refresh token, shown only once:")
    }

    private static let list = Command(
        "session list", summary: "List an app's sessions, most recently opened first",
        details: "At most 1000. Sessions are listed for up to 30 days after they expire.",
        positionals: [.app], flags: [user, .json] + Flag.target,
        examples: ["Where is this user logged in?": "countersign session list shop --user user-1"]
    ) { invocation in
        try invocation.printList(
            try await invocation.admin().items(
                "apps", invocation.app, "sessions",
                query: [("user", try invocation.value(of: user))], limit: 1_000),
            [
                "SESSION": "id",
                "STATE": Column { session in
                    session["state"].shown
                        + (session["reason"].text.map { "_" + TerminalText.safe($0) } ?? "")
                },
                "USER": "user", "LAST USED": "last_used_ms", "REFRESHES": "refreshes",
                "CLIENT": Column { TerminalText.safe($0["client"].text ?? "") },
            ], empty: "No session.")
    }

    private static let revoke = Command(
        "session revoke", summary: "End a session, or all sessions of a user",
        details: "Refresh tokens and access tokens are rejected from then on.",
        positionals: [.app, id], flags: [user] + Flag.target,
        examples: ["Log a user out everywhere": "countersign session revoke shop --user user-1"]
    ) { invocation in
        switch (invocation.word(of: id), try invocation.value(of: user)) {
        case (let id?, nil):
            try await invocation.admin().delete("apps", invocation.app, "sessions", id)
            invocation.io.say("Ended the session \(id).")
        case (nil, let userID?):
            let count = try await invocation.admin().delete(
                "apps", invocation.app, "sessions", query: [("user", userID)])["ended"]
            invocation.io.say("Ended \(count.counted("session")) of \(userID).")
        default:
            throw CommandError(.usage, "give a session's id, or --user")
        }
    }
}
