internal import CountersignCore
internal import GatewayModel

enum ConsumerCommand {
    static let commands = [create, list, show, seek, delete]

    private static let name = Positional(
        "CONSUMER", completes: .ofApp("consumers", member: "name"), help: "the consumer's name")
    private static let partitions = Flag(
        "partitions", .integer("N", 1...EventConsumerSettings.mostPartitions), default: "1",
        help: "how many workers may read at the same time; each user's events stay in order")
    private static let hold = Flag.hold(for: "consumer")
    private static let shared = WayCommands(
        noun: "consumer", path: { ["consumers", $0[name]] }, positionals: [.app, name],
        example: "shop $(countersign consumer create shop billing)")

    private static var leased: Column {
        Column { item in
            let partitions = item["partitions"].elements
            let leased = partitions.filter { $0["leased_until_ms"] != .null }
            return "\(leased.count) of \(partitions.count)"
        }
    }

    private static let create = Command(
        "consumer create", summary: "Create a consumer of an app's events and print its name",
        details: """
            A consumer is a name and a position: a backend leases the next events, processes and confirms them, and resumes
            from there after a crash. It starts before the oldest event by default. Reading requires an API token:
            `countersign admin token create --scopes reader --app APP`.
            """,
        positionals: [.app, name],
        flags: [partitions, hold] + Flag.filter + Flag.start + [.json] + Flag.target,
        examples: [
            "All new verified events":
                "countersign consumer create shop billing --verdict verified --from end"
        ]
    ) { invocation in
        var body = try invocation.start()
        body["name"] = .string(invocation[name])
        body["partitions"] = try invocation.json(of: partitions)
        body["hold_days"] = try invocation.json(of: hold)
        var filter: JSONObject = [:]
        for flag in Flag.filter { filter[flag.name] = try invocation.json(of: flag) }
        if !filter.isEmpty { body["filter"] = .object(filter) }
        let made = try await invocation.admin().post(
            "apps", invocation.app, "consumers", body: .object(body))
        try invocation.print(made) {
            invocation.io.say("Created a consumer, \(made["lag_events"].counted("event")) behind.")
            try invocation.io.print(made["name"].shown)
        }
    }

    private static let list = shared.list(
        "List an app's event consumers and how far behind they are", "Which consumers are behind?",
        [
            "NAME": "name", "LAG": "lag_events", "OLDEST UNREAD": "oldest_unread_ms", "LEASED": leased,
            "HOLDS DAYS": "hold_days", "MISSED": "events_missed",
        ], toCreate: "NAME")

    private static let show = shared.show(
        "Show an event consumer: its positions, leases and filter",
        details: "A consumer cannot be paused: to pause, stop the backend that reads.",
        "How far behind is it?",
        ["NAME": "name", "LEASED": leased, "HOLDS DAYS": "hold_days"]
    ) { invocation, consumer in
        for partition in consumer["partitions"].elements {
            try invocation.io.print(
                "partition \(partition["partition"].shown): \(partition["position"].shown)")
        }
    }

    private static let seek = shared.seek(
        "Move an event consumer; leases end, and events after the new position are read again",
        details: "Use it to replay events.", "Read the last day again"
    ) { "Moved, \($0["lag_events"].counted("event")) before the newest." }
    private static let delete = shared.delete("Delete an event consumer and its position")
}
