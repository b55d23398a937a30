internal import CountersignCore
internal import CountersignGateway
internal import Foundation
internal import GatewayStorage

enum TriggerCommand {
    private static let verdict = Positional(
        "VERDICT", completes: .words(["ok", "all"] + AuthErrorCode.all.map(\.reason)),
        help: "ok, a code such as 22, its word such as EXPIRED, or all")

    static let command = Command(
        "trigger", summary: "Send the running gateway a real request that gets exactly this verdict",
        details: """
            For trying out alerts, the live tail and clients. The requests go to a separate app, which is created with a key
            pair, an audience and an issuer, requires tokens, and is deleted at the end, even after Ctrl-C. On a server this
            needs the scope admin. With --keep the app stays for the next time, with its counts in the dashboard. Exit 3 if
            the gateway returns another verdict.
            """,
        positionals: [verdict], flags: [gateway, keep, .json] + Flag.target,
        examples: [
            "A request with an expired token": "countersign trigger 22",
            "One of each kind, for the dashboard": "countersign trigger all --keep",
        ]
    ) { invocation in
        let word = invocation[verdict]
        let code = try word == "ok" || word == "all" ? nil : AuthErrorCode(word: word)
        let (trigger, apps) = try await prepare(invocation)
        let (result, isCancelled) = await StopSignals().cancelling {
            try await send(word == "all" ? trigger.all : [code], trigger, invocation)
        }
        let left = await apps.delete()
        if let (id, reason) = left {
            invocation.io.say(
                "The app \(id) could not be deleted: \(reason). Next: countersign app delete \(id)")
        }
        if isCancelled { throw ExitCode.interrupted }
        guard try result.get() else { throw ExitCode.verificationFailed }
        if left != nil { throw ExitCode.failed }
    }

    private static let gateway = Flag(
        "gateway", .text("URL"), environment: "COUNTERSIGN_URL",
        help: "the gateway's URL for clients, if the admin API has another one")
    private static let keep = Flag(
        "keep", help: "keep the app trigger in the data directory, its secrets in trigger.json (mode 0600)")

    private static func prepare(_ invocation: Invocation) async throws -> (Trigger, TriggerApps) {
        let given = try invocation.value(of: gateway)
        guard let remote = try invocation.remoteAdmin() else {
            let location = try invocation.storageLocation()
            let url = try given ?? location.requireRunningGateway().url
            var data: String?
            switch location {
            case .folder(let path): data = path
            case .database: try rejectKeep(invocation)
            }
            let apps = TriggerApps(try LocalAdmin(location), keptIn: invocation.isSet(keep) ? data : nil)
            return (Trigger(apps, url: try Invocation.gatewayURL(url)), apps)
        }
        try rejectKeep(invocation)
        // Only an owner may delete the temporary app at the end.
        guard try await remote.get("session").body["user"]["role"].text == "owner" else {
            throw CommandError(
                .notAuthorized, "the token may create an app, but not delete it",
                hint: "use a token with the scope admin")
        }
        let apps = TriggerApps(remote, keptIn: nil)
        let url = try Invocation.gatewayURL(given ?? remote.server.url)
        return (Trigger(apps, url: url), apps)
    }

    private static func rejectKeep(_ invocation: Invocation) throws(CommandError) {
        guard invocation.isSet(keep) else { return }
        throw CommandError(
            .usage, "--keep is for a data directory", hint: "it keeps the secrets of the app there")
    }

    /// Provokes and prints each error code. Returns true if all are as expected.
    private static func send(
        _ wanted: [AuthErrorCode?], _ trigger: Trigger, _ invocation: Invocation
    ) async throws -> Bool {
        var allAsWanted = true
        for code in wanted {
            try Task.checkCancellation()
            let answer = try await trigger.send(code)
            let isAsWanted = answer.is(code)
            allAsWanted = allAsWanted && isAsWanted
            if invocation.printsJSON {
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
        return allAsWanted
    }
}
