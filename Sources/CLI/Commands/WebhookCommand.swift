internal import CountersignCore
internal import GatewayModel

enum WebhookCommand {
    static let commands = [
        list, create, show, update, pause, resume, rotate, test, deliveries, replay, delete, showAlerts,
        setAlerts, deleteAlerts,
    ]

    private static let id = Positional(
        "WEBHOOK", completes: .ofApp("webhooks"),
        help: "the webhook's id, as `countersign webhook list` shows it")
    private static let idOrAlerts = Positional(
        "WEBHOOK", completes: .ofApp("webhooks"),
        help: "the webhook's id, or alerts for the app's alert webhook")
    private static let url = Positional("URL", help: "where deliveries go: https://…")
    private static let alertURL = Positional("URL", help: "where alerts go: https://…")

    private static let newURL = Flag("url", .text("URL"), help: "a new address")
    private static let name = Flag(
        "name", .text("TEXT"), mayBeEmpty: true,
        help: "only events with this name; in an update, empty means any name")
    private static let user = Flag(
        "user", .text("ID"), mayBeEmpty: true, completes: .users,
        help: "only this user's events: the id or the pseudonym; in an update, empty means any user")
    private static let claim = Flag(
        "claim", .text("NAME=VALUE"), mayBeEmpty: true,
        help: "only events with this kept claim; in an update, empty means any")
    static let batch = Flag(
        "batch-size", .integer("N", 1...500), help: "most events in one delivery; 100 by default")
    private static let all = Flag(
        "all-events", help: "remove filters that are not given")
    private static let from = Flag(
        "from", .choice(["end", "start"]), default: "end",
        help: "end: start with new events; start: with the oldest event that is kept")
    private static let hours = Flag(
        "hours", .duration(.hours, 0...168), default: "24", help: "how long the old secret keeps signing too")
    private static let limit = Flag(
        "limit", .integer("N", 1...500), default: "20", help: "maximum number")
    private static let delivery = Flag(
        "delivery", .text("ID"), help: "the events of the delivery with this webhook-id")
    private static let first = Flag(
        "from-seq", .integer("SEQ", 1...Int.max), help: "the number of the first event")
    private static let last = Flag(
        "to-seq", .integer("SEQ", 1...Int.max), help: "the number of the last event")
    private static let example =
        "$(countersign webhook create shop https://shop.example/in --secret-file secret)"
    private static let filters = [.verdict, .eventType, name, user, claim]
    private static let settings = filters + [batch, .hold(for: "webhook"), .allowPrivate]

    private static let list = shared.list(
        "List an app's webhooks", "Which webhooks are behind?",
        [
            "WEBHOOK": "id", "STATE": "state", "LAG": "lag_events", "OLDEST UNREAD": "oldest_unread_ms",
            "ERROR": "error", "URL": "url",
        ], toCreate: "URL")

    private static let create = Command(
        "webhook create", summary: "Deliver an app's events to a webhook",
        details: """
            Prints the webhook's id and its secret, which is shown only once. Deliveries are POST requests of up to 500
            events, in the order of storing and at least once each, signed according to the Standard Webhooks specification:
            any of its libraries verifies them. Deliveries not answered with 2xx are retried for up to five days.
            """,
        positionals: [.app, url], flags: settings + [from, .secretFile, .json] + Flag.target,
        examples: [
            "All new events": "countersign webhook create shop https://shop.example/events",
            "Purchases with a valid token":
                "countersign webhook create shop https://shop.example/events --verdict verified --name 'Order Completed'",
        ]
    ) { invocation in
        var body = try members(invocation)
        // An empty text, such as an unset shell variable, would remove the filter and deliver all events.
        if let empty = body.first(where: { $0.value == .null }) {
            throw CommandError(.usage, "--\(empty.key) is empty")
        }
        body["url"] = .string(invocation[url])
        body["from"] = try invocation.json(of: from)
        let admin = try invocation.admin()
        try await invocation.printSecret("secret", of: "id") {
            try await admin.post("apps", invocation.app, "webhooks", body: .object(body))
        }
    }

    private static let shared = WayCommands(
        noun: "webhook", path: { ["webhooks", try webhook($0)] }, positionals: [.app, id],
        example: "shop \(example)")
    private static let show = shared.show(
        "Print a webhook and its progress", "Is it behind?",
        [
            "WEBHOOK": "id", "URL": "url", "VERDICT": "verdict", "TYPE": "type", "NAME": "name",
            "USER": "user", "CLAIM": "claim", "BATCH SIZE": "batch_size", "HOLDS DAYS": "hold_days",
            "COMMITTED": "committed_seq",
        ])

    private static let update = Command(
        "webhook update", summary: "Change a webhook",
        details:
            "Settings that are not given stay as they are. --all-events removes every filter that is not given, --name '' removes just that one.",
        positionals: [.app, id], flags: [newURL] + settings + [all] + Flag.target,
        examples: ["Larger deliveries": "countersign webhook update shop \(example) --batch-size 500"]
    ) { invocation in
        var body = try members(invocation)
        if invocation.isSet(all) {
            for flag in filters where body[flag.name] == nil { body[flag.name] = .null }
        }
        body["url"] = try invocation.json(of: newURL)
        guard !body.isEmpty else {
            throw CommandError(.usage, "nothing to change was given", hint: "such as --batch-size 500")
        }
        _ = try await invocation.admin().patch(
            "apps", invocation.app, "webhooks", try webhook(invocation), body: .object(body))
        invocation.io.say("Changed.")
    }

    private static let pause = shared.pause(
        "Pause deliveries to a webhook; it keeps its position", "Before an update",
        "Paused. New events are delivered when it is resumed, unless retention deletes them first.")
    private static let resume = shared.resume(
        "Resume deliveries to a webhook, and attempt the next one at once", "After an update",
        "Resumed. A running gateway attempts the next delivery within a second.")

    private static let rotate = Command(
        "webhook rotate", summary: "Give a webhook a new secret and print it",
        details: """
            Deliveries have two signatures until the old secret ends, so the receiver can switch at any time before then.
            --hours 0 ends the old one at once: use it after a leak.
            """,
        positionals: [.app, id], flags: [hours, .secretFile, .json] + Flag.target,
        examples: ["With a week to change over": "countersign webhook rotate shop \(example) --hours 168"]
    ) { invocation in
        let body: JSONValue = ["hours": try invocation.json(of: hours) ?? .null]
        let admin = try invocation.admin()
        try await invocation.printSecret("secret", of: "id") {
            try await admin.post(
                "apps", invocation.app, "webhooks", try webhook(invocation), "rotate", body: body)
        }
    }

    private static let test = Command(
        "webhook test", summary: "Send a test delivery to a webhook",
        details: """
            The running gateway sends {"type":"test"} within a second or so, even to a paused webhook; `countersign webhook
            deliveries` shows the outcome.
            """,
        positionals: [.app, idOrAlerts], flags: [.json] + Flag.target,
        examples: ["Can its receiver be reached?": "countersign webhook test shop \(example)"]
    ) { invocation in
        try printRequest(
            try await invocation.admin().post(
                "apps", invocation.app, "webhooks", invocation[idOrAlerts], "test"), invocation)
    }

    private static let deliveries = Command(
        "webhook deliveries", summary: "List delivery attempts to a webhook, newest first",
        positionals: [.app, idOrAlerts], flags: [limit, .json] + Flag.target,
        examples: ["Why is it behind?": "countersign webhook deliveries shop \(example)"]
    ) { invocation in
        let attempts = try await invocation.admin().items(
            "apps", invocation.app, "webhooks", invocation[idOrAlerts], "deliveries",
            limit: try invocation.integer(of: limit))
        try invocation.printList(
            attempts,
            [
                "AT": "at_ms", "KIND": "kind", "EVENTS": "events", "FIRST": "first_seq", "LAST": "last_seq",
                "ATTEMPT": "attempt", "MS": Column { $0["duration_ms"].shown }, "STATUS": "status",
                "ERROR": "error",
                "DELIVERY": "message_id",
            ], empty: "Nothing was delivered yet.", isLong: true)
    }

    private static let replay = Command(
        "webhook replay", summary: "Deliver events to a webhook again",
        details: """
            They are sent alongside new events, marked "replay": true and under a new id. The webhook's position does not change.
            """,
        positionals: [.app, id], flags: [delivery, first, last, .json] + Flag.target,
        examples: [
            "The first hundred": "countersign webhook replay shop \(example) --from-seq 1 --to-seq 100"
        ]
    ) { invocation in
        var body: JSONObject = [:]
        body["delivery"] = try invocation.json(of: delivery)
        body["from_seq"] = try invocation.json(of: first)
        body["to_seq"] = try invocation.json(of: last)
        guard body["delivery"] != nil || (body["from_seq"] != nil && body["to_seq"] != nil) else {
            throw CommandError(.usage, "--delivery is missing, or --from-seq and --to-seq")
        }
        try printRequest(
            try await invocation.admin().post(
                "apps", invocation.app, "webhooks", try webhook(invocation), "replay", body: .object(body)),
            invocation)
    }

    private static let delete = shared.delete("Delete a webhook and the log of its deliveries")

    private static let showAlerts = Command(
        "webhook alerts show", summary: "Print where an app's alerts are sent",
        positionals: [.app], flags: [.json] + Flag.target,
        examples: ["Are alerts sent?": "countersign webhook alerts show shop"]
    ) { invocation in
        let webhook = try await invocation.admin().get("apps", invocation.app, "webhook").body
        guard invocation.printsJSON || webhook["url"] != .null else {
            return invocation.io.say(
                "No alert webhook. Next: countersign webhook alerts set \(invocation.app) URL")
        }
        let isPrivateAllowed = Column { $0["allow_private"].isTrue ? "allowed" : "not allowed" }
        try invocation.printTable(webhook, ["URL": "url", "PRIVATE ADDRESS": isPrivateAllowed])
    }

    private static let setAlerts = Command(
        "webhook alerts set", summary: "Send an app's alerts to an address",
        details: """
            An app has one alert webhook. It receives no events, but an alert when many requests are rejected, when
            enforcement has reverted to optional, when a webhook was paused, when a stream is too far behind, and when events
            were deleted that a consumer had not confirmed. Requests are signed like a webhook's. The secret is made when
            there is no alert webhook yet, and shown only once; changing the address keeps it. For a new secret, delete
            the alert webhook first.
            """,
        positionals: [.app, alertURL], flags: [.allowPrivate, .secretFile, .json] + Flag.target,
        examples: [
            "Alert the people on call": "countersign webhook alerts set shop https://shop.example/alerts"
        ]
    ) { invocation in
        let admin = try invocation.admin()
        try await invocation.printSecret("secret", of: "url") {
            try await admin.change("apps", invocation.app, "webhook") {
                $0["url"] = .string(invocation[alertURL])
                $0["allow_private"] = .bool(invocation.isSet(.allowPrivate))
            }
        }
    }

    private static let deleteAlerts = Command(
        "webhook alerts delete", summary: "Delete an app's alert webhook and the alerts that wait for it",
        positionals: [.app], flags: Flag.target,
        examples: ["Send no more alerts": "countersign webhook alerts delete shop"]
    ) { invocation in
        var wasSet = false
        _ = try await invocation.admin().change("apps", invocation.app, "webhook") {
            wasSet = $0["url"] != .null
            $0 = ["url": .null]
        }
        invocation.io.say(wasSet ? "Deleted." : "\(invocation.app) has no alert webhook.")
    }

    /// The given id. Throws `usage` for the alert webhook, which has its own commands.
    private static func webhook(_ invocation: Invocation) throws -> String {
        let given = invocation[id]
        guard given != "alerts" else {
            throw CommandError(
                .usage, "\(invocation.commandName) is not for the alert webhook",
                hint: "`countersign webhook alerts` shows, sets and deletes it")
        }
        return given
    }

    private static func members(_ invocation: Invocation) throws -> JSONObject {
        var members: JSONObject = [:]
        for flag in filters {
            members[flag.name] = try invocation.json(of: flag).map { $0 == "" ? .null : $0 }
        }
        members["batch_size"] = try invocation.json(of: batch)
        members["hold_days"] = try invocation.json(of: .hold(for: "webhook"))
        if invocation.isSet(.allowPrivate) { members["allow_private"] = true }
        return members
    }

    private static func printRequest(_ answer: JSONValue, _ invocation: Invocation) throws {
        try invocation.print(answer) {
            invocation.io.say("Requested. The running gateway delivers it under the id")
            try invocation.io.print(answer["message_id"].shown)
        }
    }
}
