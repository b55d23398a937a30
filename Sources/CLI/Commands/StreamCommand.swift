internal import CountersignCore
internal import GatewayModel

/// `countersign stream …`.
enum StreamCommand {
    static let commands = [create, list, show, pause, resume, seek, delete]

    private static let name = Positional("NAME", help: "the stream's name in the gateway")
    private static let servers = Positional(
        "SERVERS", help: "nats://HOST:PORT or tls://HOST:PORT; comma-separated if several")
    private static let stream = Positional(
        "STREAM", help: "the JetStream stream's name; it is created if it does not exist")

    private static let subject = Flag(
        "subject", .text("TEMPLATE"), default: SubjectTemplate.standard,
        help:
            "what events are published under: words, {app}, {type} and {user} (16 digits of the id's SHA-256)"
    )
    private static let replicas = Flag(
        "replicas", .integer("N", 1...5), default: "1",
        help: "how many servers keep the stream: 1, 3 or 5; an existing stream with fewer is refused")
    private static let authority = Flag(
        "stream-ca-file", .text("FILE"),
        help: "CA certificates for the servers; default: the system's")
    private static let credentials = Flag(
        "credentials-file", .text("FILE"), help: "a .creds file: a user's JWT and NKEY seed")
    private static let nkey = Flag("nkey", .text("KEY"), help: "a user's public NKEY, which begins with U")
    private static let seed = Flag("nkey-seed-file", .text("FILE"), help: "the seed of that NKEY")
    private static let hold = Flag(
        "hold-days", .duration(.days, 1...EventConsumerSettings.longestHold),
        help: "how many extra days retention waits for this stream; none by default")
    private static let alert = Flag(
        "alert-seconds", .duration(.seconds, 10...2_592_000), default: "600",
        help: "tell the app's alert webhook when events wait longer than this")
    private static let example =
        "$(countersign stream create shop warehouse nats://127.0.0.1:4222 EVENTS)"

    private static var columns: KeyValuePairs<String, Column> {
        [
            "NAME": "name", "STATE": "state", "LAG": "lag_events", "OLDEST UNREAD": "oldest_unread_ms",
            "STREAM": "stream", "MESSAGES": "stream_seq", "ERROR": "error",
        ]
    }

    private static let create = Command(
        "stream create", summary: "Publish an app's events to a NATS JetStream stream",
        details: """
            Publishes every event once, in the order of storing, even if the gateway or the servers are killed. It starts
            with the oldest event that is kept by default. The gateway reads the files, so they must be on its machine. Only
            this stream should write to the stream.
            """,
        positionals: [.app, name, servers, stream],
        flags: [subject, replicas, authority, credentials, nkey, seed, hold, alert] + Flag.start + [.json]
            + Flag.place,
        examples: [
            "To a server on this machine":
                "countersign stream create shop warehouse nats://127.0.0.1:4222 EVENTS",
            "To a cluster that keeps three copies":
                "countersign stream create shop warehouse tls://n1.example:4222,tls://n2.example:4222 EVENTS --replicas 3 --credentials-file /etc/countersign/shop.creds",
        ]
    ) { invocation in
        var body = try invocation.start()
        body["name"] = .string(invocation[name])
        body["servers"] = .string(invocation[servers])
        body["stream"] = .string(invocation[stream])
        for (member, flag) in [
            ("subject", subject), ("ca_file", authority), ("credentials_file", credentials), ("nkey", nkey),
            ("nkey_seed_file", seed),
        ] {
            body[member] = try invocation.value(of: flag).map { .string($0) }
        }
        for (member, flag) in [("replicas", replicas), ("hold_days", hold), ("alert_seconds", alert)] {
            body[member] = try invocation.integer(of: flag).map { .integer(Int64($0)) }
        }
        let made = try await invocation.admin().post(
            "apps", invocation.app, "streams", body: .object(body))
        try invocation.print(made) {
            invocation.io.say("Created the stream. A running gateway starts it within a second.")
            try invocation.io.print(made["name"].shown)
        }
    }

    private static let list = Command(
        "stream list", summary: "List an app's streams and their lag",
        positionals: [.app], flags: [.json] + Flag.place,
        examples: ["Does everything arrive?": "countersign stream list shop"]
    ) { invocation in
        let items = try await invocation.admin().items("apps", invocation.app, "streams")
        try invocation.printList(
            items, columns, empty: "No stream. Next: countersign stream create APP NAME SERVERS STREAM")
    }

    private static let show = Command(
        "stream show", summary: "Show a stream, its progress and its last error",
        positionals: [.app, name], flags: [.json] + Flag.place,
        examples: ["Why is it behind?": "countersign stream show shop \(example)"]
    ) { invocation in
        let settings = try await invocation.admin().get("apps", invocation.app, "streams", invocation[name]).body
        try invocation.printTable(
            settings,
            [
                "NAME": "name", "SERVERS": "servers", "STREAM": "stream", "SUBJECT": "subject",
                "STATE": "state", "LAG": "lag_events", "OLDEST UNREAD": "oldest_unread_ms",
                "POSITION": "position", "MESSAGES": "stream_seq", "MISSED": "events_missed",
                "LAST SUCCESS": "last_success_ms", "LAST FAILURE": "last_failure_ms", "ERROR": "error",
                "REASON": "reason", "FAILURES": "failures", "FAILING SINCE": "failing_since_ms",
                "NEXT ATTEMPT": "next_attempt_ms", "HOLDS DAYS": "hold_days",
            ])
        if settings["error"].shown == "mark_unusable" {
            invocation.io.say(
                "Choose where it resumes: countersign stream seek \(invocation.app) \(invocation[name]) --from start"
            )
        }
    }

    private static let pause = Command(
        "stream pause", summary: "Pause publishing to a stream", positionals: [.app, name],
        flags: Flag.place, examples: ["Before an update of NATS": "countersign stream pause shop \(example)"]
    ) { invocation in
        _ = try await invocation.admin().post("apps", invocation.app, "streams", invocation[name], "pause")
        invocation.io.say(
            "Paused. New events are published when it is resumed, as far as they are still kept.")
    }

    private static let resume = Command(
        "stream resume", summary: "Resume publishing to a stream", positionals: [.app, name],
        flags: Flag.place, examples: ["After an update of NATS": "countersign stream resume shop \(example)"]
    ) { invocation in
        _ = try await invocation.admin().post("apps", invocation.app, "streams", invocation[name], "resume")
        invocation.io.say("Resumed.")
    }

    private static let seek = Command(
        "stream seek", summary: "Publish again from a given event, whatever the stream contains",
        details: """
            Events after that one are published again, at the end of the stream. To refill a stream from scratch, delete it
            there instead: the stream recreates it and starts from its original position.
            """,
        positionals: [.app, name], flags: Flag.start + [.json] + Flag.place,
        examples: ["The last day again": "countersign stream seek shop \(example) --time 1d"]
    ) { invocation in
        let body = try invocation.start()
        guard !body.isEmpty else {
            throw CommandError(.usage, "no position was given", hint: "give --from, --time or --position")
        }
        let moved = try await invocation.admin().post(
            "apps", invocation.app, "streams", invocation[name], "seek", body: .object(body))
        try invocation.print(moved) { invocation.io.say("Moved.") }
    }

    private static let delete = Command(
        "stream delete", summary: "Delete a stream; its messages stay on the server",
        positionals: [.app, name], flags: Flag.place,
        examples: ["Undo an addition": "countersign stream delete shop \(example)"]
    ) { invocation in
        try await invocation.admin().delete("apps", invocation.app, "streams", invocation[name])
        invocation.io.say("Deleted \(invocation[name]).")
    }
}
