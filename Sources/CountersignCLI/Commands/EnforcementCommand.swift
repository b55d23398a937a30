internal import CountersignCore
internal import GatewayModel

/// `countersign enforcement …`.
enum EnforcementCommand {
    static let commands = [show, set, preview]

    private static let state = Positional(
        "STATE", choices: Enforcement.allCases.map(\.rawValue),
        help: Enforcement.allCases.map(\.rawValue).joined(separator: ", "))

    private static let show = Command(
        "enforcement show", summary: "Print how strictly an app's requests are judged",
        positionals: [.app], flags: [.json] + Flag.place,
        examples: ["Are bad tokens refused?": "countersign enforcement show shop"]
    ) { invocation in
        let plan = try await invocation.admin()
            .get("apps", invocation.app, "enforcement").body
        try invocation.print(plan) {
            try invocation.io.print(plan["state"].shown)
            if let percent = plan["ramp_percent"].integer, percent < 100 {
                invocation.io.say("For \(percent) % of users.")
            }
            if plan["scheduled"] != .null {
                let change = plan["scheduled"]
                let share = change["ramp_percent"].integer.flatMap {
                    $0 < 100 ? ", for \($0) % of users" : nil
                }
                invocation.io.say(
                    "It becomes \(change["state"].shown) at \(change["at_ms"].time)\(share ?? "").")
            }
            if let percent = plan["auto_return"]["rejected_percent"].integer {
                invocation.io.say(
                    "It returns to optional once the tokens of \(percent) % of users stop working within \(plan["auto_return"]["window_minutes"].shown) minutes."
                )
            }
            if plan["returned"] != .null {
                let returned = plan["returned"]
                invocation.io.say(
                    "It returned to optional automatically at \(returned["at_ms"].time): the tokens of \(returned["rejected_percent"].shown) % of users had stopped working."
                )
            }
        }
    }

    private static let hours = Flag(
        "hours", .duration(.hours, 1...168), default: "24", help: "how far to look back")

    private static let preview = Command(
        "enforcement preview", summary: "Print what requiring tokens would have rejected",
        details: """
            Shows, from the verdicts of the last hours, how many requests of how many users are affected, by code and by app
            version. Users are estimated within about 2 %. While enforcement is disabled tokens are not checked: set it to
            optional first.
            """,
        positionals: [.app], flags: [hours, .json] + Flag.place,
        examples: ["Is it safe to require tokens?": "countersign enforcement preview shop"]
    ) { invocation in
        let preview = try await invocation.admin().get(
            "apps", invocation.app, "enforcement", "preview",
            query: [("hours", try invocation.integer(of: hours).map { String($0) })]
        ).body
        try invocation.print(preview) {
            let bad = preview["would_reject"]
            let judged = preview["requests"].count - preview["not_judged"].count
            try invocation.io.print(
                "\(bad["requests"].shown) of \(counted(judged, "request")), \(bad["users"].shown) of \(counted(preview["users"].integer ?? 0, "user")) in \(preview["hours"].shown) h"
            )
            for part in preview["by_code"].elements {
                let name = part["code"] == .null ? "-" : "\(part["code"].shown) \(part["reason"].shown)"
                try invocation.io.print(
                    "  \(name): \(counted(part))")
            }
            for part in preview["by_app_version"].elements {
                let version = part["app_version"].text.flatMap { $0.isEmpty ? nil : TerminalText.safe($0) }
                try invocation.io.print(
                    "  app version \(version ?? "unknown"): \(counted(part))")
            }
            if let note = preview["unknown"].text { invocation.io.say(TerminalText.safe(note)) }
        }
    }

    private static func counted(_ part: JSONValue) -> String {
        counted(part["requests"].integer ?? 0, "request") + ", " + counted(part["users"].integer ?? 0, "user")
    }

    private static func counted(_ count: Int64, _ noun: String) -> String {
        "\(count) \(noun)\(count == 1 ? "" : "s")"
    }

    private static let percent = Flag(
        "percent", .integer("PERCENT", 1...100),
        help: "with required: only for this percentage of users, always the same ones")
    private static let time = Flag(
        "at", .text("TIME"),
        help: "when to switch: 2030-01-31T08:00:00Z, or 2h, 7d from now; now if not given")
    private static let returnAbove = Flag(
        "return-above", .integer("PERCENT", 0...100),
        help:
            "return to optional when the tokens of this share of users stop working within five minutes; 0 turns it off"
    )

    private static let set = Command(
        "enforcement set", summary: "Set how strictly an app's requests are judged, now or later",
        details: """
            disabled  tokens are not checked
            optional  tokens of identified users are verified; a bad one is reported and the events are stored
            required  tokens of identified users are verified; a bad one is refused with its error code
            A running gateway applies the change within a second. A change that was scheduled earlier is dropped; the
            --return-above rule stays in force until you set another.

            --return-above trades protection for delivery: once it has acted, forged events are stored as well. It needs at
            least 100 users, and only counts those whose own token used to be accepted and is now refused, because it has
            expired (22) or lost its key (27). Requests without a token, or with a made-up one, cannot trigger it; somebody who
            owns that many accounts can. With or without it, the app's alert webhook is told, at most once an hour, when 5 %
            of the requests in five minutes (or the share given with --return-above) are refused.
            """,
        positionals: [.app, state], flags: [percent, time, returnAbove] + Flag.place,
        examples: [
            "First look, then enforce": "countersign enforcement set shop optional",
            "Refuse bad tokens from some users, and back off if too many fail":
                "countersign enforcement set shop required --percent 10 --return-above 5",
            "Refuse bad tokens": "countersign enforcement set shop required",
            "Refuse them from a date on":
                "countersign enforcement set shop required --at 2030-01-31T08:00:00Z",
        ]
    ) { invocation in
        let wanted = invocation[state]
        let share = try invocation.integer(of: percent)
        guard share == nil || wanted == Enforcement.required.rawValue else {
            throw CommandError(.usage, "--percent only goes with required")
        }
        let later = try invocation.futureTime(of: time)
        let limit = try invocation.integer(of: returnAbove)
        let admin = try invocation.admin()
        var before = ""
        _ = try await admin.change("apps", invocation.app, "enforcement") { plan in
            before = plan["state"]?.shown ?? ""
            let percent = JSONValue.integer(Int64(share ?? 100))
            if let later {
                plan["scheduled"] = [
                    "state": .string(wanted), "at_ms": .integer(later), "ramp_percent": percent,
                ]
            } else {
                plan["state"] = .string(wanted)
                plan["ramp_percent"] = percent
                plan["scheduled"] = .null
            }
            if let limit {
                plan["auto_return"] =
                    limit == 0
                    ? .null : ["rejected_percent": .integer(Int64(limit)), "window_minutes": 5]
            }
        }
        let when = later.map { " at \(RFC3339.text(milliseconds: $0))" } ?? ""
        invocation.io.say("\(invocation.app): \(before) -> \(wanted)\(when)")
        if wanted == Enforcement.required.rawValue,
            try await admin.get("apps", invocation.app).body["keys"] == 0
        {
            invocation.io.say(
                "It has no key, so every token will be refused: countersign key add \(invocation.app) public.pem"
            )
        }
    }
}
