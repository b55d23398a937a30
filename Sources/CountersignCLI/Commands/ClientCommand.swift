internal import CountersignCore
internal import CountersignGateway

/// `countersign client …`.
enum ClientCommand {
    static let commands = [create, list, delete]

    private static let app = Positional("APP", help: "the app's id")
    private static let id = Positional(
        "CLIENT", help: "the client's id, as `countersign client list` shows it")
    private static let name = Flag("name", .text("TEXT"), default: "", help: "what people call it")
    private static let key = Flag(
        "public-key", .path("FILE"),
        help: "an RSA key as PEM or JWK that verifies the client's assertions, instead of a secret")
    private static let grant = Flag(
        "grant", .choice(OAuthClient.Grant.allCases.map(\.rawValue)),
        maximumCount: OAuthClient.Grant.allCases.count, help: "what it may ask for; all when not given")
    private static let secretFile = Flag(
        "secret-file", .path("FILE"), help: "write the secret here, mode 0600, instead of printing it")

    private static let create = Command(
        "client create", summary: "Make a client of the token service and print its id and its secret",
        details: """
            A client is a backend that gets tokens at /oauth/token. The first line is its id, the second its secret, which is
            shown only now: the data directory keeps a hash. With --public-key it has no secret and signs assertions (RS256).
            A token that a client gets for itself may write events of every user of the app.
            """,
        positionals: [app], flags: [name, key, grant, secretFile, .json, .data],
        examples: [
            .init("With a secret", "countersign client create shop --name warehouse"),
            .init("With a key", "countersign client create shop --name segment --public-key public.pem"),
        ]
    ) { invocation in
        let publicKey = try invocation.value(of: key).map { try invocation.text(ofFile: $0) }
        let grants = Set(invocation.values(of: grant).compactMap(OAuthClient.Grant.init(rawValue:)))
        let path = try invocation.value(of: secretFile)
        let file = try path.map { try PrivateFile(creating: $0) }
        let (client, secret) = try invocation.appDirectory().createClient(
            of: invocation.requiredWord(of: app), name: invocation.value(of: name) ?? "",
            publicKey: publicKey,
            grants: grants.isEmpty ? Set(OAuthClient.Grant.allCases) : grants)
        if let secret { try file?.write(secret) }
        let shown = file == nil ? secret : nil
        if invocation.isSet(.json) {
            var members = client.members
            members["client_secret"] = shown.map { .string($0) }
            members["secret_file"] = path.map { .string($0) }
            try invocation.io.print(.object(members))
            return .done
        }
        invocation.io.say("Made a client of \(client.appID).")
        try invocation.io.print(client.id)
        if let shown {
            invocation.io.say("Its secret, shown only now:")
            try invocation.io.print(shown)
        }
        return .done
    }

    private static let list = Command(
        "client list", summary: "List an app's clients", positionals: [app], flags: [.json, .data],
        examples: [.init("Who gets tokens?", "countersign client list shop")]
    ) { invocation in
        let clients = try invocation.appDirectory().clients(of: invocation.requiredWord(of: app))
        if invocation.isSet(.json) {
            try invocation.io.print(.array(clients.map { .object($0.members) }))
            return .done
        }
        if clients.isEmpty { invocation.io.say("No client. Next: countersign client create APP") }
        var table = TextTable()
        table.add("CLIENT", "PROOF", "GRANTS", "NAME")
        for client in clients {
            table.add(
                client.id, client.publicKey == nil ? "secret" : "key",
                client.grants.map(\.rawValue).sorted().joined(separator: ","), client.name)
        }
        for line in clients.isEmpty ? [] : table.lines { try invocation.io.print(line) }
        return .done
    }

    private static let delete = Command(
        "client delete", summary: "Delete a client; its tokens are refused from then on",
        positionals: [id], flags: [.data],
        examples: [
            .init(
                "Undo an addition",
                "countersign client delete $(countersign client create shop --public-key public.pem)")
        ]
    ) { invocation in
        try invocation.appDirectory().deleteClient(id: invocation.requiredWord(of: id))
        invocation.io.say("Deleted. A running gateway knows within a second.")
        return .done
    }
}

extension OAuthClient {
    /// The client as commands print it with `--json`.
    fileprivate var members: [String: JSONValue] {
        [
            "client_id": .string(id), "app": .string(appID), "name": .string(name),
            "grants": .array(grants.map(\.rawValue).sorted().map { .string($0) }),
            "proof": .string(publicKey == nil ? "secret" : "key"),
            "created_ms": .integer(createdMilliseconds),
        ]
    }
}
