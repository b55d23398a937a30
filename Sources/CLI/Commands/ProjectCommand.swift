internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// `countersign project …`: an app's project in the Bloomreach dialect.
enum ProjectCommand {
    static let commands = [show, set, put, remove, addKey, deleteKey]

    private static let kinds = ["in-app-message", "consent-category", "inbox-message"]
    private static let kind = Positional(
        "KIND", choices: kinds, help: kinds.joined(separator: ", "))
    private static let file = Positional(
        "FILE", completes: .files, help: "a JSON object; - reads standard input")
    private static let itemID = Positional("ID", help: "its id, as `countersign project show` prints it")
    private static let keyID = Positional("KID", help: "the kid of its tokens")
    private static let token = Flag(
        "token", .text("TOKEN"), help: "the app's name in paths: 1 to 64 letters, digits and -")
    private static let customerTokens = Flag(
        "customer-tokens", .choice(CustomerTokens.allCases.map(\.rawValue)),
        help: "whether customer tokens open the App Inbox")
    private static let webhook = Flag(
        "webhook", .text("URL"), mayBeEmpty: true,
        help: "where to send requests for push notifications; empty: nowhere")
    private static let webhookSecret = Flag(
        "webhook-secret-file", .path("FILE"),
        help: "file with whsec_ and base64; by default a secret is generated and printed")
    private static let endSyncTokens = Flag(
        "end-sync-tokens", help: "make clients fetch their App Inbox from the start")
    private static let secret = Flag(
        "secret-file", .path("FILE"), help: "at least 32 bytes; by default a secret is generated and printed")

    private static let show = Command(
        "project show", summary: "Show an app's settings for clients of the Bloomreach dialect",
        positionals: [.app], flags: [.json] + Flag.target,
        examples: ["What do clients get?": "countersign project show shop"]
    ) { invocation in
        let admin = try invocation.admin()
        let project = try await admin.get("apps", invocation.app, "project").body
        var items: [(kind: String, items: [JSONValue])] = []
        for kind in kinds {
            items.append((kind, try await admin.items("apps", invocation.app, "project", "items", kind)))
        }
        if invocation.printsJSON {
            var members = project.members ?? [:]
            for (kind, items) in items { members[kind.replacing("-", with: "_")] = .array(items) }
            return try invocation.io.print(.object(members))
        }
        let webhook = project["webhook"]
        let rows =
            [
                ["token", project["token"].shown], ["customer tokens", project["customer_tokens"].shown],
                ["push webhook", webhook == .null ? "none" : webhook["url"].shown],
            ] + project["private_keys"].elements.map { ["private key", $0["id"].shown] }
            + items.flatMap { kind, items in items.map { [kind, $0["id"].shown] } }
        try invocation.io.print(TextTable(rows: rows))
    }

    private static let set = Command(
        "project set", summary: "Change an app's settings for clients of the Bloomreach dialect",
        details: """
            Settings that are not given stay as they are. A running gateway has applied the change when the command ends.
            Customer tokens: off (the API key opens the App Inbox), allowed (either does, while old versions of an app are in
            use), required.
            """,
        positionals: [.app],
        flags: [token, customerTokens, webhook, webhookSecret, .allowPrivate, endSyncTokens] + Flag.target,
        examples: [
            "The token that shipped apps have, and customer tokens":
                "countersign project set shop --token 7f3e9a1c-shop --customer-tokens allowed",
            "Where self-check notifications go":
                "countersign project set shop --webhook https://push.example/self-check",
        ]
    ) { invocation in
        let admin = try invocation.admin()
        let url = try invocation.value(of: webhook)
        let given = try invocation.value(of: webhookSecret).map { try invocation.secret(ofFile: $0) }
        guard url != nil || given == nil && !invocation.isSet(.allowPrivate) else {
            throw CommandError(
                .usage, "--webhook-secret-file and --allow-private go with --webhook",
                hint: "give its URL too")
        }
        let (newToken, mode) = (try invocation.json(of: token), try invocation.json(of: customerTokens))
        guard newToken != nil || mode != nil || url != nil || invocation.isSet(endSyncTokens) else {
            throw CommandError(
                .usage, "nothing to change was given", hint: "such as --customer-tokens allowed")
        }
        let project = try await admin.change("apps", invocation.app, "project") { project in
            if let newToken { project["token"] = newToken }
            if let mode { project["customer_tokens"] = mode }
            guard let url else { return }
            var webhook: JSONObject = [
                "url": .string(url), "allow_private": .bool(invocation.isSet(.allowPrivate)),
            ]
            webhook["secret"] = given.map { .string($0) }
            project["webhook"] = url.isEmpty ? .null : .object(webhook)
        }
        if let secret = project["webhook_secret"].text {
            invocation.io.say("Deliveries are signed with this secret, shown only once:")
            try invocation.io.print(secret)
        }
        if invocation.isSet(endSyncTokens) {
            try await admin.delete("apps", invocation.app, "project", "sync-tokens")
        }
        invocation.io.say("Set. `countersign project show \(invocation.app)` prints it.")
    }

    private static let put = Command(
        "project put", summary: "Add or replace an in-app message, consent category or inbox message",
        details: """
            The object is sent to clients as it is; missing members that they require get a default. An inbox message is
            {"id","type":"html"|"push","content":{…}} with, as needed, "recipient":{"registered":"user-1"} and "expires":
            a date and time.
            """,
        positionals: [.app, kind, file], flags: Flag.target,
        examples: [
            "A message for one customer": "countersign project put shop inbox-message message.json",
            "A consent category": "countersign project put shop consent-category consent.json",
        ]
    ) { invocation in
        let admin = try invocation.admin()
        let text = try invocation.text(ofFile: invocation[file])
        guard let item = JSONValue(parsing: Array(text.utf8)), let id = item["id"].text else {
            throw CommandError(.failed, "the file does not contain a JSON object with an id")
        }
        let path = ["apps", invocation.app, "project", "items", invocation[kind], id]
        var tag: String?
        do {
            tag = try await admin.send(AdminRequest(method: "GET", path: path)).tag
        } catch let error as CommandError where error.code == .notFound {
            // `PUT` creates the item, without `If-Match`.
        }
        let put = try await admin.send(
            AdminRequest(method: "PUT", path: path, ifMatch: tag, body: item)
        ).body
        try invocation.io.print(put["id"].shown)
    }

    private static let remove = Command(
        "project remove", summary: "Delete an in-app message, consent category or inbox message",
        details:
            "Clients that already have an inbox message keep it until `countersign project set --end-sync-tokens`.",
        positionals: [.app, kind, itemID], flags: Flag.target,
        examples: [
            "Undo an addition":
                "countersign project remove shop inbox-message $(countersign project put shop inbox-message message.json)"
        ]
    ) { invocation in
        let id = invocation[itemID]
        try await invocation.admin().delete(
            "apps", invocation.app, "project", "items", invocation[kind], id)
        invocation.io.say("Deleted \(id).")
    }

    private static let addKey = Command(
        "project key add", summary: "Add a private key whose holder may sign customer tokens with HS256",
        positionals: [.app, keyID], flags: [secret] + Flag.target,
        examples: ["For the backend that signs": "countersign project key add shop backend-2026"]
    ) { invocation in
        let given = try invocation.value(of: secret).map { try invocation.secret(ofFile: $0) }
        let made = try await invocation.admin().post(
            "apps", invocation.app, "project", "private-keys",
            body: ["id": .string(invocation[keyID]), "secret": given.map { .string($0) } ?? .null])
        if let secret = made["secret"].text {
            invocation.io.say("The secret, shown only once:")
            try invocation.io.print(secret)
        } else {
            invocation.io.say("Added.")
        }
    }

    private static let deleteKey = Command(
        "project key delete",
        summary: "Delete a private key; tokens signed with it are rejected from then on",
        positionals: [.app, keyID], flags: Flag.target,
        examples: ["A key that is no longer used": "countersign project key delete shop old"]
    ) { invocation in
        let id = invocation[keyID]
        try await invocation.admin().delete(
            "apps", invocation.app, "project", "private-keys", id)
        invocation.io.say("Deleted \(id).")
    }
}
