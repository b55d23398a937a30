internal import CountersignCore
internal import GatewayModel

extension Flag {
    static func hold(for noun: String) -> Flag {
        Flag(
            "hold-days", .duration(.days, 1...EventConsumerSettings.longestHold),
            help: "how many extra days retention waits for this \(noun); none by default")
    }
}

/// Commands that `consumer`, `webhook`, `stream` and `files` share. Each of these nouns is a way to receive the events
/// of an app.
struct WayCommands: Sendable {
    let noun: String
    /// The path segments after the app's id that identify the item in the admin API.
    let path: @Sendable (Invocation) throws -> [String]
    let positionals: [Positional]
    let example: String

    static let state: KeyValuePairs<String, Column> = [
        "STATE": "state", "POSITION": "position", "LAG": "lag_events", "OLDEST UNREAD": "oldest_unread_ms",
        "MISSED": "events_missed", "LAST SUCCESS": "last_success_ms", "LAST FAILURE": "last_failure_ms",
        "ERROR": "error", "REASON": "reason", "FAILURES": "failures", "FAILING SINCE": "failing_since_ms",
        "NEXT ATTEMPT": "next_attempt_ms",
    ]

    /// If there are no items, prints a `create` command with these `arguments`.
    func list(
        _ summary: String, _ purpose: String, _ columns: KeyValuePairs<String, Column>,
        toCreate arguments: String
    ) -> Command {
        Command(
            "\(noun) list", summary: summary, positionals: [.app], flags: [.json] + Flag.target,
            examples: [purpose: "countersign \(noun) list shop"]
        ) { invocation in
            try invocation.printList(
                try await invocation.admin().items("apps", invocation.app, noun + "s"), columns,
                empty: "No \(noun). Next: countersign \(noun) create \(invocation.app) \(arguments)")
        }
    }

    func show(
        _ summary: String, details: String = "", _ purpose: String, _ settings: KeyValuePairs<String, Column>,
        also: @escaping @Sendable (Invocation, JSONValue) throws -> Void = { _, _ in }
    ) -> Command {
        Command(
            "\(noun) show", summary: summary, details: details, positionals: positionals,
            flags: [.json] + Flag.target, examples: [purpose: "countersign \(noun) show \(example)"]
        ) { invocation in
            let found = try await request("GET", [], invocation)
            try invocation.print(found) {
                let columns = Array(settings) + Self.state
                try invocation.io.print(
                    TextTable(rows: columns.map { [$0.key, $0.value.cell(found, invocation.io.now)] }))
                try also(invocation, found)
            }
        }
    }

    func pause(_ summary: String, _ purpose: String, _ said: String) -> Command {
        action("pause", summary, purpose, said)
    }

    func resume(_ summary: String, _ purpose: String, _ said: String) -> Command {
        action(
            "resume", summary, details: "Also ends the wait after failures: the next attempt starts at once.",
            purpose, said)
    }

    private func action(
        _ verb: String, _ summary: String, details: String = "", _ purpose: String, _ said: String
    ) -> Command {
        Command(
            "\(noun) \(verb)", summary: summary, details: details, positionals: positionals,
            flags: Flag.target, examples: [purpose: "countersign \(noun) \(verb) \(example)"]
        ) { invocation in
            _ = try await request("POST", [verb], invocation)
            invocation.io.say(said)
        }
    }

    func seek(
        _ summary: String, details: String = "", _ purpose: String,
        _ said: @escaping @Sendable (JSONValue) -> String
    ) -> Command {
        Command(
            "\(noun) seek", summary: summary, details: details, positionals: positionals,
            flags: Flag.start + [.json] + Flag.target,
            examples: [purpose: "countersign \(noun) seek \(example) --time 1d"]
        ) { invocation in
            let body = try invocation.start()
            guard !body.isEmpty else {
                throw CommandError(.usage, "no position was given", hint: "give --from, --time or --position")
            }
            let moved = try await request("POST", ["seek"], body: .object(body), invocation)
            try invocation.print(moved) { invocation.io.say(said(moved)) }
        }
    }

    func delete(_ summary: String) -> Command {
        Command(
            "\(noun) delete", summary: summary, positionals: positionals, flags: Flag.target,
            examples: ["Undo an addition": "countersign \(noun) delete \(example)"]
        ) { invocation in
            _ = try await request("DELETE", [], invocation)
            invocation.io.say("Deleted.")
        }
    }

    private func request(
        _ method: String, _ more: [String], body: JSONValue? = nil, _ invocation: Invocation
    ) async throws -> JSONValue {
        let path = ["apps", invocation.app] + (try path(invocation)) + more
        return try await invocation.admin().send(AdminRequest(method: method, path: path, body: body)).body
    }
}
