internal import CountersignCore
internal import CountersignJOSE
internal import Foundation
internal import GatewayModel

enum TokenVerifyCommand {
    private static let key = Flag(
        "key", .path("FILE"), maximumCount: KeyRing.maximumKeys,
        help: "a public key as PEM or JWK, up to three times")
    private static let user = Flag(
        "user", .text("ID"), help: "the user that the request names; without it, sub is not checked")
    private static let now = Flag(
        "now", .text("EPOCH"), help: "the time, in seconds since 1970; default: now")
    private static let algorithm = Flag(
        "alg", .choice(JWSAlgorithm.all.map(\.rawValue)), maximumCount: JWSAlgorithm.all.count,
        help: "an algorithm that the app allows (default: RS256)")
    private static let app = Flag(
        "app", .text("APP"), completes: .apps,
        help: "verify with this app's keys and policy, in the gateway or its data")
    private static let keyID = Flag("kid", .text("ID"), help: "the id of the private key in --secret-file")
    private static let batch = Flag(
        "batch", .path("FILE"), help: "verify one JSON object per line; - reads standard input")

    static let command = Command(
        "token verify", summary: "Verify a token as the gateway does, check by check",
        details: """
            The exit status is 0 if the token is accepted and 3 if it is rejected. --app takes the keys and the policy of an
            app, with the keys that the gateway has fetched, and sends the token to that gateway only. With --secret-file or
            --customer-id it checks a customer token of the Bloomreach dialect: every --customer-id other than cookie must
            be in it. A token is a credential, and other users of this machine can see arguments, so it is read from a file
            or standard input.
            Each line of a batch is {"name","keys":[PEM or JWK],"token","now","expected_user","user_ids","config":
            {"algorithms","leeway","maximum_lifetime","audience","issuer","require_audience","require_issuer",
            "require_type"}}, where algorithms are by default RS256 and those that the keys are bound to; each answer is
            {"name","verdict":"accept" or "reject","code","reason","faults"}.
            A line without expected_user is an anonymous request, whose token is not checked; the exit status of a batch is 0.
            """,
        positionals: [.token],
        flags: [
            app, key, user, CustomerTokenFlags.customerID, CustomerTokenFlags.secret, keyID, now, algorithm,
            batch, .json,
        ] + Flag.target,
        examples: [
            "Why is this token rejected?":
                "countersign token verify token.txt --key public.pem --user user-1",
            "Would this app's gateway accept it?": "countersign token verify token.txt --app shop",
            "A customer token":
                "countersign token verify token.txt --customer-id registered=ada --secret-file secret.txt --kid backend",
            "Many at once": "countersign token verify --batch tokens.jsonl",
        ]
    ) { invocation in
        if let path = try invocation.value(of: batch) {
            return try verifyBatch(try invocation.text(ofFile: path), invocation.io)
        }
        let answer: JSONValue
        if let app = try invocation.value(of: app) {
            answer = try await verified(by: app, invocation)
        } else {
            let namesUser =
                try invocation.value(of: user) != nil
                || !invocation.values(of: CustomerTokenFlags.customerID).isEmpty
            answer = try report(invocation).json(withUser: namesUser, withRevocations: false)
        }
        try invocation.print(answer) {
            for line in lines(answer) { try invocation.io.print(line) }
        }
        guard answer["verdict"].text == "accept" else { throw ExitCode.verificationFailed }
    }

    private static func verified(by app: String, _ invocation: Invocation) async throws -> JSONValue {
        let others = [
            key, CustomerTokenFlags.customerID, CustomerTokenFlags.secret, keyID, now, algorithm,
        ].filter { !invocation.values(of: $0).isEmpty }
        guard others.isEmpty else {
            throw CommandError(
                .usage, "--app has its own keys, policy and time",
                hint: "leave out --\(others.map(\.name).joined(separator: " and --"))")
        }
        var body: JSONObject = ["token": .string(try invocation.tokenText())]
        body["user"] = try invocation.json(of: user)
        let admin = try invocation.admin()
        let answer = try await admin.post("apps", app, "tokens", "verify", body: .object(body))
        if answer["code"].integer == Int64(AuthErrorCode.noMatchingPublicKeys.rawValue) {
            let sources = try await admin.get("apps", app, "key-source").body["sources"].elements
            KeyCommand.describe(sources, of: app, isLocal: admin is LocalAdmin).forEach(invocation.io.say)
        }
        return answer
    }

    private static func report(_ invocation: Invocation) throws -> VerificationReport {
        let texts = try invocation.values(of: key).map { ($0, try invocation.text(ofFile: $0)) }
        let customerKey = try CustomerTokenFlags.key(invocation, keyID: keyID)
        let customerIDs = try CustomerTokenFlags.customerIDs(invocation)
        guard !texts.isEmpty || customerKey != nil else {
            throw CommandError(
                .usage, "a key is missing",
                hint: "--app APP takes the app's keys and policy; --key FILE a public key, up to three times")
        }
        var policy = ClaimsPolicy()
        let names = invocation.values(of: algorithm)
        if !names.isEmpty { policy.algorithms = names.map(JWSAlgorithm.init(rawValue:)) }
        let entries = texts.map { KeyRing.Entry(id: $0.0, text: $0.1) }
        for entry in entries {
            if let problem = entry.problem { invocation.io.say("\(entry.id): \(problem.reason)") }
        }
        let verifier = TokenVerifier(keys: KeyRing(entries: entries), policy: policy)
        let instant = try time(invocation)
        let text = try invocation.tokenText()
        if customerKey != nil || !customerIDs.isEmpty {
            guard try invocation.value(of: user) == nil else {
                throw CommandError(
                    .usage, "a token is for a user or for a customer", hint: "--user or --customer-id")
            }
            return CustomerTokenVerifier(keys: customerKey.map { [$0] } ?? [], ring: verifier)
                .verify(text, naming: BytewiseDictionary(customerIDs), at: instant)
        }
        if let user = try invocation.value(of: user) {
            guard !user.isEmpty else { throw CommandError(.usage, "--user needs a non-empty id") }
            return verifier.verify(text, userID: user, at: instant)
        }
        return verifier.inspect(text, at: instant)
    }

    private static func time(_ invocation: Invocation) throws -> Double {
        guard let text = try invocation.value(of: now) else { return Date().timeIntervalSince1970 }
        guard let seconds = Double(text), seconds.isFinite else {
            throw CommandError(.usage, "--now takes seconds since 1970, not '\(text)'")
        }
        return seconds
    }

    private static func lines(_ answer: JSONValue) -> [String] {
        var lines: [String] = []
        for check in answer["checks"].elements {
            let name = check["check"].shown
            switch check["outcome"].text {
            case "passed": lines.append("ok    \(name)")
            case "failed":
                lines += check["details"].elements.map {
                    "FAIL  \(name): \($0.shown) (\(check["code"].shown))"
                }
            default: lines.append("-     \(name)")
            }
        }
        lines += answer["warnings"].elements.map { "note  \($0.shown)" }
        guard answer["code"] != .null else { return lines + ["accepted"] }
        return lines + [
            "rejected: \(answer["code"].shown) \(answer["reason"].shown)", "fix: \(answer["fix"].shown)",
        ]
    }

    private static func verifyBatch(_ text: String, _ io: CommandIO) throws {
        for line in text.utf8.split(separator: UInt8(ascii: "\n"))
        where line.contains(where: { ![0x20, 0x09, 0x0D].contains($0) }) {
            try io.print(TokenBatchLine.answer(to: Array(line)))
        }
    }
}
