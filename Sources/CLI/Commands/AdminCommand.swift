internal import CountersignCore
internal import CountersignGateway
internal import Foundation
internal import GatewayStorage

enum AdminCommand {
    static let commands =
        [reset, secondFactor, createToken, listTokens, deleteToken] + AdminUserCommand.commands

    private static let name = Flag("name", .text("TEXT"), default: "cli", help: "what the token is for")
    private static let scopes = Flag(
        "scopes", .text("NAMES"), default: "read",
        help: "comma-separated: read, write, admin; or just reader")
    private static let readerApp = Flag(
        "app", .text("APP"), completes: .apps, help: "the app whose events a reader token may read")
    private static let days = Flag(
        "days", .duration(.days, 0...3_650), default: "90", help: "when it expires; 0: never")
    private static let tokenID = Positional(
        "TOKEN", completes: .list("tokens"),
        help: "the token's id, as `countersign admin token list` prints it")

    private static let gateway = Flag(
        "gateway", .text("URL"),
        help:
            "the dashboard's URL for operators; default: the public-url of the running gateway"
    )

    private static let reset = Command(
        "admin reset", summary: "Print a one-time link that creates an owner or sets an owner's new password",
        details: """
            For the first sign-in, or when all owners have lost their passwords. The link works once, within 30 minutes, and
            replaces any earlier link. It also removes that user's second factor. Every account that can write to the data
            directory can do this: protect it.
            """,
        flags: [gateway] + Flag.local,
        examples: ["Lost the password?": "countersign admin reset"]
    ) { invocation in
        try invocation.requireDataHere()
        // Throws for a folder without data. No gateway would accept a link for such a folder.
        let location = try invocation.locationWithData()
        let token = try location.open().openControl(as: .account).admins.makeSetupToken(
            at: Milliseconds(Date()).count)
        let running = try location.runningGateway()
        let local = running?.adminURL ?? "http://127.0.0.1:8787"
        let url = try invocation.value(of: gateway) ?? running?.dashboardURL ?? local
        invocation.io.say("For \(location); it works once, within 30 minutes:")
        try invocation.io.print("\(url)/admin/#/setup/\(token)")
        if url != local { invocation.io.say("Through an SSH tunnel: \(local)/admin/#/setup/\(token)") }
    }

    private static let state = Positional(
        "STATE", .optional, choices: ["required", "optional"],
        help: "required or optional; omit it to print the setting")

    private static let secondFactor = Command(
        "admin second-factor",
        summary: "Print or set whether every dashboard user needs a second factor",
        details: """
            Once it is required, users without one must set it up before they can do anything else, even if they are
            already signed in. API tokens are not affected.
            """,
        positionals: [state], flags: [.json] + Flag.target,
        examples: ["Is it required?": "countersign admin second-factor"]
    ) { invocation in
        let admin = try invocation.admin()
        let rules: JSONValue
        if let word = invocation.word(of: state) {
            rules = try await admin.change("sign-in-rules") {
                $0["second_factor_required"] = .bool(word == "required")
            }
        } else {
            rules = try await admin.get("sign-in-rules").body
        }
        try invocation.print(rules) {
            try invocation.io.print(rules["second_factor_required"].isTrue ? "required" : "optional")
        }
    }

    private static let createToken = Command(
        "admin token create", summary: "Create a token for the admin API and print it",
        details: """
            For the --token-file of other commands and for Authorization: Bearer. It is shown only once: the gateway keeps a
            hash. read sees everything that is not secret; write also changes apps, keys and rules; admin also manages
            users, tokens and backups. reader with --app reads the events of that app through /v1/apps/APP/events and
            consumers, and nothing else.
            """,
        flags: [name, scopes, readerApp, days, .json] + Flag.target,
        examples: ["For a script that reads": "countersign admin token create --name report --days 30"]
    ) { invocation in
        let days = Double(try invocation.integer(of: days) ?? 0)
        let expires = days > 0 ? Milliseconds(Date().addingTimeInterval(days * 86_400)).count : nil
        let scopes = (try invocation.value(of: scopes) ?? "read").split(separator: ",")
        let made = try await invocation.admin().post(
            "tokens",
            body: [
                "name": try invocation.json(of: name) ?? .null,
                "scopes": .array(scopes.map { .string(String($0)) }),
                "app": try invocation.json(of: readerApp) ?? .null,
                "expires_ms": expires.map { .integer($0) } ?? .null,
            ])
        let end = expires == nil ? "it never expires" : "it expires at \(made["expires_ms"].time)"
        try invocation.printSecret(
            "token", of: made, notice: "The token \(made["id"].shown), shown only once; \(end):")
    }

    private static let listTokens = Command(
        "admin token list", summary: "List the admin API's tokens", flags: [.json] + Flag.target,
        examples: ["Which programs have access?": "countersign admin token list"]
    ) { invocation in
        try invocation.printList(
            try await invocation.admin().items("tokens"),
            [
                "TOKEN": "id", "NAME": "name", "SCOPES": "scopes", "APP": "app", "LAST USED": "last_used_ms",
                "EXPIRES": Column(time: "expires_ms", missing: "never"),
            ],
            empty: "No token. Next: countersign admin token create")
    }

    private static let deleteToken = Command(
        "admin token delete", summary: "Delete an admin API token; it is rejected from then on",
        positionals: [tokenID], flags: Flag.target,
        examples: [
            "Delete a listed token": "countersign admin token delete 4f1d9c02ab73"
        ]
    ) { invocation in
        let id = invocation[tokenID]
        try await invocation.admin().delete("tokens", id)
        invocation.io.say("Deleted \(id).")
    }
}
