internal import CountersignCore
internal import CountersignJOSE
internal import GatewayModel

extension Flag {
    static let allowPrivate = Flag(
        "allow-private", help: "allow a URL on a private network or on this machine; needs the role owner")
}

enum KeyCommand {
    static let commands = [add, list, jwks, primary, delete, follow, unfollow]

    private static let file = Positional(
        "FILE", completes: .files, help: "a public key as PEM or JWK, or a JWK Set; - reads standard input")
    private static let url = Positional(
        "URL",
        help: "the https address of a JWK Set, or of an OpenID provider's /.well-known/openid-configuration")
    private static let followed = Positional(
        "URL", .optional, help: "the address, as `countersign key list` shows it; without it, all")
    private static let keyID = Positional(
        "KEY", completes: .ofApp("keys"), help: "the key's id, as `countersign key list` shows it")
    private static let note = Flag(
        "description", .text("TEXT"), default: "", mayBeEmpty: true, help: "a note on the key")

    private static let add = Command(
        "key add", summary: "Add public keys to an app and print their ids",
        details: """
            The gateway accepts a token if one of the app's keys (at most three) verifies it. The private key stays with the
            backend that signs; never give it to Countersign. From a JWK Set, keys that the app already has are skipped; the
            others are added, all or none. A set has no description.
            """,
        positionals: [.app, file], flags: [note] + Flag.target,
        examples: [
            "A key from a file": "countersign key add shop public.pem --description 'signs since May'",
            "A set from a file": "countersign key add shop jwks.json",
        ]
    ) { invocation in
        let text = try invocation.text(ofFile: invocation[file])
        let description = try invocation.value(of: note) ?? ""
        if JSONValue(parsing: Array(text.utf8))?["keys"] ?? .null != .null, description.isEmpty {
            let added = try await invocation.admin().post(
                "apps", invocation.app, "keys", "import", body: ["text": .string(text)])["items"].elements
            invocation.io.say("Added \(added.count) of the set to \(invocation.app).")
            return try invocation.io.print(TextTable(rows: added.map { [$0["id"].shown] }))
        }
        let key = try await invocation.admin().post(
            "apps", invocation.app, "keys",
            body: ["text": .string(text), "description": .string(description)])
        invocation.io.say("Added as the \(key["slot"].shown) key of \(invocation.app):")
        for warning in key["warnings"].elements { invocation.io.say(warning.shown) }
        try invocation.io.print(key["id"].shown)
    }

    private static let primary = Command(
        "key primary", summary: "Make a key its app's primary key",
        details:
            "The other keys follow in their old order. A running gateway has loaded the change when the command ends.",
        positionals: [.app, keyID], flags: Flag.target,
        examples: [
            "Add a primary key": "countersign key primary shop $(countersign key add shop public.pem)"
        ]
    ) { invocation in
        let id = invocation[keyID]
        _ = try await invocation.admin().patch("apps", invocation.app, "keys", id, body: ["slot": "primary"])
        invocation.io.say("\(id) is now the primary key of \(invocation.app).")
    }

    private static let delete = Command(
        "key delete", summary: "Delete an app's key",
        details: """
            The primary key cannot be deleted while there are others: make another one primary first. `countersign key list`
            shows when each key last verified a token. Deleting the last key of an app whose tokens are checked must be
            confirmed: without it every token fails.
            """,
        positionals: [.app, keyID], flags: [.confirm] + Flag.target,
        examples: ["Undo an addition": "countersign key delete shop $(countersign key add shop public.pem)"]
    ) { invocation in
        let id = invocation[keyID]
        let admin = try invocation.admin()
        let app = try await admin.get("apps", invocation.app).body
        let read = try await admin.get("apps", invocation.app, "keys")
        let keys = read.body["items"].elements.map(\.["id"].shown)
        let state = app["enforcement"].shown
        let sources = try await admin.get("apps", invocation.app, "key-source").body["sources"].elements
        // Without a server, `sources` have no keys here, because only a running gateway fetches published keys.
        if keys == [id], state != "disabled", sources.allSatisfy(\.["keys"].elements.isEmpty) {
            let then =
                !sources.isEmpty
                ? "only the keys that it follows verify tokens"
                : state == "required" ? "every user's events are rejected" : "every token fails"
            try invocation.confirm(
                to:
                    "delete the last key of \(invocation.app), whose tokens are \(state): \(then) from then on"
            )
        }
        try await admin.delete("apps", invocation.app, "keys", id, ifMatch: read.tag)
        invocation.io.say(
            "Deleted \(id) of \(invocation.app). Tokens that only it verifies are no longer accepted.")
    }

    private static let follow = Command(
        "key follow", summary: "Also verify tokens with published keys",
        details: """
            The gateway fetches the keys every ten minutes, and earlier when it sees a token with an unknown key. If fetching
            fails, the last good set stays in use, also after a restart. An app follows up to four addresses. The keys of an
            OpenID provider's /.well-known/openid-configuration verify only tokens whose iss is that provider.
            """,
        positionals: [.app, url], flags: [.allowPrivate] + Flag.target,
        examples: [
            "Published keys": "countersign key follow shop https://id.example.com/jwks.json",
            "An OpenID provider":
                "countersign key follow shop https://id.example.com/.well-known/openid-configuration",
        ]
    ) { invocation in
        let url = invocation[url]
        _ = try await invocation.admin().change("apps", invocation.app, "key-source") { members in
            let others = JSONValue.object(members)["sources"].elements.filter { $0["url"].text != url }
            let source: JSONValue = [
                "url": .string(url), "allow_private": .bool(invocation.isSet(.allowPrivate)),
            ]
            members = ["sources": .array(others + [source])]
        }
        invocation.io.say(
            "\(invocation.app) follows the keys at that URL. `countersign key unfollow \(invocation.app)` ends that."
        )
    }

    private static let unfollow = Command(
        "key unfollow", summary: "Stop using published keys", positionals: [.app, followed],
        flags: [.confirm] + Flag.target,
        examples: ["Only the app's own keys": "countersign key unfollow shop"]
    ) { invocation in
        let (name, url) = (invocation.app, invocation.word(of: followed))
        let admin = try invocation.admin()
        let app = try await admin.get("apps", name).body
        let state = app["enforcement"].shown
        _ = try await admin.change("apps", name, "key-source") { members in
            let sources = JSONValue.object(members)["sources"].elements
            let others = sources.filter { url != nil && $0["url"].text != url }
            guard url == nil || others.count < sources.count else {
                throw CommandError(
                    .notFound, "\(name) does not follow that address", hint: "countersign key list \(name)")
            }
            let hasKeys = app["keys"] != 0 || others.contains { !$0["keys"].elements.isEmpty }
            if !hasKeys, !sources.isEmpty, state != "disabled" {
                try invocation.confirm(to: "unfollow the last keys of \(name), whose tokens are \(state)")
            }
            members = ["sources": .array(others)]
        }
        let effect = url == nil ? "verifies tokens only with its own keys" : "no longer follows that URL"
        invocation.io.say("\(name) \(effect).")
    }

    private static let list = Command(
        "key list", summary: "List the public keys of an app", positionals: [.app],
        flags: [.json] + Flag.target,
        examples: ["Which keys verify this app's tokens?": "countersign key list shop"]
    ) { invocation in
        let admin = try invocation.admin()
        let sources = try await admin.get("apps", invocation.app, "key-source").body["sources"].elements
        try invocation.printList(
            try await admin.items("apps", invocation.app, "keys"),
            [
                "SLOT": "slot", "ID": "id", "ADDED": "added_ms", "VERIFIED": "verified_total",
                "LAST VERIFIED": Column(time: "last_verified_ms", missing: "never"),
                "DESCRIPTION": "description",
            ],
            empty: sources.isEmpty
                ? "\(invocation.app) has no key. Next: countersign key add \(invocation.app) public.pem"
                : "\(invocation.app) has no key of its own.")
        for line in describe(sources, of: invocation.app, isLocal: admin is LocalAdmin) {
            if invocation.printsJSON { invocation.io.say(line) } else { try invocation.io.print(line) }
        }
    }

    /// Sentences about which keys an app follows and whether they can be fetched.
    static func describe(_ sources: [JSONValue], of app: String, isLocal: Bool) -> [String] {
        sources.map { source in
            let state =
                if isLocal {
                    "The gateway fetches the keys; see the result with --server, or in its log."
                } else if let problem = source["problem"].text {
                    "It cannot be fetched: \(problem)"
                } else {
                    "\(source["keys"].elements.count.counted("key")) loaded."
                }
            return TerminalText.safe("\(app) follows \(source["url"].shown). \(state)")
        }
    }

    private static let jwks = Command(
        "key jwks", summary: "Print the public keys of an app as a JWK Set (RFC 7517)",
        details: "The primary key comes first. `countersign key add` takes such a set.",
        positionals: [.app], flags: Flag.target,
        examples: ["Publish an app's keys": "countersign key jwks shop"]
    ) { invocation in
        let keys = try await invocation.admin().items("apps", invocation.app, "keys").map {
            key -> JSONValue in
            guard let known = try? PublicKey(text: key["pem"].text ?? "") else {
                throw CommandError(
                    .failed, "the key \(key["id"].shown) cannot be read",
                    hint: "countersign key delete \(invocation.app) \(key["id"].shown)")
            }
            var members = JSONValue(parsing: Array(known.jwk.utf8))?.members ?? [:]
            members["alg"] = key["alg"]
            return .object(members)
        }
        try invocation.io.print(["keys": .array(keys)])
    }
}
