internal import CountersignCore
internal import CountersignGateway
internal import Foundation

/// `countersign key …`.
enum KeyCommand {
    static let commands = [add, importSet, list, primary, delete, follow, unfollow]

    private static let app = Positional("APP", help: "the app's id")
    private static let file = Positional("FILE", help: "a public key as PEM or JWK; - reads standard input")
    private static let url = Positional("URL", help: "the https address of a JWK Set")
    private static let allowPrivate = Flag(
        "allow-private", help: "also when it is on a private network or on this machine")
    private static let set = Positional("FILE", help: "a JWK Set as JSON; - reads standard input")
    private static let keyID = Positional("KEY", help: "the key's id, as `countersign key list` shows it")
    private static let note = Flag("description", .text("TEXT"), default: "", help: "a note for people")

    private static let add = Command(
        "key add", summary: "Add a public key to an app and print the key's id",
        details: """
            The gateway accepts a token when one of the app's keys (at most three) verifies it.
            The private half stays with the backend that signs; it is never given to Countersign.
            """,
        positionals: [app, file], flags: [note, .data],
        examples: [
            .init("A key from a file", "countersign key add shop public.pem --description 'signs since May'")
        ]
    ) { invocation in
        let appID = invocation.requiredWord(of: app)
        let text = try invocation.text(ofFile: invocation.requiredWord(of: file))
        let key = try invocation.appDirectory().addKey(
            text, description: invocation.value(of: note) ?? "", to: appID)
        invocation.io.say("Added as the \(key.slot) key of \(appID):")
        try invocation.io.print(key.id)
        return .done
    }

    private static let importSet = Command(
        "key import", summary: "Add the keys of a JWK Set to an app and print their ids",
        details: "Keys that the app has already are passed over. All are added, or none.",
        positionals: [app, set],
        flags: [.data],
        examples: [.init("A set from a file", "countersign key import shop jwks.json")]
    ) { invocation in
        let appID = invocation.requiredWord(of: app)
        let added = try invocation.appDirectory().importKeys(
            fromJWKSet: try invocation.text(ofFile: invocation.requiredWord(of: set)), to: appID)
        invocation.io.say("Added \(added.count) of the set to \(appID).")
        for key in added { try invocation.io.print(key.id) }
        return .done
    }

    private static let primary = Command(
        "key primary", summary: "Make a key the primary one of its app",
        details:
            "The others keep their order behind it. A running gateway takes the change over within a second.",
        positionals: [app, keyID], flags: [.data],
        examples: [
            .init(
                "A new key, first at once",
                "countersign key primary shop $(countersign key add shop public.pem)")
        ]
    ) { invocation in
        let appID = invocation.requiredWord(of: app)
        let id = invocation.requiredWord(of: keyID)
        try invocation.appDirectory().makePrimary(keyID: id, of: appID)
        invocation.io.say("\(id) is now the primary key of \(appID).")
        return .done
    }

    private static let delete = Command(
        "key delete", summary: "Delete a key of an app",
        details: """
            The primary key cannot be deleted while there is another: make another primary first.
            `countersign key list` shows when each key last verified a token.
            """,
        positionals: [app, keyID], flags: [.data],
        examples: [
            .init("Undo an addition", "countersign key delete shop $(countersign key add shop public.pem)")
        ]
    ) { invocation in
        let appID = invocation.requiredWord(of: app)
        let id = invocation.requiredWord(of: keyID)
        try invocation.appDirectory().deleteKey(keyID: id, of: appID)
        invocation.io.say(
            "Deleted \(id) of \(appID). Tokens that only it verifies are not accepted any more.")
        return .done
    }

    private static let follow = Command(
        "key follow", summary: "Let the keys of a published JWK Set verify beside an app's own",
        details: """
            The gateway fetches the set every ten minutes, and earlier when a token comes whose key it does not know.
            What cannot be fetched leaves the last good set as it is.
            """,
        positionals: [app, url], flags: [allowPrivate, .data],
        examples: [
            .init(
                "An identity provider's keys", "countersign key follow shop https://id.example.com/jwks.json")
        ]
    ) { invocation in
        let appID = invocation.requiredWord(of: app)
        try invocation.appDirectory().setKeySource(
            url: invocation.requiredWord(of: url), allowsPrivateAddresses: invocation.isSet(allowPrivate),
            of: appID)
        invocation.io.say("\(appID) follows the set. `countersign key unfollow \(appID)` ends that.")
        return .done
    }

    private static let unfollow = Command(
        "key unfollow", summary: "No longer take the keys of a published JWK Set", positionals: [app],
        flags: [.data],
        examples: [.init("Only the app's own keys", "countersign key unfollow shop")]
    ) { invocation in
        let appID = invocation.requiredWord(of: app)
        try invocation.appDirectory().setKeySource(url: nil, of: appID)
        invocation.io.say("\(appID) follows no set; only its own keys verify.")
        return .done
    }

    private static let list = Command(
        "key list", summary: "List the public keys of an app", positionals: [app], flags: [.json, .data],
        examples: [.init("Which keys verify this app's tokens?", "countersign key list shop")]
    ) { invocation in
        let app = try invocation.appDirectory().app(id: invocation.requiredWord(of: app))
        let uses = try KeyUse.all(of: app.id, in: invocation.dataDirectory())
        if invocation.isSet(.json) {
            try invocation.io.print(
                .array(app.keys.map { key in key.json(use: uses.first { $0.keyID == key.id }) }))
            return .done
        }
        if app.keys.isEmpty {
            invocation.io.say("\(app.id) has no key. Next: countersign key add \(app.id) public.pem")
            return .done
        }
        var table = TextTable()
        table.add("SLOT", "ID", "ADDED", "VERIFIED", "LAST VERIFIED", "DESCRIPTION")
        for key in app.keys {
            let use = uses.first { $0.keyID == key.id }
            table.add(
                "\(key.slot)", key.id, RFC3339.text(milliseconds: key.addedMilliseconds),
                String(use?.verified ?? 0),
                use.map { RFC3339.text(milliseconds: $0.lastMilliseconds) } ?? "never",
                key.description)
        }
        for line in table.lines { try invocation.io.print(line) }
        return .done
    }
}

extension AppKey {
    /// The key with what it has verified, as `key list --json` prints it.
    fileprivate func json(use: KeyUse?) -> JSONValue {
        guard case .object(var members) = json else { return json }
        members["verified"] = .integer(use?.verified ?? 0)
        members["last_verified_ms"] = use.map { .integer($0.lastMilliseconds) } ?? .null
        return .object(members)
    }
}

extension Invocation {
    /// The text of a file, or of standard input for `-`.
    func text(ofFile path: String) throws -> String {
        if path == "-" { return String(decoding: try io.input(), as: UTF8.self) }
        do {
            return String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self)
        } catch {
            throw CommandError(.notFound, "cannot read \(path)")
        }
    }
}
