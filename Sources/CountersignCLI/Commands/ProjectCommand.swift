internal import CountersignCore
internal import CountersignGateway
internal import CountersignJOSE
internal import Foundation

/// `countersign project …`: what an app is to clients of the Bloomreach dialect.
enum ProjectCommand {
    static let commands = [show, set, put, remove, addKey, deleteKey]

    private static let app = Positional("APP", help: "the app's id")
    private static let kind = Positional(
        "KIND", help: "in-app-message, consent-category, recommendation-engine or inbox-message")
    private static let file = Positional("FILE", help: "a JSON object; - reads standard input")
    private static let itemID = Positional("ID", help: "its id, as `countersign project show` prints it")
    private static let keyID = Positional("KID", help: "what stands in the tokens' kid")
    private static let token = Flag(
        "token", .text("TOKEN"), help: "what stands for the app in paths: 1 to 64 letters, digits and -")
    private static let customerTokens = Flag(
        "customer-tokens", .choice(CustomerTokens.allCases.map(\.rawValue)),
        help: "whether customer tokens open the App Inbox")
    private static let webhook = Flag(
        "webhook", .text("URL"), help: "where requests for a push notification go; empty: nowhere")
    private static let webhookSecret = Flag(
        "webhook-secret-file", .path("FILE"),
        help: "whsec_ and base64, in a file; one is made and printed otherwise")
    private static let allowPrivate = Flag(
        "allow-private", help: "the webhook may be on a private network or on this machine")
    private static let endSyncTokens = Flag(
        "end-sync-tokens", help: "clients fetch their App Inbox from the start")
    private static let secret = Flag(
        "secret-file", .path("FILE"), help: "at least 32 bytes; a secret is made and printed otherwise")

    private static let show = Command(
        "project show", summary: "Show what an app is to clients of the Bloomreach dialect",
        positionals: [app], flags: [.json, .data],
        examples: [.init("What do clients get?", "countersign project show shop")]
    ) { invocation in
        let directory = try invocation.appDirectory()
        let project = try directory.project(of: invocation.requiredWord(of: app))
        if invocation.isSet(.json) {
            try invocation.io.print(project.json)
            return .done
        }
        var table = TextTable()
        table.add("token", project.token)
        table.add("customer tokens", project.customerTokens.rawValue)
        table.add("push webhook", project.webhook?.url ?? "none")
        for key in project.customerTokenKeys { table.add("private key", key.id) }
        for (kind, items) in project.items {
            for item in items { table.add(kind.word, item.id) }
        }
        for message in project.inbox.all { table.add(Self.inboxWord, message.id) }
        for line in table.lines { try invocation.io.print(line) }
        return .done
    }

    private static let set = Command(
        "project set", summary: "Set what an app is to clients of the Bloomreach dialect",
        details: """
            What is not named stays as it is. A running gateway takes the change over within a second. Customer tokens: off
            (the API key opens the App Inbox), allowed (either does, while old versions of an app are in use), required.
            """,
        positionals: [app],
        flags: [token, customerTokens, webhook, webhookSecret, allowPrivate, endSyncTokens, .data],
        examples: [
            .init(
                "The token that shipped apps have, and customer tokens",
                "countersign project set shop --token 7f3e9a1c-shop --customer-tokens allowed"),
            .init(
                "Where self-check notifications go",
                "countersign project set shop --webhook https://push.example/self-check"),
        ]
    ) { invocation in
        let directory = try invocation.appDirectory()
        let id = try directory.app(id: invocation.requiredWord(of: app)).id
        if let text = try invocation.value(of: token) { try directory.setProjectToken(text, for: id) }
        if let text = try invocation.value(of: customerTokens), let mode = CustomerTokens(rawValue: text) {
            try directory.setCustomerTokens(mode, for: id)
        }
        if let url = try invocation.value(of: webhook) {
            if url.isEmpty {
                try directory.removePushWebhook(of: id)
            } else {
                let given = try invocation.value(of: webhookSecret).map {
                    try invocation.text(ofFile: $0).trimmingCharacters(in: .whitespacesAndNewlines)
                }
                let secret = try directory.setPushWebhook(
                    url: url, secret: given, allowsPrivateAddresses: invocation.isSet(allowPrivate), for: id)
                if given == nil {
                    invocation.io.say("Deliveries are signed with this secret, shown only now:")
                    try invocation.io.print(secret)
                }
            }
        }
        if invocation.isSet(endSyncTokens) { try directory.endSyncTokens(of: id) }
        invocation.io.say("Set. `countersign project show \(id)` prints it.")
        return .done
    }

    private static let put = Command(
        "project put", summary: "Add a message, consent category or engine, or replace the one with its id",
        details: """
            The object is the one that clients receive; what they require and is not given gets a default. An inbox message is
            {"id","type":"html"|"push","content":{…}} with, as needed, "recipient":{"registered":"user-1"} and "expires":
            a date and time.
            """,
        positionals: [app, kind, file], flags: [.data],
        examples: [
            .init("A message for one customer", "countersign project put shop inbox-message message.json"),
            .init("A consent category", "countersign project put shop consent-category consent.json"),
        ]
    ) { invocation in
        let directory = try invocation.appDirectory()
        let id = try directory.app(id: invocation.requiredWord(of: app)).id
        let word = invocation.requiredWord(of: kind)
        let text = try invocation.text(ofFile: invocation.requiredWord(of: file))
        if word == Self.inboxWord {
            try invocation.io.print(try directory.putInboxMessage(json: text, in: id))
        } else {
            try invocation.io.print(try directory.put(try itemKind(word), json: text, in: id))
        }
        return .done
    }

    private static let remove = Command(
        "project remove", summary: "Delete a message, consent category or engine",
        details:
            "Clients that have an inbox message keep it until `countersign project set --end-sync-tokens`.",
        positionals: [app, kind, itemID], flags: [.data],
        examples: [
            .init(
                "Undo an addition",
                "countersign project remove shop inbox-message $(countersign project put shop inbox-message message.json)"
            )
        ]
    ) { invocation in
        let directory = try invocation.appDirectory()
        let app = try directory.app(id: invocation.requiredWord(of: app)).id
        let word = invocation.requiredWord(of: kind)
        let id = invocation.requiredWord(of: itemID)
        if word == Self.inboxWord {
            try directory.removeInboxMessage(id: id, from: app)
        } else {
            try directory.remove(try itemKind(word), id: id, from: app)
        }
        invocation.io.say("Deleted \(id).")
        return .done
    }

    private static let addKey = Command(
        "project key add", summary: "Add a private key whose holder may sign customer tokens with HS256",
        positionals: [app, keyID], flags: [secret, .data],
        examples: [.init("For the backend that signs", "countersign project key add shop backend-2026")]
    ) { invocation in
        let given = try invocation.value(of: secret).map {
            try invocation.text(ofFile: $0).trimmingCharacters(in: .whitespacesAndNewlines)
        }
        let made = try invocation.appDirectory().addCustomerTokenKey(
            id: invocation.requiredWord(of: keyID), secret: given, to: invocation.requiredWord(of: app))
        if given == nil {
            invocation.io.say("The secret, shown only now:")
            try invocation.io.print(made)
        } else {
            invocation.io.say("Added.")
        }
        return .done
    }

    private static let deleteKey = Command(
        "project key delete", summary: "Delete a private key; tokens signed with it are refused from then on",
        positionals: [app, keyID], flags: [.data],
        examples: [
            .init("A key that is not used any more", "countersign project key delete shop old")
        ]
    ) { invocation in
        let id = invocation.requiredWord(of: keyID)
        try invocation.appDirectory().deleteCustomerTokenKey(id: id, of: invocation.requiredWord(of: app))
        invocation.io.say("Deleted \(id).")
        return .done
    }

    private static let inboxWord = "inbox-message"

    private static func itemKind(_ word: String) throws(CommandError) -> ProjectItem.Kind {
        guard let kind = ProjectItem.Kind.all.first(where: { $0.word == word }) else {
            throw CommandError(.usage, "KIND is one of \(Self.kind.help), not '\(word)'")
        }
        return kind
    }
}

extension ProjectItem.Kind {
    fileprivate static let all: [ProjectItem.Kind] = [.inAppMessage, .consentCategory, .recommendationEngine]

    fileprivate var word: String { rawValue.replacingOccurrences(of: "_", with: "-") }
}

extension Project {
    fileprivate var items: [(ProjectItem.Kind, [ProjectItem])] {
        [
            (.inAppMessage, inAppMessages), (.consentCategory, consentCategories),
            (.recommendationEngine, recommendationEngines),
        ]
    }

    /// The project as commands print it with `--json`.
    fileprivate var json: JSONValue {
        var members: [String: JSONValue] = [
            "token": .string(token), "customer_tokens": .string(customerTokens.rawValue),
            "webhook": webhook.map { .string($0.url) } ?? .null,
            "private_keys": .array(customerTokenKeys.map { .string($0.id) }),
            "inbox_message": .array(inbox.all.map(\.json)),
        ]
        for (kind, items) in items { members[kind.rawValue] = .array(items.map(\.json)) }
        return .object(members)
    }
}
