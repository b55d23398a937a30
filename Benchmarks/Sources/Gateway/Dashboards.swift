import Foundation

/// Measures the latency of event requests while four dashboards are open, each with overview, failures and live tail,
/// and while all events are exported repeatedly.
///
/// Rounds with and without dashboards alternate. Few connections send events, so that requests do not delay each other.
/// `curl` shares the processors with the gateway.
struct Dashboards {
    private static let dashboards = 4
    private static let connections = 8
    private static let rounds = 5
    /// The highest p99 that the aim allows, as a multiple of the idle p99.
    private static let aim = 1.5

    let countersign: String
    let folder: URL
    /// The number of events in the log, which the export reads.
    let events: Int
    let seconds: Int

    func run() throws {
        let credentials = try Credentials(
            countersign: countersign, folder: folder, tokens: [.users(2_000)])
        let token = try Command.output(
            countersign,
            [
                "admin", "token", "create", "--name", "bench", "--scopes", "write", "--data",
                credentials.dataDirectory,
            ],
            folder: folder)
        let gateway = try Server.gateway(countersign: countersign, dataDirectory: credentials.dataDirectory)
        defer { gateway.stop() }
        func load(_ name: String, _ events: Int) throws -> Load {
            try Load(.init(name: name, tokens: .users(2_000), events: events), credentials, folder: folder)
        }
        try load("fill", 100).fill(gateway, to: events)
        let ingestion = try load("ingestion", 1)
        _ = try ingestion.run(on: gateway, seconds: 2, checks: true)
        var idle: [Load.Result] = []
        var busy: [Load.Result] = []
        for _ in 0..<Self.rounds {
            idle.append(
                try ingestion.run(
                    on: gateway, seconds: seconds, checks: true, connections: Self.connections))
            let crowd = try Crowd(gateway, token: token, dashboards: Self.dashboards, folder: folder)
            busy.append(
                try ingestion.run(
                    on: gateway, seconds: seconds, checks: true, connections: Self.connections))
            try crowd.leave()
        }
        print("1 event over \(Self.connections) connections   requests/s  p50 us  p99 us (min median max)")
        for (name, results) in [("idle", idle), ("\(Self.dashboards) dashboards, an export", busy)] {
            let slowest = results.map(\.p99).sorted()
            print(
                name, "|", String(format: "%.0f", median(results.map(\.requestsPerSecond))), "|",
                Int(median(results.map { Double($0.p50) })), "|",
                slowest[0], slowest[slowest.count / 2], slowest[slowest.count - 1])
        }
        let ratio = median(busy.map { Double($0.p99) }) / median(idle.map { Double($0.p99) })
        print(String(format: "p99 to idle: %.2f%@", ratio, ratio <= Self.aim ? "" : "  above the aim"))
    }
}

/// Processes that act as open dashboards.
private final class Crowd {
    private var processes: [Process] = []

    init(_ gateway: Server, token: String, dashboards: Int, folder: URL) throws {
        let base = "\(gateway.url)/admin/api"
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        let day = "from_ms=\(now - 86_400_000)&to_ms=\(now)"
        /// Starts a process that repeats the requests, `perMinute` or without a limit.
        func repeating(_ name: String, _ paths: [String], perMinute: Int?) throws {
            let file = folder.appendingPathComponent("\(name).curl").path
            let urls = paths.map { "url = \"\(base)\($0)\"\noutput = \"/dev/null\"\n" }.joined()
            try String(repeating: urls, count: 1_000).write(toFile: file, atomically: true, encoding: .utf8)
            let rate = perMinute.map { ["--rate", "\($0)/m"] } ?? []
            processes.append(
                try Command.start(
                    "curl",
                    ["-s", "-f", "-H", "Authorization: Bearer \(token)"] + rate + ["-K", file]))
        }
        for _ in 0..<dashboards {
            // Three requests every five seconds, like the page of failures.
            try repeating(
                "dashboard",
                ["/overview", "/apps/bench/analytics?\(day)", "/apps/bench/samples"], perMinute: 36)
            processes.append(
                try Command.start(
                    "curl",
                    ["-s", "-f", "-N", "-H", "Authorization: Bearer \(token)", "\(base)/live?app=bench"]))
        }
        try repeating("export", ["/apps/bench/events/export"], perMinute: nil)
    }

    /// Ends the processes. Throws if one ended early, as after a rejected request.
    func leave() throws {
        let areThere = processes.allSatisfy(\.isRunning)
        for process in processes {
            process.terminate()
            process.waitUntilExit()
        }
        guard areThere else { throw Command.Failure(description: "a dashboard or an export was rejected") }
    }
}
