import Foundation

/// Compares the gateway, HAProxy and the servers of `Benchmarks/Peers`, in turns, with the same tokens and bodies.
///
/// Many users send events with random ids, first to an empty log, and again when the log has grown to each of `sizes`.
/// With one core, the server has that core and `wrk` another. With two cores, neither program is bound to a core.
/// The peers run on one core and with an empty log only. Each peer first passes ``HonestyTest``.
struct Comparison {
    struct Traffic {
        let name: String
        let tokens: GatewayBenchmark.Tokens
        var events = 1
        var isAccepted = true
        /// Whether the peers are measured too.
        var hasPeers = false
    }

    static let traffics = [
        // First, because the other kinds of traffic store events of the same users.
        Traffic(name: "first event of a user, fresh token", tokens: .freshOfUsers(Credentials.freshTokens)),
        Traffic(name: "seen token, 2,000 users", tokens: .users(2_000), hasPeers: true),
        Traffic(name: "seen token, 24,000 users", tokens: .users(24_000)),
        Traffic(name: "seen token, 100,000 users", tokens: .users(100_000)),
        Traffic(name: "20 events, 2,000 users", tokens: .users(2_000), events: 20, hasPeers: true),
        Traffic(name: "fresh token, 24,000 users", tokens: .freshOfUsers(24_000), hasPeers: true),
        Traffic(name: "expired token", tokens: .expired, isAccepted: false),
        Traffic(name: "forged token", tokens: .forged, isAccepted: false),
    ]
    private static let haproxy = "HAProxy, stores nothing"
    private static let gateway = "Countersign"

    let countersign: String
    let folder: URL
    let seconds: Int
    let rounds: Int
    /// The sizes of the log, in events, at which the gateway is measured again.
    let sizes: [Int]
    /// The file for `chart.gnuplot`, with a line of tab-separated values for each row of the table.
    let chart: URL

    private struct Candidate {
        let name: String
        let server: Server
    }

    func run() throws {
        try Data().write(to: chart)
        let lines = try FileHandle(forWritingTo: chart)
        let credentials = try Credentials(
            countersign: countersign, folder: folder, tokens: Self.traffics.map(\.tokens))
        let peers = try honestPeers(credentials)
        print("load average before: \(loadAverage)")
        print(
            "| traffic | events stored | cores | server | CPU us a request (min to max) | to HAProxy | to Countersign "
                + "| requests/s | p50 ms | p99 ms | p99.9 ms | bytes written a request | MB |")
        for size in [0] + sizes {
            for cores in [1, 2] {
                try measure(on: cores, size: size, cores == 1 && size == 0 ? peers : [], credentials, lines)
            }
        }
        print("load average after: \(loadAverage)")
    }

    private func measure(
        on cores: Int, size: Int, _ peers: [(name: String, command: [String])], _ credentials: Credentials,
        _ lines: FileHandle
    ) throws {
        let core = cores == 1 ? 0 : nil
        let gateway = try Server.gateway(
            countersign: countersign, dataDirectory: credentials.dataDirectory, core: core)
        var candidates = [Candidate(name: Self.gateway, server: gateway)]
        defer { for candidate in candidates { candidate.server.stop() } }
        if let haproxy = try Server.haproxy(credentials, folder: folder, threads: cores, core: core) {
            candidates.insert(Candidate(name: Self.haproxy, server: haproxy), at: 0)
        }
        for (name, command) in peers {
            let database = folder.appendingPathComponent("\(name).sqlite").path
            candidates.append(
                Candidate(
                    name: name,
                    server: try Server.peer(command, database: database, credentials, core: core)))
        }
        let fill = Traffic(name: "fill", tokens: .users(24_000), events: 100)
        try load(fill, credentials).fill(gateway, to: size)
        // In later runs the users of the first traffic already have events.
        for traffic in Self.traffics.dropFirst(cores == 1 && size == 0 ? 0 : 1) {
            try measure(traffic, on: cores, candidates, credentials, lines)
        }
    }

    private func load(_ traffic: Traffic, _ credentials: Credentials) throws -> Load {
        try Load(traffic, credentials, folder: folder)
    }

    private func measure(
        _ traffic: Traffic, on cores: Int, _ candidates: [Candidate], _ credentials: Credentials,
        _ lines: FileHandle
    ) throws {
        let candidates = candidates.filter {
            traffic.hasPeers || [Self.haproxy, Self.gateway].contains($0.name)
        }
        let load = try load(traffic, credentials)
        func run(_ candidate: Candidate) throws -> Load.Result {
            try load.run(
                on: candidate.server, seconds: seconds, checks: candidate.server.storesEvents,
                core: cores == 1 ? 1 : nil)
        }
        // Before the measurement each server gets the tokens of most users, so that these are in its caches.
        if case .users(let users) = traffic.tokens {
            for candidate in candidates {
                var sent = 0
                while sent < 2 * users { sent += try run(candidate).requests }
            }
        }
        var results: [String: [Load.Result]] = [:]
        var written: [String: Int] = [:]
        for round in 0..<rounds {
            // Rotates the order, so that no server is always first in a round.
            for turn in candidates.indices {
                let candidate = candidates[(turn + round) % candidates.count]
                let before = candidate.server.writtenBytes ?? 0
                results[candidate.name, default: []].append(try run(candidate))
                written[candidate.name, default: 0] += (candidate.server.writtenBytes ?? 0) - before
            }
        }
        let stored = try candidates.first { $0.name == Self.gateway }?.server.storedEvents() ?? 0
        for candidate in candidates {
            guard let own = results[candidate.name] else { continue }
            func ratio(to name: String) -> String {
                guard let other = results[name] else { return "-" }
                return String(
                    format: "%.2f",
                    median(zip(own, other).map { $0.microsecondsPerRequest / $1.microsecondsPerRequest }))
            }
            let costs = own.map(\.microsecondsPerRequest)
            let columns = [
                traffic.name, String(format: "%.1f M", Double(stored) / 1_000_000), "\(cores)",
                candidate.name,
                String(format: "%.1f (%.1f to %.1f)", median(costs), costs.min() ?? 0, costs.max() ?? 0),
                ratio(to: Self.haproxy), ratio(to: Self.gateway),
                String(format: "%.0f", median(own.map(\.requestsPerSecond))),
                milliseconds(own.map(\.p50)), milliseconds(own.map(\.p99)), milliseconds(own.map(\.p999)),
                "\((written[candidate.name] ?? 0) / max(1, own.map(\.requests).reduce(0, +)))",
                candidate.server.residentMegabytes.map { String(format: "%.0f", $0) } ?? "-",
            ]
            print("| " + columns.joined(separator: " | ") + " |")
            fflush(nil)
            try lines.write(
                contentsOf: Data(
                    "\(traffic.name)\t\(stored)\t\(cores)\t\(candidate.name)\t\(median(costs))\n".utf8))
        }
    }

    private func milliseconds(_ microseconds: [Int]) -> String {
        String(format: "%.1f", median(microseconds.map { Double($0) / 1_000 }))
    }

    private var loadAverage: String {
        (try? String(contentsOfFile: "/proc/loadavg", encoding: .utf8))?.split(separator: " ").prefix(3)
            .joined(separator: " ") ?? "-"
    }

    /// The commands of the peers that can be built here and pass the test. Prints the reasons for the others.
    private func honestPeers(_ credentials: Credentials) throws -> [(name: String, command: [String])] {
        let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let output = try Command.output(
            package.appendingPathComponent("Peers/build.sh").path,
            [package.appendingPathComponent(".build/peers").path])
        return try output.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ").map(String.init)
            guard words.count > 1, words[1] != "skipped:" else {
                print(line)
                return nil
            }
            let peer = (name: words[0], command: Array(words.dropFirst()))
            let test = HonestyTest(command: peer.command, credentials: credentials, folder: folder)
            let (failures, summary) = try test.run(peer.name)
            print(
                "\(peer.name) \(failures.isEmpty ? "passed: \(summary)" : "skipped: \(failures.joined(separator: "; "))")"
            )
            return failures.isEmpty ? peer : nil
        }
    }
}
