internal import CountersignCore
internal import CountersignJOSE
internal import Foundation

/// `countersign event …`.
enum EventCommand {
    static let commands = [list, export]

    private static let user = Flag("user", .text("ID"), help: "only this user's: the id, or the pseudonym")
    private static let messageID = Flag("message-id", .text("ID"), help: "only events with this message id")
    private static let type = Flag("type", .choice(EventKind.all.map(\.rawValue)), help: "only this kind")
    private static let name = Flag("name", .text("TEXT"), help: "only events of this name")
    private static let since = Flag(
        "since", .text("TIME"), help: "received from then on: 2026-11-21T08:30:00Z, or 10m, 2h, 7d ago")
    private static let until = Flag("until", .text("TIME"), help: "received before this time")
    private static let limit = Flag(
        "limit", .integer("N", 1...10_000), default: "20", help: "how many at most")
    private static let format = Flag(
        "format", .choice(["ndjson", "csv"]), default: "ndjson", help: "one JSON object a line, or CSV")
    private static let filters = [user, messageID, type, name, since, until, .unmask]

    private static let list = Command(
        "event list", summary: "List an app's events, the newest first",
        details: """
            --json prints one object per line, with the event's body and its members sorted. A server shows pseudonyms instead
            of user ids, and hides whatever else identifies a user, unless you give --unmask.
            """,
        positionals: [.app], flags: filters + [limit, .json] + Flag.place,
        examples: [
            .init("What came last?", "countersign event list shop"),
            .init(
                "One user's purchases", "countersign event list shop --user user-1 --name 'Order Completed'"),
        ]
    ) { invocation in
        let appID = invocation.requiredWord(of: .app)
        let events = try await invocation.admin().items(
            "apps", appID, "events", query: try query(invocation),
            limit: try invocation.integer(of: limit) ?? 20)
        if invocation.isSet(.json) {
            for event in events { try invocation.io.print(event) }
            return .done
        }
        try invocation.printList(
            events, header: ["RECEIVED", "TYPE", "NAME", "USER", "MESSAGE ID"],
            empty: "No such event of \(appID)."
        ) { event in
            let user = event["user_id"].text ?? event["anonymous_id"].text
            return [
                event["received_ms"].time, event["type"].shown, TerminalText.safe(event["name"].text ?? ""),
                TerminalText.safe(user ?? ""), event["message_id"].shown,
            ]
        }
        return .done
    }

    private static let export = Command(
        "event export", summary: "Print an app's events, the oldest first",
        details: """
            NDJSON is what `countersign send` reads: one event per line, its members sorted. CSV has the columns that every
            event has, with the event itself as JSON in the last one. A server shows pseudonyms instead of user ids, and hides
            whatever else identifies a user, unless you give --unmask: an export that you want to send elsewhere needs it.
            """,
        positionals: [.app], flags: filters + [format] + Flag.place,
        examples: [.init("All that an app has", "countersign event export shop")]
    ) { invocation in
        let format = try invocation.value(of: format)
        let request = AdminRequest(
            method: "GET", path: ["apps", invocation.requiredWord(of: .app), "events", "export"],
            query: try query(invocation) + [("format", format)])
        let io = invocation.io
        guard format != "csv" else {
            let text = Lock(TextPieces())
            try await invocation.admin().stream(request) { bytes in
                try io.output(text.withLock { $0.whole(bytes) })
            }
            return .done
        }
        let lines = Lock(TextPieces())
        let count = Lock(0)
        try await invocation.admin().stream(request) { bytes in
            let found = lines.withLock { $0.lines(bytes) }
            var text = ""
            for line in found {
                let body = try StrictJSONParser(maximumBytes: max(1, line.count), maximumDepth: 1_024)
                    .parse(bytes: line) { $0.value["body"] }
                text += String(decoding: body.bytes, as: UTF8.self) + "\n"
            }
            count.withLock { $0 += found.count }
            if !text.isEmpty { try io.output(text) }
        }
        let total = count.withLock { $0 }
        io.say("\(total) \(total == 1 ? "event" : "events").")
        return .done
    }

    private static func query(
        _ invocation: Invocation
    ) throws(CommandError) -> [(name: String, value: String?)] {
        [
            ("user", try invocation.value(of: user)), ("message_id", try invocation.value(of: messageID)),
            ("type", try invocation.value(of: type)), ("name", try invocation.value(of: name)),
            ("from_ms", try invocation.time(of: since).map { String($0) }),
            ("to_ms", try invocation.time(of: until).map { String($0) }), invocation.unmasking,
        ]
    }
}
