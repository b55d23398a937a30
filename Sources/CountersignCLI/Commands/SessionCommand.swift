internal import CountersignCore
internal import CountersignGateway
internal import Foundation

/// `countersign session …`.
enum SessionCommand {
    static let commands = [create, list, revoke]

    private static let app = Positional("APP", help: "the app's id")
    private static let id = Positional(
        "SESSION", .optional, help: "the session's id, instead of --app and --user")
    private static let user = Flag(
        "user", .text("ID"), help: "the user's id, or device: and the id of a device that registered itself")
    private static let client = Flag("client", .text("CLIENT"), help: "the client that alone may use it")
    private static let ofApp = Flag("app", .text("APP"), help: "the app whose user's sessions are ended")

    private static let create = Command(
        "session create", summary: "Open a session for a user and print its refresh token",
        details: """
            The refresh token is exchanged for access tokens at /oauth/token or /api/refresh_token. It is shown only now: the
            data directory keeps a hash.
            """,
        positionals: [app], flags: [user, client, .json, .data],
        examples: [.init("For one user", "countersign session create shop --user user-1")]
    ) { invocation in
        guard let userID = try invocation.value(of: user) else {
            throw CommandError(.usage, "--user is missing", hint: "whose session is it?")
        }
        let opened = try invocation.sessionDirectory().open(
            for: userID, of: invocation.requiredWord(of: app), clientID: invocation.value(of: client))
        if invocation.isSet(.json) {
            var members = opened.session.members
            members["refresh_token"] = .string(opened.refreshToken)
            try invocation.io.print(.object(members))
            return .done
        }
        invocation.io.say("Opened the session \(opened.session.id). Its refresh token, shown only now:")
        try invocation.io.print(opened.refreshToken)
        return .done
    }

    private static let list = Command(
        "session list", summary: "List an app's sessions, the one used last first",
        details: "At most 1000. A session can be listed for 30 days after it would have expired.",
        positionals: [app], flags: [user, .json, .data],
        examples: [.init("Where is this user logged in?", "countersign session list shop --user user-1")]
    ) { invocation in
        let sessions = try invocation.sessionDirectory().sessions(
            of: invocation.requiredWord(of: app), subject: invocation.value(of: user))
        if invocation.isSet(.json) {
            try invocation.io.print(.array(sessions.map { .object($0.members) }))
            return .done
        }
        if sessions.isEmpty { invocation.io.say("No session.") }
        var table = TextTable(rightAligned: [4])
        table.add("SESSION", "STATE", "SUBJECT", "USED", "REFRESHES", "CLIENT")
        for session in sessions {
            table.add(
                session.id, session.state, session.subject,
                RFC3339.text(milliseconds: session.usedMilliseconds), String(session.generation),
                session.clientID ?? "")
        }
        for line in sessions.isEmpty ? [] : table.lines { try invocation.io.print(line) }
        return .done
    }

    private static let revoke = Command(
        "session revoke", summary: "End a session, or all sessions of a user",
        details:
            "Refresh tokens and access tokens are refused from then on; a running gateway knows within a second.",
        positionals: [id], flags: [ofApp, user, .data],
        examples: [
            .init("Log a user out everywhere", "countersign session revoke --app shop --user user-1")
        ]
    ) { invocation in
        let directory = try invocation.sessionDirectory()
        let (appID, userID) = (try invocation.value(of: ofApp), try invocation.value(of: user))
        switch (invocation.word(of: id), appID, userID) {
        case (let id?, nil, nil):
            try directory.revoke(id: id)
            invocation.io.say("Ended the session \(id).")
        case (nil, let appID?, let userID?):
            let count = try directory.revokeAll(of: userID, in: appID)
            invocation.io.say("Ended \(count) \(count == 1 ? "session" : "sessions") of \(userID).")
        default:
            throw CommandError(.usage, "give a session's id, or --app and --user")
        }
        return .done
    }
}

extension Invocation {
    /// The sessions of the data directory.
    func sessionDirectory() throws -> SessionDirectory {
        try SessionDirectory(dataDirectory: try dataDirectory())
    }
}

extension Session {
    fileprivate var state: String {
        if let revocation { return "revoked_\(revocation.rawValue)" }
        return isActive(atMilliseconds: Int64(Date().timeIntervalSince1970 * 1000)) ? "active" : "expired"
    }

    /// The session as commands print it with `--json`.
    fileprivate var members: [String: JSONValue] {
        [
            "id": .string(id), "app": .string(appID), "subject": .string(subject),
            "client_id": clientID.map { .string($0) } ?? .null, "scope": .string(scope),
            "state": .string(state), "refreshes": .integer(Int64(generation)),
            "created_ms": .integer(createdMilliseconds), "used_ms": .integer(usedMilliseconds),
            "expires_ms": .integer(expiresMilliseconds),
            "revoked_ms": revokedMilliseconds.map { .integer($0) } ?? .null,
        ]
    }
}
