internal import CountersignCore
internal import GatewayModel

enum ClientCommand {
    static let commands = [create, list, delete]

    private static let id = Positional(
        "CLIENT", completes: .ofApp("clients", member: "client_id"),
        help: "the client's id, as `countersign client list` shows it")
    private static let name = Flag(
        "name", .text("TEXT"), default: "", mayBeEmpty: true, help: "display name")
    private static let key = Flag(
        "public-key", .path("FILE"),
        help: "an RSA key as PEM or JWK that verifies the client's assertions, instead of a secret")
    private static let grant = Flag(
        "grant", .choice(OAuthClient.Grant.allCases.map(\.rawValue)),
        maximumCount: OAuthClient.Grant.allCases.count, help: "a grant type it may use; all by default")

    private static let create = Command(
        "client create", summary: "Create a client of the token service and print its id and secret",
        details: """
            A client is a backend that gets tokens at /oauth/token. The first line is its id, the second its secret, which
            is shown only once: the gateway keeps a hash. With --public-key it has no secret and signs assertions (RS256)
            instead. A token that a client gets for itself may write events of every user of the app.
            """,
        positionals: [.app], flags: [name, key, grant, .secretFile, .json] + Flag.target,
        examples: [
            "With a secret": "countersign client create shop --name warehouse",
            "With a key": "countersign client create shop --name segment --public-key public.pem",
        ]
    ) { invocation in
        let admin = try invocation.admin()
        let grants = invocation.values(of: grant)
        let publicKey = try invocation.value(of: key).map { try invocation.text(ofFile: $0) }
        let body: JSONValue = [
            "name": try invocation.json(of: name) ?? .null,
            "public_key": publicKey.map { .string($0) } ?? .null,
            "grants": grants.isEmpty ? .null : .array(grants.map { .string($0) }),
        ]
        try await invocation.printSecret(
            "client_secret", of: "client_id", notice: "Created a client of \(invocation.app)."
        ) {
            try await admin.post("apps", invocation.app, "clients", body: body)
        }
    }

    private static let list = Command(
        "client list", summary: "List an app's clients", positionals: [.app], flags: [.json] + Flag.target,
        examples: ["Which clients can get tokens?": "countersign client list shop"]
    ) { invocation in
        let clients = try await invocation.admin().items("apps", invocation.app, "clients")
        try invocation.printList(
            clients, ["CLIENT": "client_id", "PROOF": "proof", "GRANTS": "grants", "NAME": "name"],
            empty: "No client. Next: countersign client create \(invocation.app)")
    }

    private static let delete = Command(
        "client delete", summary: "Delete a client; its tokens are rejected from then on",
        positionals: [.app, id], flags: Flag.target,
        examples: [
            "Undo an addition":
                "countersign client delete shop $(countersign client create shop --public-key public.pem)"
        ]
    ) { invocation in
        try await invocation.admin().delete(
            "apps", invocation.app, "clients", invocation[id])
        invocation.io.say("Deleted.")
    }
}
