internal import CountersignCore
internal import CountersignGateway
internal import Foundation

/// `countersign admin …`.
enum AdminCommand {
    static let commands = [reset, createToken, listTokens, deleteToken]

    private static let name = Flag("name", .text("TEXT"), default: "cli", help: "what the token is for")
    private static let scopes = Flag(
        "scopes", .text("NAMES"), default: "read", help: "separated by commas: read, write, admin")
    private static let days = Flag(
        "days", .integer("DAYS", 1...3_650), help: "how long it is good; else for ever")
    private static let tokenID = Positional(
        "TOKEN", help: "the token's id, as `countersign admin token list` prints it")

    private static let reset = Command(
        "admin reset", summary: "Print a one-time link that makes an owner or sets an owner's new password",
        details: """
            For the first sign-in, and when nobody can sign in any more. The link is good once, for 30 minutes; a link made
            before is void. Whoever can write the data directory may do this: protect it.
            """,
        flags: [.url, .data],
        examples: [.init("Nobody knows the password", "countersign admin reset")]
    ) { invocation in
        let data = try invocation.dataDirectory()
        let token = try invocation.appDirectory().makeSetupToken(
            at: Int64(Date().timeIntervalSince1970 * 1000))
        let url = try invocation.value(of: .url) ?? RunningGateway.url(of: data) ?? "http://127.0.0.1:8787"
        invocation.io.say("For the data directory \(data); good once, for 30 minutes:")
        try invocation.io.print("\(url)/admin/#/setup/\(token)")
        return .done
    }

    private static let createToken = Command(
        "admin token create", summary: "Make a token for the admin API and print it",
        details: "It goes into Authorization: Bearer. Shown only now: the data directory keeps a hash.",
        flags: [name, scopes, days, .data],
        examples: [.init("For a script that reads", "countersign admin token create --name report --days 30")]
    ) { invocation in
        let expires = try invocation.integer(of: days).map {
            Int64((Date().timeIntervalSince1970 + Double($0) * 86_400) * 1000)
        }
        let made = try invocation.appDirectory().createAdminToken(
            name: try invocation.value(of: name) ?? "cli",
            scopes: (try invocation.value(of: scopes) ?? "read").split(separator: ",").map(String.init),
            expiresMilliseconds: expires)
        invocation.io.say("The token \(made.entry.id), shown only now:")
        try invocation.io.print(made.text)
        return .done
    }

    private static let listTokens = Command(
        "admin token list", summary: "List the tokens of the admin API", flags: [.json, .data],
        examples: [.init("Which programs may ask?", "countersign admin token list")]
    ) { invocation in
        let tokens = try invocation.appDirectory().adminTokens()
        func time(_ milliseconds: Int64?) -> String {
            milliseconds.map { RFC3339.text(milliseconds: $0) } ?? "-"
        }
        if invocation.isSet(.json) {
            try invocation.io.print(
                .array(
                    tokens.map { token in
                        [
                            "id": .string(token.id), "name": .string(token.name),
                            "scopes": .array(token.scopes.map { .string($0) }),
                            "created_ms": .integer(token.createdMilliseconds),
                            "last_used_ms": token.usedMilliseconds.map { .integer($0) } ?? .null,
                            "expires_ms": token.expiresMilliseconds.map { .integer($0) } ?? .null,
                        ]
                    }))
            return .done
        }
        if tokens.isEmpty { invocation.io.say("No token. Next: countersign admin token create") }
        var table = TextTable()
        table.add("TOKEN", "NAME", "SCOPES", "USED", "EXPIRES")
        for token in tokens {
            table.add(
                token.id, TerminalText.safe(token.name), token.scopes.joined(separator: ","),
                time(token.usedMilliseconds), time(token.expiresMilliseconds))
        }
        for line in tokens.isEmpty ? [] : table.lines { try invocation.io.print(line) }
        return .done
    }

    private static let deleteToken = Command(
        "admin token delete", summary: "Delete a token of the admin API; it is refused from then on",
        positionals: [tokenID], flags: [.data],
        examples: [
            .init(
                "The oldest one",
                "countersign admin token delete $(countersign admin token create >/dev/null; countersign admin token list | awk 'NR==2 {print $1}')"
            )
        ]
    ) { invocation in
        let id = invocation.requiredWord(of: tokenID)
        try invocation.appDirectory().deleteAdminToken(id: id)
        invocation.io.say("Deleted \(id).")
        return .done
    }
}
