internal import CountersignCore
internal import CountersignGateway
internal import CountersignJOSE

/// `countersign policy …`: what an app asks of its tokens.
enum PolicyCommand {
    static let commands = [show, set]

    private static let app = Positional("APP", help: "the app's id")
    private static let algorithms = Flag(
        "algorithms", .text("NAMES"),
        help: "allowed algorithms, separated by commas: RS256, PS256, ES256, EdDSA")
    private static let leeway = Flag(
        "leeway", .integer("SECONDS", 0...300), help: "how far clocks may differ")
    private static let lifetime = Flag(
        "max-lifetime", .integer("SECONDS", 0...31_536_000), help: "the longest a token may live; 0: any")
    private static let audience = Flag(
        "audience", .text("TEXT"), help: "what aud must name; empty: not looked at")
    private static let issuer = Flag("issuer", .text("TEXT"), help: "what iss must be; empty: not looked at")
    private static let required = Flag(
        "require", .text("CLAIMS"),
        help: "what must be there, separated by commas: aud, iss, typ; empty: nothing")

    private static let show = Command(
        "policy show", summary: "Print what an app asks of its tokens", positionals: [app],
        flags: [.json, .data],
        examples: [.init("Which tokens does this app take?", "countersign policy show shop")]
    ) { invocation in
        let policy = try invocation.appDirectory().app(id: invocation.requiredWord(of: app)).policy
        if invocation.isSet(.json) {
            try invocation.io.print(policy.json)
            return .done
        }
        var table = TextTable()
        table.add("algorithms", policy.algorithms.map(\.rawValue).joined(separator: ", "))
        table.add("leeway", "\(policy.leeway) s")
        table.add("longest lifetime", policy.maximumLifetime.map { "\($0) s" } ?? "any")
        table.add("audience", policy.audience ?? "not looked at")
        table.add("issuer", policy.issuer ?? "not looked at")
        table.add(
            "required", policy.requiredNames.isEmpty ? "-" : policy.requiredNames.joined(separator: ", "))
        for line in table.lines { try invocation.io.print(line) }
        return .done
    }

    private static let set = Command(
        "policy set", summary: "Set what an app asks of its tokens",
        details: "What is not named stays as it is. A running gateway takes the change over within a second.",
        positionals: [app], flags: [algorithms, leeway, lifetime, audience, issuer, required, .data],
        examples: [
            .init(
                "Elliptic curves too, and clocks that differ little",
                "countersign policy set shop --algorithms RS256,ES256 --leeway 5"),
            .init("For this audience only", "countersign policy set shop --audience braze --require aud"),
        ]
    ) { invocation in
        let directory = try invocation.appDirectory()
        let id = invocation.requiredWord(of: app)
        var policy = try directory.app(id: id).policy
        if let names = try invocation.value(of: algorithms) {
            policy.algorithms = names.split(separator: ",").map { JWSAlgorithm(rawValue: String($0)) }
            if let unknown = policy.algorithms.first(where: { !JWSAlgorithm.all.contains($0) }) {
                throw CommandError(
                    .usage,
                    "there is no algorithm \(unknown.rawValue); known are RS256, PS256, ES256 and EdDSA")
            }
        }
        if let seconds = try invocation.integer(of: leeway) { policy.leeway = Double(seconds) }
        if let seconds = try invocation.integer(of: lifetime) {
            policy.maximumLifetime = seconds == 0 ? nil : Double(seconds)
        }
        if let text = try invocation.value(of: audience) { policy.audience = text.isEmpty ? nil : text }
        if let text = try invocation.value(of: issuer) { policy.issuer = text.isEmpty ? nil : text }
        if let text = try invocation.value(of: required) {
            let names = text.split(separator: ",").map(String.init)
            if let unknown = names.first(where: { !["aud", "iss", "typ"].contains($0) }) {
                throw CommandError(.usage, "\(unknown) cannot be required; aud, iss and typ can")
            }
            policy.requiresAudience = names.contains("aud")
            policy.requiresIssuer = names.contains("iss")
            policy.requiresType = names.contains("typ")
        }
        try directory.setPolicy(policy, for: id)
        invocation.io.say("Set. `countersign policy show \(id)` prints it.")
        return .done
    }
}

extension ClaimsPolicy {
    fileprivate var requiredNames: [String] {
        [(requiresAudience, "aud"), (requiresIssuer, "iss"), (requiresType, "typ")].compactMap {
            $0 ? $1 : nil
        }
    }

    fileprivate var json: JSONValue {
        [
            "algorithms": .array(algorithms.map { .string($0.rawValue) }), "leeway_seconds": .number(leeway),
            "maximum_lifetime_seconds": maximumLifetime.map { .number($0) } ?? .null,
            "audience": audience.map { .string($0) } ?? .null, "issuer": issuer.map { .string($0) } ?? .null,
            "required": .array(requiredNames.map { .string($0) }),
        ]
    }
}
