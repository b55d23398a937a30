internal import CountersignCore
internal import GatewayModel

enum EventCommand {
    static let commands = [list, show, export]

    private static let user = Flag(
        "user", .text("ID"), completes: .users, help: "only this user's events: the id or the pseudonym")
    private static let messageID = Flag("message-id", .text("ID"), help: "only events with this message id")
    private static let requestID = Flag(
        "request-id", .text("ID"), help: "only events of the request with this X-Request-Id")
    private static let position = Positional(
        "POSITION", help: "the event's position, as `event list --json` prints it")
    private static let unverified = Flag("unverified", help: "only events without a valid token")
    private static let since = Flag(
        "since", .text("TIME"),
        help: "received at or after this time: 2026-11-21T08:30:00Z, or 10m, 2h, 7d ago")
    private static let until = Flag("until", .text("TIME"), help: "received before this time")
    private static let limit = Flag.limit(default: 20)
    private static let format = Flag(
        "format", .choice(["ndjson", "csv"]), default: "ndjson", help: "one JSON object per line, or CSV")
    private static let after = Flag(
        "after", .text("POSITION"),
        help: "only events after this position, or start for all; prints whole entries")
    private static let follow = Flag(
        "follow", help: "keep printing new events until Ctrl-C; prints whole entries")
    private static let filters = [
        user, messageID, requestID, .eventType, .eventName, .verdict, unverified, .claim, since, until,
    ]

    private static let list = Command(
        "event list", summary: "List an app's events, newest first",
        details: """
            --json prints one object per line, with the event's body and its members sorted. A server shows a viewer, and a
            token with only the scope read, pseudonyms instead of user ids and nothing that the app sent.
            """,
        positionals: [.app], flags: filters + [limit, .json] + Flag.target,
        examples: [
            "The newest events": "countersign event list shop",
            "Events without a valid token": "countersign event list shop --unverified",
            "The events of one request":
                "countersign event list shop --request-id 019aab3c-7d5e-7c1a-b6a2-8c0b3f7d2e11",
            "One user's purchases": "countersign event list shop --user user-1 --name 'Order Completed'",
        ]
    ) { invocation in
        let query = try query(invocation)
        let isFiltered = query.contains { $0.value != nil }
        let events = try await invocation.admin().items(
            "apps", invocation.app, "events", query: query,
            limit: try invocation.integer(of: limit))
        try invocation.printList(
            events,
            [
                "RECEIVED": "received_ms", "VERDICT": "verdict", "TYPE": "type",
                "NAME": Column { TerminalText.safe(String(($0["name"].text ?? "").prefix(80))) },
                "USER": Column { TerminalText.safe($0["user_id"].text ?? $0["anonymous_id"].text ?? "") },
                "CLAIMS": Column { event in
                    (event["claims"].members ?? [:]).sorted { $0.key < $1.key }
                        .map { "\(TerminalText.safe($0.key))=\($0.value.shown)" }
                        .joined(separator: " ")
                },
                "MESSAGE ID": "message_id",
            ],
            empty: isFiltered
                ? "No such event of \(invocation.app)." : "\(invocation.app) has no events yet.",
            isLong: true)
    }

    private static let show = Command(
        "event show", summary: "Print one event, by its position",
        details: """
            A message id is unique only for one user. A position names exactly one event of the app, also in a link that the
            dashboard copies.
            """,
        positionals: [.app, position], flags: Flag.target,
        examples: [
            "One event": "countersign event show shop AcLxQm3k0vZzq4mJAAAAAAAAABGfY0pS"
        ]
    ) { invocation in
        let event = try await invocation.admin().get(
            "apps", invocation.app, "events", invocation[position]
        ).body
        try invocation.io.print(json: event.bytes)
    }

    private static let export = Command(
        "event export", summary: "Print an app's events, oldest first",
        details: """
            NDJSON is what `countersign send` reads: one event per line, as it was sent. CSV has the columns that every
            event has, with the event itself as JSON in the last one. With --server it needs the scope write, and the export
            is audited: one that continues after a position only once a day.
            With --after or --follow each line is an event's whole entry: position, time of receipt, verdict, and in body
            the event as it came. The position to resume from is printed on standard error, also after Ctrl-C, which ends --follow
            with status 0. If retention has deleted events after the position, the first line after the gap has
            "events_missed":true, standard error reports it, and the status is 1 although all other events were printed.
            """,
        positionals: [.app], flags: filters + [format, after, follow] + Flag.target,
        examples: [
            "All events of an app": "countersign event export shop",
            "With verdict and position": "countersign event export shop --after start",
        ]
    ) { invocation in
        let format = try invocation.value(of: format)
        let after = try invocation.value(of: after)
        if after != nil || invocation.isSet(follow) {
            guard format != "csv" else {
                throw CommandError(.usage, "CSV has no positions", hint: "leave --format out")
            }
            guard !invocation.isSet(follow) || invocation.flagValues[until.name] == nil else {
                throw CommandError(
                    .usage, "--follow has no end, so --until does not go with it", hint: "give one of the two"
                )
            }
            return try await printEntries(after: after == "start" ? nil : after, invocation)
        }
        let request = AdminRequest(
            method: "GET", path: ["apps", invocation.app, "events", "export"],
            query: try query(invocation) + [("format", format)])
        let io = invocation.io
        guard format != "csv" else {
            let text = Lock(LineBuffer())
            try await invocation.admin().stream(request) { bytes in
                let whole = text.withLock { String(decoding: $0.whole(bytes), as: UTF8.self) }
                try io.output(io.isOutputWatched ? TerminalText.safe(lines: whole) : whole)
            }
            return
        }
        let lines = Lock(LineBuffer())
        let count = Lock(0)
        // A progress line would mix with events that are printed to the same terminal.
        let line = io.isOutputWatched ? nil : ProgressLine(io: io)
        defer { line?.clear() }
        try await invocation.admin().stream(request) { bytes in
            let found = lines.withLock { $0.lines(bytes) }
            var text = ""
            for entry in found {
                guard let event = body(of: entry) else {
                    throw CommandError(.failed, "a line of the answer is not an exported event")
                }
                text += io.shown(json: event) + "\n"
            }
            let done = count.withLock { count in
                count += found.count
                return count
            }
            if !text.isEmpty { try io.output(text) }
            line?.show("\(done) events")
        }
        line?.clear()
        io.say("\(count.withLock { $0 }.counted("event")).")
    }

    /// The body of an exported event, which is the first member. Copies the bytes, so that numbers stay as written.
    private static func body(of line: [UInt8]) -> ArraySlice<UInt8>? {
        let start = Array(#"{"body":"#.utf8)
        guard line.starts(with: start) else { return nil }
        var (depth, isText, isEscaped) = (0, false, false)
        for index in start.count..<line.count {
            switch line[index] {
            case _ where isEscaped: isEscaped = false
            case UInt8(ascii: "\\") where isText: isEscaped = true
            case UInt8(ascii: "\""): isText.toggle()
            case _ where isText: break
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: ",") where depth == 0: return line[start.count..<index]
            default: break
            }
        }
        return nil
    }

    private static func printEntries(after position: String?, _ invocation: Invocation) async throws {
        let follower = EventFollower(
            try invocation.admin(), app: invocation.app, after: position, query: try query(invocation),
            io: invocation.io)
        let isFollowing = invocation.isSet(follow)
        let (result, isCancelled) = await StopSignals().cancelling {
            try await follower.printNew()
            while isFollowing {
                try await Task.sleep(for: .seconds(1))
                try await follower.printNew()
            }
        }
        let (count, position) = (follower.count, follower.position ?? "start")
        if !isCancelled, count == 0 { try result.get() }
        invocation.io.say(
            "\(count.counted("event")); --after \(position) continues from here.")
        if isCancelled {
            guard isFollowing else { throw ExitCode.interrupted }
        } else {
            try result.get()
        }
        if follower.isAfterGap { throw ExitCode.failed }
    }

    private static func query(
        _ invocation: Invocation
    ) throws(CommandError) -> [(name: String, value: String?)] {
        let (from, to) = (try invocation.time(of: since), try invocation.time(of: until))
        if let from, let to, from >= to {
            throw CommandError(
                .usage, "--since is not before --until", hint: "2h is two hours ago, 1h one hour ago")
        }
        guard !invocation.isSet(unverified) || invocation.flagValues[Flag.verdict.name] == nil else {
            throw CommandError(.usage, "give either --unverified or --verdict", hint: "give one of the two")
        }
        let verdict = invocation.isSet(unverified) ? "unverified" : try invocation.value(of: .verdict)
        return [
            ("user", try invocation.value(of: user)), ("message_id", try invocation.value(of: messageID)),
            ("request_id", try invocation.value(of: requestID)),
            ("type", try invocation.value(of: .eventType)), ("name", try invocation.value(of: .eventName)),
            ("verdict", verdict), ("claim", try invocation.value(of: .claim)),
            ("from_ms", from.map { String($0) }), ("to_ms", to.map { String($0) }),
        ]
    }
}
