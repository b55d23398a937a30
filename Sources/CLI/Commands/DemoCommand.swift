internal import CountersignGateway
internal import CountersignJOSE
internal import Foundation
internal import GatewayModel

enum DemoCommand {
    private static let input = Flag(
        "input", .path("FILE"), help: "replay this access log (combined format) or GPX track")
    private static let devices = Flag(
        "devices", .integer("N", 2...50),
        help: "number of simulated devices, one of them with forged tokens; default: 5, or 13 for a file")
    private static let data = Flag(
        "data", .path("PATH"),
        help: "folder to keep the run in; by default a temporary one that is deleted at the end")
    private static let server = Flag(
        "server", .text("URL"),
        help: "run only devices, and send to the gateways at this URL; with --write-key-file and --key")
    private static let writeKeyFile = Flag(
        "write-key-file", .path("FILE"), help: "with --server: the write key of an app that requires tokens")
    private static let key = Flag(
        "key", .path("FILE"), help: "with --server: a private key that signs the users' tokens")

    static let command = Command(
        "demo", summary: "Show events going from devices through the gateway to disk",
        details: """
            Starts a gateway with an app that requires tokens, and devices that each have their own queue. Tokens expire during
            the run, one device loses its network, and one has forged tokens, signed with another key. At the end the
            database is compared with the recorded events. If you kill the gateway meanwhile, it is restarted. Exits with 0
            if every event is stored exactly once, and with 3 if not. With --server it exits with 0 if all events of the
            devices with valid tokens were delivered, and none with forged tokens; it cannot read the database.
            """,
        flags: [input, devices, data, server, writeKeyFile, key],
        examples: [
            "A sample of shop events": "countersign demo",
            "The visitors of a web site": "countersign demo --input access.log",
            "Keep the databases": "countersign demo --devices 3 --data ./demo",
        ]
    ) { invocation in
        let destination = try destination(invocation)
        let path = try invocation.value(of: input)
        let count = try invocation.integer(of: devices) ?? (path == nil ? 5 : 13)
        let replay =
            try path.map(Replay.read(path:)) ?? ShopSample.replay(users: count - 1, eventsPerUser: 150)
        describe(replay, invocation.io)
        guard let executable = Bundle.main.executablePath else {
            throw CommandError(.failed, "the path of the program is unknown")
        }
        let kept = try invocation.value(of: data)
        let folder =
            kept.map { URL(fileURLWithPath: $0).standardizedFileURL }
            ?? FileManager.default.temporaryDirectory.appendingPathComponent(
                "countersign-demo-\(UUID().uuidString)")
        defer { if kept == nil { try? FileManager.default.removeItem(at: folder) } }
        let run = DemoRun(
            plan: DemoPlan(replay: replay, devices: count), folder: folder,
            executable: executable, destination: destination, io: invocation.io)
        guard let isRight = try await finish(run, folder) else { throw ExitCode.interrupted }
        if let kept, destination == nil {
            invocation.io.say("The database: sqlite3 " + "\(kept)/gateway/events.sqlite".quotedForShell)
        }
        guard isRight else { throw ExitCode.verificationFailed }
    }

    private static func destination(_ invocation: Invocation) throws -> DemoRun.Destination? {
        let files = (try invocation.value(of: writeKeyFile), try invocation.value(of: key))
        switch (try invocation.value(of: server), files.0, files.1) {
        case (nil, nil, nil): return nil
        case (let server?, let writeKeyFile?, let key?):
            return DemoRun.Destination(
                endpoint: try Invocation.gatewayURL(server),
                writeKey: try invocation.secret(ofFile: writeKeyFile),
                key: try SigningKey(pem: try invocation.text(ofFile: key)))
        default:
            throw CommandError(
                .usage, "--server, --write-key-file and --key belong together",
                hint: "without any of them the demo starts its own gateway")
        }
    }

    /// Offers to serve the dashboard with the run's data until Ctrl-C, if there is a terminal.
    private static func offerDashboard(_ folder: URL, _ io: CommandIO) async throws {
        guard let answer = await answer("Look at this run in the dashboard? [Y/n]", io),
            ["", "y", "yes"].contains(answer.lowercased())
        else { return }
        var configuration = GatewayConfiguration(
            dataDirectory: folder.appendingPathComponent("gateway").path)
        configuration.port = 0
        let gateway = try Gateway(configuration: configuration)
        try gateway.start()
        let setup = try gateway.makeSetupToken().map { "#/setup/" + $0 } ?? ""
        io.say("Open \(configuration.adminURL(port: gateway.adminPort))/admin/\(setup)")
        io.say("The link works once and sets a password. Ctrl-C ends the demo.")
        // A stream without elements ends when the task is cancelled.
        let (never, continuation) = AsyncStream.makeStream(of: Void.self)
        for await _ in never {}
        continuation.finish()
        gateway.stop()
    }

    /// Reads an answer; nil without a terminal or after cancellation. Asks on a separate thread, because
    /// reading cannot be cancelled.
    private static func answer(_ question: String, _ io: CommandIO) async -> String? {
        let (answers, continuation) = AsyncStream.makeStream(of: String?.self)
        Thread.detachNewThread {
            continuation.yield(io.askOpenly(question))
            continuation.finish()
        }
        for await answer in answers { return answer }
        return nil
    }

    private static func describe(_ replay: Replay, _ io: CommandIO) {
        io.say("Replaying \(replay.events.count) events: \(replay.source).")
        for problem in replay.problems.prefix(5) {
            io.say("  line \(problem.line) is skipped: \(problem.reason)")
        }
        if replay.problems.count > 5 { io.say("  … and \(replay.problems.count - 5) more") }
    }

    private static func finish(_ run: DemoRun, _ folder: URL) async throws -> Bool? {
        let (result, isCancelled) = await StopSignals().cancelling {
            let isRight = try await run.run()
            if run.destination == nil {
                run.io.say("For your own app: countersign dev (docs/start.md)")
                try await offerDashboard(folder, run.io)
            }
            return isRight
        }
        if isCancelled, case .failure(is CancellationError) = result { return nil }
        return try result.get()
    }
}
