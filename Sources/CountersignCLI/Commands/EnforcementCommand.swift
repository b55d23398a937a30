internal import CountersignCore
internal import CountersignGateway
internal import Foundation

/// `countersign enforcement …`.
enum EnforcementCommand {
    static let commands = [show, set, preview]

    private static let app = Positional("APP", help: "the app's id")
    private static let state = Positional(
        "STATE", choices: Enforcement.allCases.map(\.rawValue),
        help: Enforcement.allCases.map(\.rawValue).joined(separator: ", "))

    private static let show = Command(
        "enforcement show", summary: "Print how strictly an app's requests are judged",
        positionals: [app], flags: [.json, .data],
        examples: [.init("Are bad tokens refused?", "countersign enforcement show shop")]
    ) { invocation in
        let app = try invocation.appDirectory().app(id: invocation.requiredWord(of: app))
        if invocation.isSet(.json) {
            try invocation.io.print([
                "app": .string(app.id), "enforcement": .string(app.enforcement.rawValue),
            ])
        } else {
            try invocation.io.print(app.enforcement.rawValue)
        }
        return .done
    }

    private static let hours = Flag(
        "hours", .integer("HOURS", 1...168), default: "24", help: "how far to look back")

    private static let preview = Command(
        "enforcement preview", summary: "Print what requiring tokens would have rejected",
        details: """
            From the verdicts of the last hours: how many requests of how many users, by code and by app version. Users are
            estimated within about 2 %. While enforcement is disabled tokens are not looked at: set it to optional first.
            """,
        positionals: [app], flags: [hours, .json, .data],
        examples: [.init("Is it safe to require tokens?", "countersign enforcement preview shop")]
    ) { invocation in
        let app = try invocation.appDirectory().app(id: invocation.requiredWord(of: app))
        let hours = try invocation.integer(of: hours) ?? 24
        let preview = try AnalyticsReader(dataDirectory: try invocation.dataDirectory())
            .preview(of: app.id, at: Int64(Date().timeIntervalSince1970 * 1000), hours: hours)
        if invocation.isSet(.json) {
            try invocation.io.print(preview.json(hours: hours))
            return .done
        }
        try invocation.io.print(
            "\(preview.failedRequests) of \(preview.requests) requests, \(preview.failedUsers) of \(preview.users) users in \(hours) h"
        )
        for part in preview.byCode {
            let name = part.code.map { "\($0.rawValue) \($0.reason)" } ?? "-"
            try invocation.io.print("  \(name): \(part.requests) requests, \(part.users) users")
        }
        for part in preview.byAppVersion {
            let version = part.appVersion.flatMap { $0.isEmpty ? nil : TerminalText.safe($0) } ?? "unknown"
            try invocation.io.print(
                "  app version \(version): \(part.requests) requests, \(part.users) users")
        }
        if preview.notJudged > 0 {
            invocation.io.say(
                "Of \(preview.notJudged) requests the tokens were not looked at: enforcement was disabled.")
        }
        return .done
    }

    private static let set = Command(
        "enforcement set", summary: "Set how strictly an app's requests are judged",
        details: """
            disabled  tokens are not looked at
            optional  tokens of identified users are verified; a bad one is reported and the events are stored
            required  tokens of identified users are verified; a bad one is refused with its error code
            A running gateway takes the change over within a second.
            """,
        positionals: [app, state], flags: [.data],
        examples: [
            .init("First look, then enforce", "countersign enforcement set shop optional"),
            .init("Refuse bad tokens", "countersign enforcement set shop required"),
        ]
    ) { invocation in
        let appID = invocation.requiredWord(of: app)
        guard let enforcement = Enforcement(rawValue: invocation.requiredWord(of: state)) else {
            preconditionFailure("the parser let another state pass")
        }
        let directory = try invocation.appDirectory()
        let app = try directory.app(id: appID)
        try directory.setEnforcement(enforcement, for: appID)
        invocation.io.say("\(appID): \(app.enforcement.rawValue) -> \(enforcement.rawValue)")
        if enforcement == .required, app.keys.isEmpty {
            invocation.io.say(
                "It has no key, so every token will be refused: countersign key add \(appID) public.pem")
        }
        return .done
    }
}

extension EnforcementPreview {
    /// The preview as commands print it with `--json`.
    fileprivate func json(hours: Int) -> JSONValue {
        func parts(_ parts: [Part]) -> JSONValue {
            .array(
                parts.map { part in
                    var members: [String: JSONValue] = [
                        "requests": .integer(Int64(part.requests)), "users": .integer(Int64(part.users)),
                    ]
                    if let code = part.code {
                        members["code"] = .integer(Int64(code.rawValue))
                        members["reason"] = .string(code.reason)
                    }
                    if let version = part.appVersion { members["app_version"] = .string(version) }
                    return .object(members)
                })
        }
        return [
            "hours": .integer(Int64(hours)), "requests": .integer(Int64(requests)),
            "users": .integer(Int64(users)), "not_judged": .integer(Int64(notJudged)),
            "would_reject": [
                "requests": .integer(Int64(failedRequests)), "users": .integer(Int64(failedUsers)),
            ],
            "by_code": parts(byCode), "by_app_version": parts(byAppVersion),
        ]
    }
}
