internal import CountersignCore
internal import CountersignGateway
internal import CountersignJOSE

/// `countersign app …`.
enum AppCommand {
    static let commands = [create, list, show]

    private static let id = Positional(
        "APP", help: "the app's id: 1 to 64 lower-case letters, digits, - and _")
    private static let name = Flag("name", .text("TEXT"), help: "what people call it; the id when not given")

    private static let create = Command(
        "app create", summary: "Make an app and print its write key",
        details: """
            The write key goes into the client. It is shown only now: the data directory keeps a hash.
            A new app's enforcement is disabled: events are stored without a look at tokens.
            """,
        positionals: [id], flags: [name, .data],
        examples: [.init("A first app", "countersign app create blog --name 'Our blog'")]
    ) { invocation in
        let (app, writeKey) = try invocation.appDirectory().createApp(
            id: invocation.requiredWord(of: id), name: invocation.value(of: name))
        invocation.io.say("Made the app \(app.id) in \(try invocation.dataDirectory()).")
        invocation.io.say("Its write key, shown only now:")
        try invocation.io.print(writeKey)
        invocation.io.say("Next: countersign key add \(app.id) public.pem")
        return .done
    }

    private static let list = Command(
        "app list", summary: "List the apps", flags: [.json, .data],
        examples: [.init("Which apps are there?", "countersign app list")]
    ) { invocation in
        let apps = try invocation.appDirectory().apps()
        if invocation.isSet(.json) {
            try invocation.io.print(.array(apps.map(\.json)))
            return .done
        }
        if apps.isEmpty {
            invocation.io.say(
                "No app in \(try invocation.dataDirectory()). Next: countersign app create shop")
            return .done
        }
        var table = TextTable(rightAligned: [2])
        table.add("APP", "ENFORCEMENT", "KEYS", "NAME")
        for app in apps { table.add(app.id, app.enforcement.rawValue, String(app.keys.count), app.name) }
        for line in table.lines { try invocation.io.print(line) }
        return .done
    }

    private static let show = Command(
        "app show", summary: "Show an app, its rules for tokens and its keys",
        positionals: [id], flags: [.json, .data],
        examples: [.init("How is this app judged?", "countersign app show shop")]
    ) { invocation in
        let app = try invocation.appDirectory().app(id: invocation.requiredWord(of: id))
        if invocation.isSet(.json) {
            try invocation.io.print(app.json)
            return .done
        }
        var table = TextTable()
        table.add("app", app.id)
        table.add("name", app.name)
        table.add("enforcement", app.enforcement.rawValue)
        table.add("algorithms", app.policy.algorithms.map(\.rawValue).joined(separator: " "))
        table.add("leeway", "\(app.policy.leeway) s")
        table.add("made", RFC3339.text(milliseconds: app.createdMilliseconds))
        for key in app.keys { table.add("\(key.slot) key", key.id, key.description) }
        for line in table.lines { try invocation.io.print(line) }
        return .done
    }
}

extension App {
    /// The app as commands print it with `--json`.
    var json: JSONValue {
        [
            "id": .string(id), "name": .string(name), "enforcement": .string(enforcement.rawValue),
            "algorithms": .array(policy.algorithms.map { .string($0.rawValue) }),
            "leeway_seconds": .number(policy.leeway), "created_ms": .integer(createdMilliseconds),
            "keys": .array(keys.map(\.json)),
        ]
    }
}

extension AppKey {
    /// The key as commands print it with `--json`.
    var json: JSONValue {
        [
            "id": .string(id), "slot": .string("\(slot)"), "description": .string(description),
            "added_ms": .integer(addedMilliseconds), "text": .string(text),
        ]
    }
}
