internal import CountersignCore
internal import CountersignJOSE
internal import GatewayModel

enum PolicyCommand {
    static let commands = [show, set]

    private static let algorithms = Flag(
        "algorithms", .text("NAMES"),
        help: "allowed algorithms, separated by commas: RS256, PS256, ES256, EdDSA, Ed25519")
    private static let leeway = Flag(
        "leeway", .duration(.seconds, 0...300), help: "how far clocks may differ")
    private static let lifetime = Flag(
        "max-lifetime", .duration(.seconds, 0...31_536_000),
        help: "the longest lifetime a token may have; 0: any")
    private static let audience = Flag(
        "audience", .text("TEXT"), mayBeEmpty: true, maximumCount: 8,
        help: "a value that aud must contain; if repeated, one of them; empty: not checked")
    private static let issuer = Flag(
        "issuer", .text("TEXT"), mayBeEmpty: true, maximumCount: 8,
        help: "the value of iss; if repeated, one of them; empty: not checked")
    private static let types = Flag(
        "typ", .text("NAMES"), help: "accepted values of typ, separated by commas: JWT, at+jwt")
    private static let userClaim = Flag(
        "user-claim", .text("NAME"), help: "the claim with the user's id, such as sub")
    private static let keptClaims = Flag(
        "keep-claim", .text("NAME"), mayBeEmpty: true, maximumCount: 8,
        help: "a claim that is stored with each event; repeat for more claims; empty: none")
    private static let preset = Flag(
        "preset", .choice(IdentityProvider.all.map(\.id)),
        help: "take the policy and the keys of an identity provider")
    private static let tenant = Flag(
        "tenant", .text("NAME"), help: "your tenant at the provider of --preset, such as example.eu.auth0.com"
    )
    private static let required = Flag(
        "require", .text("CLAIMS"), mayBeEmpty: true,
        help: "required claims, comma-separated: aud, iss, typ; empty: none")

    private static let show = Command(
        "policy show", summary: "Print what an app requires of its tokens", positionals: [.app],
        flags: [.json] + Flag.target,
        examples: ["Which tokens does this app take?": "countersign policy show shop"]
    ) { invocation in
        let policy = try await invocation.admin().get("apps", invocation.app, "policy").body
        func texts(_ name: String) -> Column {
            Column { $0[name].elements.isEmpty ? "not checked" : $0[name].joined() }
        }
        try invocation.printTable(
            policy,
            [
                "algorithms": Column { $0["algorithms"].joined() },
                "leeway": Column { $0["leeway_seconds"].duration },
                "longest lifetime": Column {
                    $0["maximum_lifetime_seconds"] == .null ? "any" : $0["maximum_lifetime_seconds"].duration
                },
                "audience": texts("audience"),
                "issuer": texts("issuer"),
                "typ": Column { $0["typ"].joined() },
                "user id": "user_claim",
                "kept claims": Column {
                    $0["kept_claims"].elements.isEmpty ? "-" : $0["kept_claims"].joined()
                },
                "required": Column { $0["required"].elements.isEmpty ? "-" : $0["required"].joined() },
            ])
    }

    private static let set = Command(
        "policy set", summary: "Change what an app requires of its tokens",
        details: """
            Settings that are not given stay as they are. A running gateway has loaded the change when the command ends.
            --preset sets all except the times and the kept claims, and follows the provider's keys in place of other
            published keys. Other flags override it. docs/guides/identity-providers.md has an example of each.
            """,
        positionals: [.app],
        flags: [
            preset, tenant, .allowPrivate, algorithms, leeway, lifetime, audience, issuer, types,
            userClaim, required, keptClaims,
        ] + Flag.target,
        examples: [
            "Allow ES256, and clocks that differ by 5 seconds":
                "countersign policy set shop --algorithms RS256,ES256 --leeway 5",
            "Events by tenant: list them with --claim tenant=acme":
                "countersign policy set shop --keep-claim tenant --keep-claim role",
            "For this audience only": "countersign policy set shop --audience braze --require aud",
            "Tokens of an identity provider":
                "countersign policy set shop --preset auth0 --tenant example.eu.auth0.com --audience https://api.example.com",
        ]
    ) { invocation in
        let admin = try invocation.admin()
        let chosen = try await chosenPreset(invocation, admin)
        var changes = chosen?.policy ?? [:]
        for (name, flag, known) in [
            ("algorithms", algorithms, JWSAlgorithm.all.map(\.rawValue)), ("typ", types, ["JWT", "at+jwt"]),
            ("required", required, ["aud", "iss", "typ"]),
        ] {
            if let names = try list(invocation, flag, of: known) { changes[name] = names }
        }
        if let seconds = try invocation.json(of: leeway) { changes["leeway_seconds"] = seconds }
        if let seconds = try invocation.json(of: lifetime) {
            changes["maximum_lifetime_seconds"] = seconds == 0 ? .null : seconds
        }
        for (name, flag) in [("audience", audience), ("issuer", issuer)] {
            let texts = invocation.values(of: flag)
            if !texts.isEmpty { changes[name] = .array(texts.map { .string($0) }) }
        }
        let kept = invocation.values(of: keptClaims)
        if !kept.isEmpty { changes["kept_claims"] = .array(kept.filter { !$0.isEmpty }.map { .string($0) }) }
        if let name = try invocation.json(of: userClaim) { changes["user_claim"] = name }
        guard !changes.isEmpty else {
            throw CommandError(.usage, "nothing to change was given", hint: "such as --leeway 5")
        }
        // Sets the policy before the keys. The old policy could accept tokens of the provider's other customers.
        let app = invocation.app
        _ = try await admin.change("apps", app, "policy") { $0.merge(changes) { $1 } }
        if let chosen {
            let source: JSONValue = [
                "url": .string(chosen.keySource),
                "allow_private": .bool(invocation.isSet(.allowPrivate)),
            ]
            do {
                _ = try await admin.change("apps", app, "key-source") { $0 = ["sources": [source]] }
            } catch let error as CommandError {
                let state = "the policy is set, but its keys are not followed until you run this again"
                throw CommandError(error.code, "\(state): \(error.reason)", hint: error.hint)
            }
            invocation.io.say("\(app) follows the keys at \(TerminalText.safe(chosen.keySource)).")
        }
        invocation.io.say("Set. `countersign policy show \(app)` prints it.")
    }

    /// The policy and key source of `--preset`; nil without the flag.
    private static func chosenPreset(
        _ invocation: Invocation, _ admin: any AdminClient
    ) async throws -> (policy: JSONObject, keySource: String)? {
        let tenant = try invocation.value(of: tenant)
        guard let id = try invocation.value(of: preset) else {
            if tenant == nil { return nil }
            throw CommandError(.usage, "--tenant belongs to --preset", hint: "such as --preset auth0")
        }
        let known = try await admin.get(
            "identity-providers", id,
            query: [
                ("tenant", tenant), ("audience", invocation.values(of: audience).first),
                ("allow_private", invocation.isSet(.allowPrivate) ? "true" : nil),
            ]
        ).body
        var policy = known["policy"].members ?? [:]
        for name in ["leeway_seconds", "maximum_lifetime_seconds", "kept_claims"] { policy[name] = nil }
        return (policy, known["key_source"].text ?? "")
    }

    /// The names in a comma-separated flag. Throws `usage` for an unknown or repeated name.
    private static func list(
        _ invocation: Invocation, _ flag: Flag, of known: [String]
    ) throws(CommandError) -> JSONValue? {
        guard let text = try invocation.value(of: flag) else { return nil }
        let names = text.split(separator: ",").map(String.init)
        if let unknown = names.first(where: { !known.contains($0) }) {
            throw CommandError(
                .usage, "--\(flag.name) takes \(known.joined(separator: ", ")), not '\(unknown)'")
        }
        guard Set(names).count == names.count else {
            throw CommandError(.usage, "--\(flag.name) names one twice")
        }
        return .array(names.map { .string($0) })
    }
}
