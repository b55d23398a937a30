internal import CountersignCore
internal import CountersignJOSE
internal import Foundation

/// `countersign key …`.
enum KeyCommand {
    static let commands = [add, importSet, list, jwks, primary, delete, follow, unfollow]

    private static let file = Positional("FILE", help: "a public key as PEM or JWK; - reads standard input")
    private static let url = Positional("URL", help: "the https address of a JWK Set")
    private static let allowPrivate = Flag(
        "allow-private", help: "also when it is on a private network or on this machine; needs the role owner"
    )
    private static let set = Positional("FILE", help: "a JWK Set as JSON; - reads standard input")
    private static let keyID = Positional("KEY", help: "the key's id, as `countersign key list` shows it")
    private static let note = Flag("description", .text("TEXT"), default: "", help: "a note for people")

    private static let add = Command(
        "key add", summary: "Add a public key to an app and print the key's id",
        details: """
            The gateway accepts a token when one of the app's keys (at most three) verifies it.
            The private half stays with the backend that signs; it is never given to Countersign.
            """,
        positionals: [.app, file], flags: [note] + Flag.place,
        examples: [
            .init("A key from a file", "countersign key add shop public.pem --description 'signs since May'")
        ]
    ) { invocation in
        let appID = invocation.requiredWord(of: .app)
        let text = try invocation.text(ofFile: invocation.requiredWord(of: file))
        let key = try await invocation.admin().post(
            "apps", appID, "keys",
            body: ["text": .string(text), "description": .string(try invocation.value(of: note) ?? "")])
        invocation.io.say("Added as the \(key["slot"].shown) key of \(appID):")
        for warning in key["warnings"].elements { invocation.io.say(warning.shown) }
        try invocation.io.print(key["id"].shown)
        return .done
    }

    private static let importSet = Command(
        "key import", summary: "Add the keys of a JWK Set to an app and print their ids",
        details: "Keys that the app has already are passed over. All are added, or none.",
        positionals: [.app, set],
        flags: Flag.place,
        examples: [.init("A set from a file", "countersign key import shop jwks.json")]
    ) { invocation in
        let appID = invocation.requiredWord(of: .app)
        let text = try invocation.text(ofFile: invocation.requiredWord(of: set))
        let added = try await invocation.admin().post(
            "apps", appID, "keys", "import", body: ["text": .string(text)])["items"].elements
        invocation.io.say("Added \(added.count) of the set to \(appID).")
        for key in added { try invocation.io.print(key["id"].shown) }
        return .done
    }

    private static let primary = Command(
        "key primary", summary: "Make a key the primary one of its app",
        details:
            "The others keep their order behind it. A running gateway takes the change over within a second.",
        positionals: [.app, keyID], flags: Flag.place,
        examples: [
            .init(
                "A new key, first at once",
                "countersign key primary shop $(countersign key add shop public.pem)")
        ]
    ) { invocation in
        let appID = invocation.requiredWord(of: .app)
        let id = invocation.requiredWord(of: keyID)
        _ = try await invocation.admin().patch("apps", appID, "keys", id, body: ["slot": "primary"])
        invocation.io.say("\(id) is now the primary key of \(appID).")
        return .done
    }

    private static let delete = Command(
        "key delete", summary: "Delete a key of an app",
        details: """
            The primary key cannot be deleted while there is another: make another primary first.
            `countersign key list` shows when each key last verified a token.
            """,
        positionals: [.app, keyID], flags: Flag.place,
        examples: [
            .init("Undo an addition", "countersign key delete shop $(countersign key add shop public.pem)")
        ]
    ) { invocation in
        let appID = invocation.requiredWord(of: .app)
        let id = invocation.requiredWord(of: keyID)
        try await invocation.admin().deleteAsRead("apps", appID, "keys", id)
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
        positionals: [.app, url], flags: [allowPrivate] + Flag.place,
        examples: [
            .init(
                "An identity provider's keys", "countersign key follow shop https://id.example.com/jwks.json")
        ]
    ) { invocation in
        let appID = invocation.requiredWord(of: .app)
        _ = try await invocation.admin().change("apps", appID, "key-source") { source in
            source["url"] = .string(invocation.requiredWord(of: url))
            source["allow_private"] = .bool(invocation.isSet(allowPrivate))
        }
        invocation.io.say("\(appID) follows the set. `countersign key unfollow \(appID)` ends that.")
        return .done
    }

    private static let unfollow = Command(
        "key unfollow", summary: "No longer take the keys of a published JWK Set", positionals: [.app],
        flags: Flag.place,
        examples: [.init("Only the app's own keys", "countersign key unfollow shop")]
    ) { invocation in
        let appID = invocation.requiredWord(of: .app)
        _ = try await invocation.admin().delete("apps", appID, "key-source")
        invocation.io.say("\(appID) follows no set; only its own keys verify.")
        return .done
    }

    private static let list = Command(
        "key list", summary: "List the public keys of an app", positionals: [.app],
        flags: [.json] + Flag.place,
        examples: [.init("Which keys verify this app's tokens?", "countersign key list shop")]
    ) { invocation in
        let appID = invocation.requiredWord(of: .app)
        try invocation.printList(
            try await invocation.admin().items("apps", appID, "keys"),
            header: ["SLOT", "ID", "ADDED", "VERIFIED", "LAST VERIFIED", "DESCRIPTION"],
            empty: "\(appID) has no key. Next: countersign key add \(appID) public.pem"
        ) { key in
            let last = key["last_verified_ms"]
            return [
                key["slot"].shown, key["id"].shown, key["added_ms"].time, key["verified_total"].shown,
                last == .null ? "never" : last.time, key["description"].shown,
            ]
        }
        return .done
    }

    private static let jwks = Command(
        "key jwks", summary: "Print the public keys of an app as a JWK Set (RFC 7517)",
        details: "The primary key comes first. `countersign key import` takes such a set.",
        positionals: [.app], flags: Flag.place,
        examples: [.init("Publish an app's keys", "countersign key jwks shop")]
    ) { invocation in
        let appID = invocation.requiredWord(of: .app)
        let keys = try await invocation.admin().items("apps", appID, "keys").map { key -> JSONValue in
            guard let known = try? PublicKey(text: key["pem"].text ?? "") else {
                throw CommandError(
                    .failed, "the key \(key["id"].shown) cannot be read",
                    hint: "countersign key delete \(appID) \(key["id"].shown)")
            }
            let jwk = try StrictJSONParser(maximumBytes: 1 << 16).parse(bytes: Array(known.jwk.utf8)) {
                $0.value
            }
            guard case .object(var members) = jwk else { return jwk }
            members["alg"] = key["alg"]
            return .object(members)
        }
        try invocation.io.print(["keys": .array(keys)])
        return .done
    }
}
