internal import CountersignCore
internal import Foundation

enum AppRulesCommand {
    static let commands = [origins, retention]

    private static let origin = Positional(
        "ORIGIN", .any, help: "a page's origin such as https://shop.example; * allows every page")
    private static let none = Flag("none", help: "allow no pages")
    private static let days = Flag(
        "days", .duration(.days, 0...36_500), help: "delete events older than this; 0 keeps them")
    private static let bytes = Flag(
        "bytes", .size(0...(1 << 50)),
        help: "delete the oldest events when there are more bytes than this; 0 keeps them")

    private static let origins = Command(
        "app origins", summary: "Print or set which web pages may call an app",
        details: """
            Without an origin it prints the allowed ones. A running gateway has applied the change when the command ends.
            Native apps need no origin: only browsers check it (CORS).
            """,
        positionals: [.app, origin], flags: [none] + Flag.target,
        examples: [
            "Allow two pages": "countersign app origins shop https://shop.example http://localhost:3000",
            "Allow no page": "countersign app origins shop --none",
        ]
    ) { invocation in
        let admin = try invocation.admin()
        let given = invocation.allWords(of: origin)
        let found: JSONValue
        guard !invocation.isSet(none) || given.isEmpty else {
            throw CommandError(
                .usage, "--none allows no page, so \(given[0]) does not go with it",
                hint: "give one of the two")
        }
        if invocation.isSet(none) || !given.isEmpty {
            let origins = invocation.isSet(none) ? [] : given
            found = try await admin.patch(
                "apps", invocation.app, body: ["origins": .array(origins.map { .string($0) })])
        } else {
            found = try await admin.get("apps", invocation.app).body
        }
        let origins = found["origins"].elements
        for origin in origins { try invocation.io.print(origin.shown) }
        if origins.isEmpty { invocation.io.say("No page may call \(invocation.app).") }
    }

    private static let retention = Command(
        "app retention", summary: "Print or set how long an app's events are kept",
        details: """
            Without a flag it prints the rule. A deleted event that is sent again is stored again, so keep events longer than
            clients queue them. Freed space is reused; the file does not shrink. A rule that deletes events right away must
            be confirmed.
            """,
        positionals: [.app], flags: [days, bytes, .confirm, .json] + Flag.target,
        examples: [
            "Keep 90 days": "countersign app retention shop --days 90",
            "Keep at most 10 GB": "countersign app retention shop --bytes 10GB",
        ]
    ) { invocation in
        let admin = try invocation.admin()
        var changes: JSONObject = [:]
        for (name, number) in [
            ("retention_days", try invocation.integer(of: days)),
            ("retention_bytes", try invocation.integer(of: bytes)),
        ] {
            if let number { changes[name] = number == 0 ? .null : .integer(Int64(number)) }
        }
        let read = try await admin.get("apps", invocation.app)
        var found = read.body
        if !changes.isEmpty {
            if let consequence = try await consequence(of: changes, for: found, admin) {
                try invocation.confirm(to: consequence)
            }
            found = try await admin.patch("apps", invocation.app, from: read, body: .object(changes))
        }
        if invocation.printsJSON {
            try invocation.io.print([
                "app": .string(invocation.app), "retention_days": found["retention_days"],
                "retention_bytes": found["retention_bytes"],
            ])
        } else {
            try invocation.io.print("days   \(found["retention_days"].integer.map { String($0) } ?? "all")")
            try invocation.io.print(
                "bytes  \(found["retention_bytes"].integer.map(Quantity.text(bytes:)) ?? "all")")
        }
    }

    private static func consequence(
        of changes: JSONObject, for app: JSONValue, _ admin: any AdminClient
    ) async throws -> String? {
        func isStricter(_ name: String) -> Bool {
            guard let new = changes[name]?.integer else { return false }
            return app[name].integer.map { new < $0 } ?? true
        }
        let id = app["id"].shown
        if isStricter("retention_bytes"), try await hasEvents(id, admin) {
            return "delete the oldest events of \(id), at once, until no more than "
                + "\(Quantity.text(bytes: changes["retention_bytes"]?.integer ?? 0)) of them are left"
        }
        if isStricter("retention_days"), let days = changes["retention_days"]?.integer {
            let end = Milliseconds(Date()).count - days * 86_400_000
            if try await hasEvents(id, before: end, admin) {
                return
                    "delete, at once, every event of \(id) received before \(RFC3339.text(milliseconds: end))"
            }
        }
        return nil
    }

    private static func hasEvents(
        _ app: String, before end: Int64? = nil, _ admin: any AdminClient
    ) async throws -> Bool {
        do {
            let query = [("to_ms", end.map { String($0) })]
            return try await !admin.items("apps", app, "events", query: query, limit: 1).isEmpty
        } catch let error as CommandError where error.code == .notFound {
            // No gateway has run on this data directory yet.
            return false
        }
    }
}
