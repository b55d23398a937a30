internal import CountersignCore
internal import CountersignJOSE
internal import Foundation

/// `countersign token verify`.
enum TokenVerifyCommand {
    private static let token = Positional(
        "FILE", .optional, help: "file with a token; - or nothing reads standard input")
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
    private static let keyID = Flag("kid", .text("ID"), help: "the id of the private key in --secret-file")
    private static let batch = Flag(
        "batch", .path("FILE"), help: "judge one JSON object per line; - reads standard input")

    static let command = Command(
        "token verify", summary: "Judge a token as the gateway does, check by check",
        details: """
            The exit status is 0 if the token is accepted and 3 if it is rejected. With --secret-file or --customer-id it
            checks a customer token of the Bloomreach dialect: every --customer-id other than cookie must be in it. A token
            is a credential, and other users of this machine can see arguments, so it is read from a file or standard input.
            Each line of a batch is {"name","keys":[PEM or JWK],"token","now","expected_user","user_ids","config":
            {"algorithms","leeway","maximum_lifetime","audience","issuer","require_audience","require_issuer",
            "require_type"}}, where algorithms are by default RS256 and those that the keys are bound to; each answer is {"name","verdict":"accept" or "reject","code","reason","faults"}.
            A line without expected_user is an anonymous request, whose token is not checked; the exit status of a batch is 0.
            """,
        positionals: [token],
        flags: [
            key, user, CustomerTokenFlags.customerID, CustomerTokenFlags.secret, keyID, now, algorithm, batch,
            .json,
        ],
        examples: [
            "Why is this token rejected?":
                "countersign token verify token.txt --key public.pem --user user-1",
            "A customer token":
                "countersign token verify token.txt --customer-id registered=ada --secret-file secret.txt --kid backend",
            "Many at once": "countersign token verify --batch tokens.jsonl",
        ]
    ) { invocation in
        if let path = try invocation.value(of: batch) {
            return try verifyBatch(try invocation.text(ofFile: path), invocation.io)
        }
        let report = try report(invocation)
        let namesSomebody =
            try invocation.value(of: user) != nil
            || !invocation.values(of: CustomerTokenFlags.customerID).isEmpty
        let checks = VerificationCheck.list(of: report, withUser: namesSomebody)
        try invocation.print(report.json(checks)) {
            for line in lines(report, checks) { try invocation.io.print(line) }
        }
        guard report.isAccepted else { throw ExitCode.verificationFailed }
    }

    private static func report(_ invocation: Invocation) throws -> VerificationReport {
        let texts = try invocation.values(of: key).map { ($0, try invocation.text(ofFile: $0)) }
        let customerKey = try CustomerTokenFlags.key(invocation, keyID: keyID)
        let customerIDs = try CustomerTokenFlags.customerIDs(invocation)
        guard !texts.isEmpty || customerKey != nil else {
            throw CommandError(
                .usage, "which key?",
                hint: "--key FILE takes the public key that the app has, up to three times")
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
        let text = try invocation.tokenText(token)
        if customerKey != nil || !customerIDs.isEmpty {
            guard try invocation.value(of: user) == nil else {
                throw CommandError(
                    .usage, "a token is for a user or for a customer", hint: "--user or --customer-id")
            }
            return CustomerTokenVerifier(secrets: customerKey.map { [$0.verifying] } ?? [], ring: verifier)
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

    private static func lines(_ report: VerificationReport, _ checks: [VerificationCheck]) -> [String] {
        var lines: [String] = []
        for check in checks {
            switch check.outcome {
            case .passed: lines.append("ok    \(check.name)")
            case .notJudged: lines.append("-     \(check.name)")
            case .failed:
                lines += check.details.map { "FAIL  \(check.name): \($0) (\(check.code.rawValue))" }
            }
        }
        lines += report.warnings.map { "note  \($0.rawValue)" }
        guard let code = report.code else { return lines + ["accepted"] }
        return lines + ["rejected: \(code.rawValue) \(code.reason)", "fix: \(code.fix)"]
    }

    private static func verifyBatch(_ text: String, _ io: CommandIO) throws {
        for line in text.utf8.split(separator: UInt8(ascii: "\n"))
        where line.contains(where: { ![0x20, 0x09, 0x0D].contains($0) }) {
            try io.print(TokenBatchLine.answer(to: Array(line)))
        }
    }
}
