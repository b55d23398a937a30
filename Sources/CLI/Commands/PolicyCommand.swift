internal import CountersignCore
internal import CountersignJOSE

/// `countersign policy …`: an app's requirements for its tokens.
enum PolicyCommand {
    static let commands = [show, set]

    private static let algorithms = Flag(
        "algorithms", .text("NAMES"),
        help: "allowed algorithms, separated by commas: RS256, PS256, ES256, EdDSA")
    private static let leeway = Flag(
        "leeway", .duration(.seconds, 0...300), help: "how far clocks may differ")
    private static let lifetime = Flag(
        "max-lifetime", .duration(.seconds, 0...31_536_000),
        help: "the longest lifetime a token may have; 0: any")
    private static let audience = Flag(
        "audience", .text("TEXT"), mayBeEmpty: true, help: "what aud must contain; empty: not checked")
    private static let issuer = Flag(
        "issuer", .text("TEXT"), mayBeEmpty: true, help: "what iss must be; empty: not checked")
    private static let required = Flag(
        "require", .text("CLAIMS"), mayBeEmpty: true,
        help: "required claims, comma-separated: aud, iss, typ; empty: none")

    private static let show = Command(
        "policy show", summary: "Print what an app requires of its tokens", positionals: [.app],
        flags: [.json] + Flag.place,
        examples: ["Which tokens does this app take?": "countersign policy show shop"]
    ) { invocation in
        let policy = try await invocation.admin().get("apps", invocation.app, "policy")
            .body
        func text(_ name: String, or missing: String) -> Column {
            Column { $0[name] == .null ? missing : $0[name].shown }
        }
        try invocation.printTable(
            policy,
            [
                "algorithms": Column { $0["algorithms"].joined() },
                "leeway": Column { $0["leeway_seconds"].duration },
                "longest lifetime": Column {
                    $0["maximum_lifetime_seconds"] == .null ? "any" : $0["maximum_lifetime_seconds"].duration
                },
                "audience": text("audience", or: "not checked"),
                "issuer": text("issuer", or: "not checked"),
                "required": Column { $0["required"].elements.isEmpty ? "-" : $0["required"].joined() },
            ])
    }

    private static let set = Command(
        "policy set", summary: "Change what an app requires of its tokens",
        details:
            "Settings that are not given stay as they are. A running gateway has loaded the change when the command ends.",
        positionals: [.app], flags: [algorithms, leeway, lifetime, audience, issuer, required] + Flag.place,
        examples: [
            "Elliptic curves too, and clocks that differ little":
                "countersign policy set shop --algorithms RS256,ES256 --leeway 5",
            "For this audience only": "countersign policy set shop --audience braze --require aud",
        ]
    ) { invocation in
        var changes: JSONObject = [:]
        if let names = try list(invocation, algorithms) {
            guard Set(names).count == names.count else {
                throw CommandError(.usage, "--algorithms names one twice")
            }
            if let unknown = names.first(where: { !JWSAlgorithm.all.map(\.rawValue).contains($0) }) {
                throw CommandError(
                    .usage, "unknown algorithm \(unknown); use RS256, PS256, ES256 or EdDSA")
            }
            changes["algorithms"] = .array(names.map { .string($0) })
        }
        if let seconds = try invocation.integer(of: leeway) {
            changes["leeway_seconds"] = .integer(Int64(seconds))
        }
        if let seconds = try invocation.integer(of: lifetime) {
            changes["maximum_lifetime_seconds"] = seconds == 0 ? .null : .integer(Int64(seconds))
        }
        for (name, flag) in [("audience", audience), ("issuer", issuer)] {
            if let text = try invocation.value(of: flag) {
                changes[name] = text.isEmpty ? .null : .string(text)
            }
        }
        if let names = try list(invocation, required) {
            if let unknown = names.first(where: { !["aud", "iss", "typ"].contains($0) }) {
                throw CommandError(.usage, "\(unknown) cannot be required; aud, iss and typ can")
            }
            changes["required"] = .array(names.map { .string($0) })
        }
        guard !changes.isEmpty else {
            throw CommandError(.usage, "nothing to change was given", hint: "such as --leeway 5")
        }
        _ = try await invocation.admin().change("apps", invocation.app, "policy") { $0.merge(changes) { $1 } }
        invocation.io.say("Set. `countersign policy show \(invocation.app)` prints it.")
    }

    /// The comma-separated values; nil without the flag.
    private static func list(_ invocation: Invocation, _ flag: Flag) throws(CommandError) -> [String]? {
        try invocation.value(of: flag)?.split(separator: ",").map(String.init)
    }
}
