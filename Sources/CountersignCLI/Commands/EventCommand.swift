internal import CountersignCore
internal import CountersignGateway
internal import Foundation

/// `countersign event …`.
enum EventCommand {
    static let commands = [list, export]

    private static let app = Positional("APP", help: "the app's id")
    private static let user = Flag("user", .text("ID"), help: "only this user's")
    private static let messageID = Flag("message-id", .text("ID"), help: "only the one with this message id")
    private static let type = Flag("type", .choice(EventKind.all.map(\.rawValue)), help: "only this kind")
    private static let name = Flag("name", .text("TEXT"), help: "only events of this name")
    private static let since = Flag(
        "since", .text("TIME"), help: "received from then on: 2026-11-21T08:30:00Z, or 10m, 2h, 7d ago")
    private static let until = Flag("until", .text("TIME"), help: "received before then")
    private static let limit = Flag(
        "limit", .integer("N", 1...10_000), default: "20", help: "at most so many")
    private static let format = Flag(
        "format", .choice(["ndjson", "csv"]), default: "ndjson", help: "one JSON object a line, or CSV")
    private static let filters = [user, messageID, type, name, since, until]

    private static let list = Command(
        "event list", summary: "List an app's events, the newest first",
        details: "With --json one object a line, with the event's body as it came.",
        positionals: [app], flags: filters + [limit, .json, .data],
        examples: [
            .init("What came last?", "countersign event list shop"),
            .init(
                "One user's purchases", "countersign event list shop --user user-1 --name 'Order Completed'"),
        ]
    ) { invocation in
        let query = try query(invocation)
        let events = try EventReader(dataDirectory: try invocation.dataDirectory())
            .newest(query, limit: try invocation.integer(of: limit) ?? 20)
        if invocation.isSet(.json) {
            for event in events { try invocation.io.print(event.json) }
            return .done
        }
        if events.isEmpty { invocation.io.say("No such event of \(query.appID).") }
        var table = TextTable()
        table.add("RECEIVED", "TYPE", "NAME", "USER", "MESSAGE ID")
        for event in events {
            table.add(
                RFC3339.text(milliseconds: event.receivedMilliseconds), event.type,
                TerminalText.safe(event.name ?? ""),
                TerminalText.safe(event.userID ?? event.anonymousID ?? ""),
                TerminalText.safe(event.messageID))
        }
        for line in events.isEmpty ? [] : table.lines { try invocation.io.print(line) }
        return .done
    }

    private static let export = Command(
        "event export", summary: "Print an app's events, the oldest first",
        details: """
            NDJSON is what `countersign send` takes: each line is the event as it came. CSV has the columns that all events
            have, and the event as JSON in the last one.
            """,
        positionals: [app], flags: filters + [format, .data],
        examples: [.init("All that an app has", "countersign event export shop")]
    ) { invocation in
        let query = try query(invocation)
        let reader = try EventReader(dataDirectory: try invocation.dataDirectory())
        let isCSV = try invocation.value(of: format) == "csv"
        if isCSV {
            try invocation.io.output(
                "seq,received,timestamp,type,name,user_id,anonymous_id,message_id,body\r\n")
        }
        var last: Int64 = 0
        var count = 0
        while true {
            let page = try reader.oldest(query, behind: last, limit: 500)
            guard let end = page.last else { break }
            last = end.sequence
            count += page.count
            var text = ""
            for event in page {
                text += isCSV ? csv(event) : String(decoding: event.body, as: UTF8.self) + "\n"
            }
            try invocation.io.output(text)
        }
        invocation.io.say("\(count) \(count == 1 ? "event" : "events").")
        return .done
    }

    private static func query(_ invocation: Invocation) throws -> EventQuery {
        let directory = try invocation.appDirectory()
        var query = EventQuery(appID: try directory.app(id: invocation.requiredWord(of: app)).id)
        query.userID = try invocation.value(of: user)
        query.messageID = try invocation.value(of: messageID)
        query.type = try invocation.value(of: type)
        query.name = try invocation.value(of: name)
        query.fromMilliseconds = try invocation.time(of: since)
        query.toMilliseconds = try invocation.time(of: until)
        return query
    }

    /// One line (RFC 4180). A field that a spreadsheet would take for a formula gets an apostrophe before it.
    private static func csv(_ event: StoredEvent) -> String {
        let fields = [
            String(event.sequence), RFC3339.text(milliseconds: event.receivedMilliseconds),
            RFC3339.text(milliseconds: event.timestampMilliseconds), event.type, event.name ?? "",
            event.userID ?? "", event.anonymousID ?? "", event.messageID,
            String(decoding: event.body, as: UTF8.self),
        ]
        return fields.map { field in
            let safe = field.first.map { "=+-@\t".contains($0) } == true ? "'" + field : field
            return safe.contains { "\",\r\n".contains($0) }
                ? "\"" + safe.replacingOccurrences(of: "\"", with: "\"\"") + "\"" : safe
        }.joined(separator: ",") + "\r\n"
    }
}

/// What a client sent, on a terminal.
enum TerminalText {
    /// The text with every control character replaced, so that it can neither move the cursor nor change colours.
    static func safe(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { scalar in
                    switch scalar.properties.generalCategory {
                    case .control, .format, .lineSeparator, .paragraphSeparator: "\u{FFFD}"
                    default: scalar
                    }
                }))
    }
}

extension Invocation {
    /// A flag's time in milliseconds since 1970: a date and time, or how long ago as `30s`, `10m`, `2h`, `7d`.
    func time(of flag: Flag) throws(CommandError) -> Int64? {
        guard let text = try value(of: flag) else { return nil }
        if let milliseconds = RFC3339.milliseconds(text.utf8) { return milliseconds }
        let units: [Character: Double] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
        if let unit = text.last.flatMap({ units[$0] }), let count = Double(text.dropLast()), count >= 0,
            count < 1e6
        {
            return Int64((Date().timeIntervalSince1970 - count * unit) * 1000)
        }
        throw CommandError(
            .usage, "--\(flag.name) takes a time such as 2026-11-21T08:30:00Z, or 10m, 2h, 7d, not '\(text)'")
    }
}
