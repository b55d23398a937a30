internal import CountersignCore
internal import CountersignGateway
internal import Foundation

/// `countersign key …`.
enum KeyCommand {
    static let commands = [add, list]

    private static let app = Positional("APP", help: "the app's id")
    private static let file = Positional("FILE", help: "a public key as PEM or JWK; - reads standard input")
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

    private static let list = Command(
        "key list", summary: "List the public keys of an app", positionals: [app], flags: [.json, .data],
        examples: [.init("Which keys verify this app's tokens?", "countersign key list shop")]
    ) { invocation in
        let app = try invocation.appDirectory().app(id: invocation.requiredWord(of: app))
        if invocation.isSet(.json) {
            try invocation.io.print(.array(app.keys.map(\.json)))
            return .done
        }
        if app.keys.isEmpty {
            invocation.io.say("\(app.id) has no key. Next: countersign key add \(app.id) public.pem")
            return .done
        }
        var table = TextTable()
        table.add("SLOT", "ID", "ADDED", "DESCRIPTION")
        for key in app.keys {
            table.add(
                "\(key.slot)", key.id, RFC3339.text(milliseconds: key.addedMilliseconds), key.description)
        }
        for line in table.lines { try invocation.io.print(line) }
        return .done
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
