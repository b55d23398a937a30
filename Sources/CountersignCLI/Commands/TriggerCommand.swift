internal import CountersignCore
internal import Foundation

/// `countersign trigger`.
enum TriggerCommand {
    private static let verdict = Positional(
        "VERDICT", help: "ok, a code such as 22, its word such as EXPIRED, or all")

    static let command = Command(
        "trigger", summary: "Send the running gateway a real request that ends in exactly this verdict",
        details: """
            For trying out alerts, dashboards and clients. The requests go to an app of their own, trigger, which is made at
            the first time with a key pair, an audience and an issuer, and which requires tokens; its secrets lie in
            trigger.json in the data directory (mode 0600), so it works on a data directory only, never on a profile. For
            code 25 a second app of its own gets, for the moment, a key that cannot be used. Exit 3 when the gateway judges
            otherwise.
            """,
        positionals: [verdict], flags: [.url, .json, .data],
        examples: [
            "A request with an expired token": "countersign trigger 22",
            "One of each kind": "countersign trigger all",
        ]
    ) { invocation in
        let word = invocation[verdict]
        let wanted = try wanted(word)
        let url = try invocation.gatewayURL(note: try invocation.onlyHere())
        let trigger = try Trigger(dataDirectory: try invocation.dataDirectory(), url: url)
        var allAsWanted = true
        for code in wanted {
            let answer = try await trigger.send(code)
            let isAsWanted = answer.is(code)
            allAsWanted = allAsWanted && isAsWanted
            if invocation.isSet(.json) {
                try invocation.io.print([
                    "wanted": code.map { .integer(Int64($0.rawValue)) } ?? "ok",
                    "status": .integer(Int64(answer.status)),
                    "code": answer.code.map { .integer(Int64($0.rawValue)) } ?? .null,
                    "reason": answer.code.map { .string($0.reason) } ?? .null,
                    "request_id": answer.requestID.map { .string($0) } ?? .null,
                    "as_wanted": .bool(isAsWanted),
                ])
            } else {
                let said = answer.code.map { "\($0.rawValue) \($0.reason)" } ?? "accepted"
                try invocation.io.print("\(isAsWanted ? "ok  " : "FAIL") \(answer.status) \(said)")
            }
        }
        guard allAsWanted else { throw ExitCode.verificationFailed }
    }

    /// What to provoke; nil stands for an accepted request.
    private static func wanted(_ word: String) throws(CommandError) -> [AuthErrorCode?] {
        if word == "ok" { return [nil] }
        if word == "all" { return [nil] + AuthErrorCode.all }
        return [try AuthErrorCode(word: word)]
    }
}
