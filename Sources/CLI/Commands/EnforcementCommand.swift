internal import CountersignCore
internal import GatewayModel

enum EnforcementCommand {
    static let commands = [show, set, preview]

    private static let state = Positional(
        "STATE", choices: Enforcement.allCases.map(\.rawValue),
        help: Enforcement.allCases.map(\.rawValue).joined(separator: ", "))

    private static let show = Command(
        "enforcement show", summary: "Print how strictly an app's tokens are checked",
        details:
            "The first line is the state, followed by the percentage of users if it does not apply to all.",
        positionals: [.app], flags: [.json] + Flag.target,
        examples: ["Are bad tokens rejected?": "countersign enforcement show shop"]
    ) { invocation in
        let plan = try await invocation.admin()
            .get("apps", invocation.app, "enforcement").body
        try invocation.print(plan) {
            try invocation.io.print(stated(plan))
            if plan["scheduled"] != .null {
                let change = plan["scheduled"]
                let share = change["ramp_percent"].integer.flatMap {
                    $0 < 100 ? ", for \($0) % of users" : nil
                }
                try invocation.io.print(
                    "It becomes \(change["state"].shown) at \(change["at_ms"].time)\(share ?? "").")
            }
            if let percent = plan["auto_return"]["rejected_percent"].integer {
                try invocation.io.print(
                    "It returns to optional once the tokens of \(percent) % of users stop working within \(plan["auto_return"]["window_minutes"].shown) minutes."
                )
            }
            if plan["returned"] != .null {
                let returned = plan["returned"]
                try invocation.io.print(
                    "It returned to optional automatically at \(returned["at_ms"].time): the tokens of \(returned["rejected_percent"].shown) % of users had stopped working."
                )
            }
        }
    }

    /// The state, with the percentage of users if it does not apply to all.
    static func stated(_ plan: JSONValue) -> String {
        let percent = plan["ramp_percent"].integer ?? 100
        return plan["state"].shown + (percent < 100 ? " for \(percent) % of users" : "")
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
        positionals: [.app], flags: [hours, .json] + Flag.target,
        examples: ["Is it safe to require tokens?": "countersign enforcement preview shop"]
    ) { invocation in
        let preview = try await invocation.admin().get(
            "apps", invocation.app, "enforcement", "preview",
            query: [("hours", try invocation.integer(of: hours).map { String($0) })]
        ).body
        try invocation.print(preview) {
            let bad = preview["would_reject"]
            let checked = preview["requests"].count - preview["not_judged"].count
            try invocation.io.print(
                "\(bad["requests"].shown) of \(checked.counted("verified request")), \(bad["users"].shown) of \(preview["users"].counted("user")) in \(preview["hours"].shown) h"
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
            if let note = preview["unknown"].text { try invocation.io.print(TerminalText.safe(note)) }
        }
    }

    private static func counted(_ part: JSONValue) -> String {
        part["requests"].counted("request") + ", " + part["users"].counted("user")
    }

    private static let percent = Flag(
        "percent", .integer("PERCENT", 1...100),
        help: "with required: only for this percentage of users, always the same ones; 100: for everyone")
    private static let time = Flag(
        "at", .text("TIME"),
        help:
            "when to switch: 2030-01-31T08:00:00Z, or 2h, 7d from now; now if not given; none: drop the scheduled switch"
    )
    private static let returnAbove = Flag(
        "return-above", .integer("PERCENT", 0...100),
        help:
            "return to optional when the tokens of this share of users stop working within five minutes; 0 turns it off"
    )

    private static let set = Command(
        "enforcement set", summary: "Set how strictly an app's tokens are checked, now or later",
        details: """
            disabled  tokens are not checked
            optional  tokens of identified users are verified; a bad one is reported and the events are stored
            required  tokens of identified users are verified; a bad one is rejected with its error code
            A running gateway has applied the change when the command ends. Options that are not given keep their values: the
            percentage while the state stays required, a scheduled switch, and the --return-above rule. Each is printed before
            and after. A change that rejects requests of more users, now or later, must be confirmed.

            --return-above trades protection for delivery: once it has acted, forged events are stored as well. It needs at
            least 100 users, and only counts those whose own token used to be accepted and is now rejected, because it has
            expired (22) or its key was removed (27). Requests without a token, or with a made-up one, cannot trigger it. An
            attacker with that many accounts can. With or without it, the app's alert webhook gets an alert, at most once an
            hour, when 5 % of the requests in five minutes (or the share given with --return-above) are rejected.
            """,
        positionals: [.app, state], flags: [percent, time, returnAbove, .yes] + Flag.target,
        examples: [
            "Report bad tokens before rejecting them": "countersign enforcement set shop optional",
            "Reject bad tokens from some users, and back off if too many fail":
                "countersign enforcement set shop required --percent 10 --return-above 5 --yes",
            "Reject bad tokens from everyone":
                "countersign enforcement set shop required --percent 100 --yes",
            "Reject them from a date on":
                "countersign enforcement set shop required --at 2030-01-31T08:00:00Z --percent 100 --yes",
            "Drop the scheduled switch": "countersign enforcement set shop optional --at none",
        ]
    ) { invocation in
        let wanted = invocation[state]
        let share = try invocation.integer(of: percent)
        guard share == nil || wanted == Enforcement.required.rawValue else {
            throw CommandError(.usage, "--percent only goes with required")
        }
        let drops = try invocation.value(of: time) == "none"
        let later = drops ? nil : try invocation.futureTime(of: time)
        let limit = try invocation.integer(of: returnAbove)
        let admin = try invocation.admin()
        var (before, after) = (JSONObject(), JSONObject())
        _ = try await admin.change("apps", invocation.app, "enforcement") { plan in
            before = plan
            change(&plan, to: wanted, percent: share, at: later, dropping: drops, returnAbove: limit)
            after = plan
            if later != nil, isSame(.object(plan), plan["scheduled"] ?? .null) {
                throw CommandError(
                    .usage,
                    "\(invocation.app) is \(state(of: .object(plan))) already, so there is nothing to schedule",
                    hint: "give another --percent; 100 is everyone")
            }
            if let consequence = consequence(of: plan, from: before, app: invocation.app) {
                try invocation.requireYes(consequence)
            }
        }
        for line in differences(before, after, app: invocation.app) { invocation.io.say(line) }
        if wanted == Enforcement.required.rawValue,
            try await admin.get("apps", invocation.app).body.isWithoutKeys
        {
            invocation.io.say(
                "\(invocation.app) has no key, so every token is rejected. "
                    + "Next: countersign key add \(invocation.app) public.pem")
        }
    }

    private static func change(
        _ plan: inout JSONObject, to wanted: String, percent: Int?, at later: Int64?,
        dropping drops: Bool, returnAbove limit: Int?
    ) {
        /// `--percent`. Otherwise, for `required`, the percentage of the first of `present` with that state. Else 100.
        func share(_ present: JSONValue...) -> JSONValue {
            if let percent { return .integer(Int64(percent)) }
            guard wanted == Enforcement.required.rawValue else { return 100 }
            let known = present.first { $0["state"].text == wanted }
            return .integer(known?["ramp_percent"].integer ?? 100)
        }
        let now = JSONValue.object(plan)
        if let later {
            plan["scheduled"] = [
                "state": .string(wanted), "at_ms": .integer(later),
                "ramp_percent": share(plan["scheduled"] ?? .null, now),
            ]
        } else {
            plan["state"] = .string(wanted)
            plan["ramp_percent"] = share(now)
            if drops { plan["scheduled"] = .null }
        }
        if let limit {
            plan["auto_return"] =
                limit == 0 ? .null : ["rejected_percent": .integer(Int64(limit)), "window_minutes": 5]
        }
    }

    // MARK: Descriptions of a change

    /// The state of a plan or a scheduled switch, with its percentage of users.
    private static func state(of plan: JSONValue) -> String {
        let state = plan["state"].shown
        guard state == Enforcement.required.rawValue else { return state }
        let percent = plan["ramp_percent"].integer ?? 100
        return percent < 100 ? "\(state) for \(percent) %" : "\(state) for everyone"
    }

    private static func share(_ plan: JSONValue) -> Int64 {
        guard plan["state"].text == Enforcement.required.rawValue else { return 0 }
        return plan["ramp_percent"].integer ?? 100
    }

    private static func isSame(_ plan: JSONValue, _ other: JSONValue) -> Bool {
        plan["state"] == other["state"] && share(plan) == share(other)
    }

    private static func scheduled(_ plan: JSONObject) -> String {
        let change = plan["scheduled"] ?? .null
        return change == .null ? "none" : "\(state(of: change)) at \(change["at_ms"].time)"
    }

    private static func automaticReturn(_ plan: JSONObject) -> String {
        let percent = plan["auto_return"]?["rejected_percent"].integer
        return percent.map { "above \($0) % of users" } ?? "off"
    }

    private static func differences(
        _ before: JSONObject, _ after: JSONObject, app: String
    ) -> [String] {
        func line(_ name: String, _ old: String, _ new: String) -> String {
            old == new ? "\(name): \(new), unchanged" : "\(name): \(old) -> \(new)"
        }
        var lines = [line(app, state(of: .object(before)), state(of: .object(after)))]
        let (oldSwitch, newSwitch) = (scheduled(before), scheduled(after))
        if [oldSwitch, newSwitch] != ["none", "none"] {
            lines.append(line("scheduled switch", oldSwitch, newSwitch))
        }
        let (oldReturn, newReturn) = (automaticReturn(before), automaticReturn(after))
        if [oldReturn, newReturn] != ["off", "off"] {
            lines.append(line("automatic return", oldReturn, newReturn))
        }
        return lines
    }

    /// A sentence about the first additional rejections by the change; nil if the change rejects no more than before.
    private static func consequence(
        of after: JSONObject, from before: JSONObject, app: String
    ) -> String? {
        func users(_ percent: Int64) -> String {
            percent == 0 ? "no users" : percent < 100 ? "\(percent) % of users" : "everyone"
        }
        let (old, new) = (share(.object(before)), share(.object(after)))
        if new > old {
            return
                "Requests of \(app) with a bad token are rejected for \(users(new)) at once, until now for \(users(old))"
        }
        func planned(_ plan: JSONObject, at time: Int64) -> Int64 {
            let change = plan["scheduled"] ?? .null
            return share(change["at_ms"].integer ?? .max <= time ? change : .object(plan))
        }
        // Dropping or postponing a switch to a smaller share also rejects more requests, from the time of that switch.
        let times = [before, after].compactMap { $0["scheduled"]?["at_ms"].integer }.sorted()
        guard let time = times.first(where: { planned(after, at: $0) > planned(before, at: $0) }) else {
            return nil
        }
        return
            "Requests of \(app) with a bad token are rejected for \(users(planned(after, at: time))) from \(JSONValue.integer(time).time) on, instead of for \(users(planned(before, at: time)))"
    }
}
