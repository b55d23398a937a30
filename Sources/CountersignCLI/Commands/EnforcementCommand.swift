internal import CountersignCore
internal import CountersignGateway

/// `countersign enforcement …`.
enum EnforcementCommand {
    static let commands = [show, set]

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
