internal import CountersignCore
internal import GatewayModel

enum StreamCommand {
    static let commands = [create, list, show, pause, resume, seek, delete]

    private static let name = Positional(
        "NAME", completes: .ofApp("streams", member: "name"), help: "the stream's name in the gateway")
    private static let servers = Positional(
        "SERVERS", help: "nats://HOST:PORT or tls://HOST:PORT; comma-separated if several")
    private static let stream = Positional(
        "STREAM", help: "the JetStream stream's name; it is created if it does not exist")

    private static let subject = Flag(
        "subject", .text("TEMPLATE"), default: SubjectTemplate.standard,
        help:
            "the subject of messages: words, {app}, {type} and {user} (16 digits of the id's SHA-256)"
    )
    private static let replicas = Flag(
        "replicas", .integer("N", 1...5), default: "1",
        help: "how many servers keep the stream: 1, 3 or 5; an existing stream with fewer is rejected")
    private static let authority = Flag(
        "stream-ca-file", .text("FILE"),
        help: "CA certificates for the servers; default: the system's")
    private static let credentials = Flag(
        "credentials-file", .text("FILE"), help: "a .creds file: a user's JWT and NKEY seed")
    private static let nkey = Flag("nkey", .text("KEY"), help: "a user's public NKEY, which begins with U")
    private static let seed = Flag("nkey-seed-file", .text("FILE"), help: "the seed of that NKEY")
    private static let hold = Flag.hold(for: "stream")
    private static let alert = Flag(
        "alert-seconds", .duration(.seconds, 10...2_592_000), default: "600",
        help: "send an alert to the app's alert webhook when events wait longer than this")
    private static let shared = WayCommands(
        noun: "stream", path: { ["streams", $0[name]] }, positionals: [.app, name],
        example: "shop $(countersign stream create shop warehouse nats://127.0.0.1:4222 EVENTS)")

    private static let create = Command(
        "stream create", summary: "Publish an app's events to a NATS JetStream stream",
        details: """
            Publishes every event once, in the order of storing, even if the gateway or the servers are killed. By
            default it starts with the oldest event. The gateway reads the files, so they must be on its machine.
            Nothing else should write to the JetStream stream.
            """,
        positionals: [.app, name, servers, stream],
        flags: [subject, replicas, authority, credentials, nkey, seed, hold, alert] + Flag.start + [.json]
            + Flag.target,
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
        body["ca_file"] = try invocation.json(of: authority)
        for flag in [subject, credentials, nkey, seed, replicas, hold, alert] {
            body[flag.name.replacing("-", with: "_")] = try invocation.json(of: flag)
        }
        let made = try await invocation.admin().post(
            "apps", invocation.app, "streams", body: .object(body))
        try invocation.print(made) {
            invocation.io.say("Created the stream. A running gateway starts it within a second.")
            try invocation.io.print(made["name"].shown)
        }
    }

    private static let list = shared.list(
        "List an app's streams and their lag", "Does everything arrive?",
        [
            "NAME": "name", "STATE": "state", "LAG": "lag_events", "OLDEST UNREAD": "oldest_unread_ms",
            "STREAM": "stream", "MESSAGES": "stream_seq", "ERROR": "error",
        ], toCreate: "NAME SERVERS STREAM")

    private static let show = shared.show(
        "Show a stream, its progress and its last error", "Why is it behind?",
        [
            "NAME": "name", "SERVERS": "servers", "STREAM": "stream", "SUBJECT": "subject",
            "MESSAGES": "stream_seq", "HOLDS DAYS": "hold_days",
        ]
    ) { invocation, stream in
        guard stream["error"].text == "mark_unusable" else { return }
        invocation.io.say(
            "Choose where it resumes: countersign stream seek \(invocation.app) \(invocation[name]) --from start"
        )
    }

    private static let pause = shared.pause(
        "Pause publishing to a stream", "Before an update of NATS",
        "Paused. New events are published when it is resumed, unless retention deletes them first.")
    private static let resume = shared.resume(
        "Resume publishing to a stream", "After an update of NATS", "Resumed.")
    private static let seek = shared.seek(
        "Publish again from a given event, even if it is in the stream",
        details: """
            Use it to replay events. Events after the given one are published again, at the end of the stream. To refill
            the stream, delete it on the server: the gateway recreates it and starts from the original position.
            """, "The last day again"
    ) { _ in "Moved." }
    private static let delete = shared.delete("Delete a stream; its messages stay on the server")
}
