internal import CountersignGateway
internal import Foundation
internal import GatewayModel

enum DevCommand {
    private static let port = Flag(
        "port", .integer("PORT", 0...65_535), default: "8787", environment: "COUNTERSIGN_PORT",
        help: "the gateway's port; 0 picks a free one")
    private static let backendPort = Flag(
        "backend-port", .integer("PORT", 0...65_535), default: "8000",
        help: "the port of the token endpoint and the page")
    private static let lifetime = Flag(
        "token-lifetime", .duration(.seconds, 1...86_400), default: "3600",
        help: "how long tokens are valid")
    private static let policy = Flag(
        "policy", .path("FILE"), help: "apply this JSON file to the app, and again whenever it changes")
    private static let data = Flag(
        "data", .path("PATH"), default: ".countersign-dev",
        help: "folder that keeps the app, its keys and its events")

    static let command = Command(
        "dev", summary: "Run everything an app needs on this machine during development",
        details: """
            A gateway with the app "dev", which requires tokens; a token endpoint that signs for any user, so for
            development only; a page that records events; the dashboard, signed in; and the result of each request's
            verification. Everything listens on this machine only. App, keys and events stay in the folder for the next run.

            The file of --policy sets what the app requires of its tokens, for example
            {"enforcement": "optional", "leeway_seconds": 5, "maximum_lifetime_seconds": 3600}.
            """,
        flags: [port, backendPort, lifetime, policy, data],
        examples: [
            "The first day of an app": "countersign dev",
            "See tokens expire": "countersign dev --token-lifetime 30s",
        ]
    ) { invocation in
        let io = invocation.io
        let signals = StopSignals()
        let session = try await DevSession(
            path: URL(fileURLWithPath: try invocation.value(of: data) ?? "").standardizedFileURL.path,
            port: UInt16(try invocation.integer(of: port) ?? 0),
            backendPort: UInt16(try invocation.integer(of: backendPort) ?? 0),
            tokenSeconds: try invocation.integer(of: lifetime) ?? 0,
            logFormat: io.isInteractive ? .text(isColored: io.usesColor) : .json)
        defer { session.stop() }
        try io.print(session.gatewayURL)
        describe(session, io)
        let file = try invocation.value(of: policy)
        let (result, isCancelled) = await signals.cancelling {
            try await withThrowingTaskGroup(of: Void.self) { group in
                if let file {
                    let policy = DevPolicy(path: file, admin: try session.folder.admin())
                    group.addTask { await policy.watch(io.say) }
                }
                group.addTask {
                    try await Tail(
                        .init(), io: io,
                        connect: TailCommand.connection(to: .folder(session.folder.path))
                    ).run()
                }
                try await group.waitForAll()
            }
        }
        if !isCancelled { try result.get() }
        io.say("Stopped. The next run continues with the data in \(session.folder.path).")
    }

    private static func describe(_ session: DevSession, _ io: CommandIO) {
        io.say("Write key:  \(session.folder.writeKey)")
        io.say("Tokens:     curl '\(session.backendURL)/token?user=user-1'")
        io.say("Page:       \(session.backendURL)/")
        io.say("Dashboard:  \(session.dashboardURL)")
        io.say("Stop:       Ctrl-C")
        io.say("")
    }
}
