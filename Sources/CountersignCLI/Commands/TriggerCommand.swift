internal import CountersignCore
internal import CountersignGateway
internal import Foundation
internal import GatewayDialects
internal import GatewayStorage

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
            .init("A request with an expired token", "countersign trigger 22"),
            .init("One of each kind", "countersign trigger all"),
        ]
    ) { invocation in
        let word = invocation.requiredWord(of: verdict)
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
        return allAsWanted ? .done : .verificationFailed
    }

    /// What to provoke; nil stands for an accepted request.
    private static func wanted(_ word: String) throws(CommandError) -> [AuthErrorCode?] {
        if word == "ok" { return [nil] }
        if word == "all" { return [nil] + AuthErrorCode.all }
        return [try AuthErrorCode(word: word)]
    }
}

extension Flag {
    /// Where the gateway is.
    static let url = Flag(
        "url", .text("URL"), environment: "COUNTERSIGN_URL",
        help: "the gateway's URL; default: the gateway that runs on the data directory")
}

extension Invocation {
    /// `--url`, else the gateway that runs on the data directory; `note` is said too when none runs.
    func gatewayURL(note: String? = nil) throws -> URL {
        let text: String
        if let given = try value(of: .url) {
            text = given
        } else {
            let data = try dataDirectory()
            guard let running = RunningGateway(dataDirectory: data) else {
                throw CommandError(
                    .unavailable, "no gateway runs on \(data)" + (note.map { "; \($0)" } ?? ""),
                    hint: "start one with `countersign serve`, or give \(note == nil ? "--url" : "--data")")
            }
            text = running.url
        }
        return try Self.gatewayURL(text)
    }

    /// - Throws: `usage`.
    static func gatewayURL(_ text: String) throws(CommandError) -> URL {
        guard let url = URL(string: text), ["http", "https"].contains(url.scheme), url.host != nil else {
            throw CommandError(.usage, "--url takes a URL such as http://127.0.0.1:8787, not '\(text)'")
        }
        return url
    }

    /// What to say when a profile is in use and the command does not follow it; nil when none is.
    func onlyHere() throws -> String? {
        guard let profile = try Profiles(environment: io.environment).inUse else { return nil }
        return "`\(command.name)` works on the data directory only, not on the profile \(profile.name)"
    }
}
