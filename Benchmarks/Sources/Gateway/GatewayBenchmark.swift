import Foundation

/// Measures the gateway and HAProxy under `wrk` in the same run: the server's CPU time for each request, and the
/// latency.
///
/// `make bench` builds and runs this program. HAProxy verifies the same tokens (`jwt_verify`, `sub` and `exp`), answers
/// with a fixed text and stores nothing. Figures of different runs differ by 20 % and more on a shared machine, so the
/// last column is the ratio to HAProxy in an adjacent run.
@main struct GatewayBenchmark {
    /// Requests of one kind.
    struct Scenario {
        let name: String
        /// The number of events in a request.
        let events: Int
        let tokens: Tokens
        /// Whether all responses must be 200. Otherwise no response may be 200.
        let isAccepted: Bool
    }

    enum Tokens {
        /// One valid token for all requests, which the gateway has in its cache.
        case one
        /// More valid tokens than fit into the gateway's cache, in turn, so that each is verified in full.
        case fresh
        case expired, forged
        /// A valid token for each of a number of users, chosen at random.
        case users(Int)
        /// More valid tokens of a number of users than fit into the gateway's cache, in turn.
        case freshOfUsers(Int)

        /// The name of the file with the tokens.
        var file: String {
            switch self {
            case .users(let count): "users-\(count)"
            case .freshOfUsers(let count): "fresh-users-\(count)"
            default: "\(self)"
            }
        }

        /// The number of users whose events are sent; nil for one user.
        var users: Int? {
            switch self {
            case .users(let count), .freshOfUsers(let count): count
            default: nil
            }
        }
    }

    static let scenarios = [
        Scenario(name: "seen-token-store-N=1", events: 1, tokens: .one, isAccepted: true),
        Scenario(name: "seen-token-store-N=4", events: 4, tokens: .one, isAccepted: true),
        Scenario(name: "seen-token-store-N=20", events: 20, tokens: .one, isAccepted: true),
        Scenario(name: "fresh-token-store-N=1", events: 1, tokens: .fresh, isAccepted: true),
        Scenario(name: "reject-expired-N=1", events: 1, tokens: .expired, isAccepted: false),
        Scenario(name: "reject-forged-N=1", events: 1, tokens: .forged, isAccepted: false),
    ]

    static func main() throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 2 else {
            print("usage: Gateway PATH-OF-COUNTERSIGN [SECONDS] [REQUESTS]")
            print("       Gateway PATH-OF-COUNTERSIGN views [REQUESTS]")
            print("       Gateway PATH-OF-COUNTERSIGN floods [SECONDS]")
            print("       Gateway PATH-OF-COUNTERSIGN traffic [SECONDS] [EVENTS-STORED...]")
            print("       Gateway PATH-OF-COUNTERSIGN dashboards [SECONDS] [EVENTS-STORED]")
            print("       Gateway PATH-OF-COUNTERSIGN peers [SECONDS] [ROUNDS]")
            print("       Gateway PATH-OF-COUNTERSIGN readers [SECONDS] [EVENTS-STORED] [SECONDS-TO-FILL]")
            exit(2)
        }
        do {
            try run(arguments)
        } catch {
            print("\(error)")
            exit(1)
        }
    }

    private static func run(_ arguments: [String]) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "bench-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        if arguments.count > 2, arguments[2] == "views" {
            let requests = arguments.count > 3 ? Int(arguments[3]) ?? 0 : 1_000_000
            return try Views(countersign: arguments[1], folder: folder, requests: requests).run()
        }
        if arguments.count > 2, arguments[2] == "floods" {
            let seconds = arguments.count > 3 ? Int(arguments[3]) ?? 10 : 10
            return try Floods(countersign: arguments[1], folder: folder, seconds: seconds).run()
        }
        if arguments.count > 2, arguments[2] == "traffic" {
            let sizes = arguments.dropFirst(4).compactMap { Int($0) }
            return try Traffic(
                countersign: arguments[1], folder: folder, sizes: sizes.isEmpty ? [0, 1_000_000] : sizes,
                seconds: arguments.count > 3 ? Int(arguments[3]) ?? 5 : 5
            ).run()
        }
        if arguments.count > 2, arguments[2] == "dashboards" {
            return try Dashboards(
                countersign: arguments[1], folder: folder,
                events: arguments.count > 4 ? Int(arguments[4]) ?? 0 : 200_000,
                seconds: arguments.count > 3 ? Int(arguments[3]) ?? 5 : 5
            ).run()
        }
        if arguments.count > 2, arguments[2] == "readers" {
            return try Readers(
                countersign: arguments[1], folder: folder,
                events: arguments.count > 4 ? Int(arguments[4]) ?? 0 : 1_000_000,
                seconds: arguments.count > 3 ? Int(arguments[3]) ?? 5 : 5,
                secondsToFill: arguments.count > 5 ? Double(arguments[5]) ?? 600 : 600
            ).run()
        }
        if arguments.count > 2, arguments[2] == "peers" {
            return try Peers(
                countersign: arguments[1], folder: folder,
                seconds: arguments.count > 3 ? Int(arguments[3]) ?? 4 : 4,
                rounds: arguments.count > 4 ? Int(arguments[4]) ?? 4 : 4
            ).run()
        }
        let seconds = arguments.count > 2 ? Int(arguments[2]) ?? 5 : 5
        let requests = arguments.count > 3 ? Int(arguments[3]) ?? 0 : 1_000_000
        let credentials = try Credentials(
            countersign: arguments[1], folder: folder, fresh: Credentials.freshTokens)
        let gateway = try Server.gateway(
            countersign: arguments[1], dataDirectory: credentials.dataDirectory)
        defer { gateway.stop() }
        let haproxy = try Server.haproxy(credentials, folder: folder)
        defer { haproxy?.stop() }
        if haproxy == nil { print("haproxy is not installed: no ratios") }

        print("scenario                       requests/s  CPU us/request  p50 us  p99 us  to HAProxy")
        for scenario in scenarios {
            let load = try Load(scenario, credentials, folder: folder)
            let before = try haproxy.map { try load.run(on: $0, seconds: seconds, checks: false) }
            let result = try load.run(on: gateway, seconds: seconds, checks: true)
            if let before { report("haproxy-\(scenario.tokens)", before, against: before) }
            report(scenario.name, result, against: before)
        }
        try printProfile(gateway, credentials, folder: folder)
        if requests > 0 { try soak(gateway, credentials, folder: folder, requests: requests) }
        print("events stored: \(try gateway.storedEvents())")
    }

    private static func report(_ name: String, _ result: Load.Result, against peer: Load.Result?) {
        let ratio = peer.map {
            String(format: "%.2f", result.microsecondsPerRequest / $0.microsecondsPerRequest)
        }
        print(
            name.padding(toLength: 29, withPad: " ", startingAt: 0)
                + String(format: "%12.0f", result.requestsPerSecond)
                + String(format: "%16.1f", result.microsecondsPerRequest)
                + leftPadded(String(result.p50), 8) + leftPadded(String(result.p99), 8)
                + leftPadded(ratio ?? "-", 12))
    }

    /// Prints the gateway's CPU time by function, if `perf` is installed and allowed.
    private static func printProfile(_ gateway: Server, _ credentials: Credentials, folder: URL) throws {
        let load = try Load(scenarios[0], credentials, folder: folder)
        let data = folder.appendingPathComponent("perf.data").path
        let perf = try? Command.start(
            "perf",
            [
                "record", "-q", "-F", "999", "-p", String(gateway.processIdentifier), "-o", data, "--",
                "sleep", "3",
            ])
        guard let perf else { return }
        _ = try load.run(on: gateway, seconds: 4, checks: true)
        perf.waitUntilExit()
        guard perf.terminationStatus == 0,
            let text = try? Command.output(
                "perf",
                ["report", "-i", data, "--no-children", "--sort", "dso,symbol", "-g", "none", "--stdio"])
        else {
            print("profile: perf is not allowed on this machine")
            return
        }
        print("profile of \(scenarios[0].name), the largest entries:")
        for line in text.split(separator: "\n").filter({ !$0.hasPrefix("#") && !$0.isEmpty }).prefix(15) {
            print("  " + line.trimmingCharacters(in: .whitespaces).prefix(110))
        }
    }

    /// Prints the gateway's memory during many requests.
    private static func soak(
        _ gateway: Server, _ credentials: Credentials, folder: URL, requests: Int
    ) throws {
        let load = try Load(scenarios[0], credentials, folder: folder)
        print("requests   resident MB")
        var done = 0
        while done < requests {
            done += try load.run(on: gateway, seconds: 5, checks: true).requests
            print(
                leftPadded(String(done), 8)
                    + leftPadded(gateway.residentMegabytes.map { String(format: "%.1f", $0) } ?? "-", 14))
        }
    }

    private static func leftPadded(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
