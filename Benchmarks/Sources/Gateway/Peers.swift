import Foundation

/// Compares the gateway, HAProxy and the servers of `Benchmarks/Peers`, in turns, with the same tokens and bodies.
///
/// The server under test has one core and `wrk` the other. Each peer first passes ``HonestyTest``.
struct Peers {
    private static let kinds = [
        Traffic.Kind(name: "seen token, 2,000 users", users: 2_000, events: 1),
        Traffic.Kind(name: "fresh token, 24,000 users", users: 24_000, events: 1, isFresh: true),
        Traffic.Kind(name: "20 events, 2,000 users", users: 2_000, events: 20),
    ]
    private static let core = (server: 0, load: 1)

    let countersign: String
    let folder: URL
    let seconds: Int
    /// With 0 rounds, only the honesty tests run.
    let rounds: Int

    private struct Candidate {
        let name: String
        let server: Server
    }

    func run() throws {
        let commands = try build()
        let kinds = rounds > 0 ? Self.kinds : [Self.kinds[0]]
        let credentials = try Credentials(countersign: countersign, folder: folder, kinds: kinds)
        var candidates: [Candidate] = []
        defer { for candidate in candidates { candidate.server.stop() } }
        if let haproxy = try Server.haproxy(credentials, folder: folder, core: Self.core.server) {
            candidates.append(Candidate(name: "HAProxy, stores nothing", server: haproxy))
        } else {
            print("HAProxy skipped: it is not installed")
        }
        let gateway = try Server.gateway(
            countersign: countersign, dataDirectory: credentials.dataDirectory, core: Self.core.server)
        candidates.append(Candidate(name: "Countersign", server: gateway))
        for (name, command) in commands {
            let test = HonestyTest(command: command, credentials: credentials, folder: folder)
            let (failures, summary) = try test.run(name)
            guard failures.isEmpty else {
                print("\(name) skipped: \(failures.joined(separator: "; "))")
                continue
            }
            print("\(name) passed: \(summary)")
            candidates.append(
                Candidate(
                    name: name,
                    server: try Server.peer(
                        command, database: folder.appendingPathComponent("\(name).sqlite").path,
                        credentials, core: Self.core.server)))
        }
        guard rounds > 0 else { return }
        print("load average before: \(loadAverage)")
        print(
            "| server | CPU us a request (min to max) | to HAProxy | to Countersign | requests/s "
                + "| p50 ms | p99 ms | p99.9 ms | bytes written a request | MB |")
        for kind in kinds { try measure(kind, candidates, credentials) }
        for candidate in candidates where candidate.server.storesEvents {
            print("\(candidate.name): \(try candidate.server.storedEvents()) events stored")
        }
        print("load average after: \(loadAverage)")
    }

    /// The command of each peer that could be built. Prints the reasons for the others.
    private func build() throws -> [(name: String, command: [String])] {
        let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let output = try Command.output(
            package.appendingPathComponent("Peers/build.sh").path,
            [package.appendingPathComponent(".build/peers").path])
        return output.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ").map(String.init)
            guard words.count > 1, words[1] != "skipped:" else {
                print(line)
                return nil
            }
            return (words[0], Array(words.dropFirst()))
        }
    }

    private func measure(_ kind: Traffic.Kind, _ candidates: [Candidate], _ credentials: Credentials) throws {
        let load = try Load(
            .init(
                name: "u\(kind.users)-n\(kind.events)", events: kind.events, tokens: kind.tokens,
                isAccepted: true),
            credentials, folder: folder)
        func run(_ candidate: Candidate) throws -> Load.Result {
            try load.run(
                on: candidate.server, seconds: seconds, checks: candidate.server.storesEvents,
                core: Self.core.load)
        }
        // Before the measurement each server gets each token, so that tokens and users are in its caches.
        for candidate in candidates {
            var sent = 0
            while sent < (kind.isFresh ? 1 : 3) * kind.users { sent += try run(candidate).requests }
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
        print("\(kind.name), \(rounds) rounds of \(seconds) s:")
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
                candidate.name,
                String(
                    format: "%.1f (%.1f to %.1f)", median(costs), costs.min() ?? 0, costs.max() ?? 0),
                ratio(to: "HAProxy, stores nothing"), ratio(to: "Countersign"),
                String(format: "%.0f", median(own.map(\.requestsPerSecond))),
                milliseconds(own.map(\.p50)), milliseconds(own.map(\.p99)), milliseconds(own.map(\.p999)),
                "\((written[candidate.name] ?? 0) / max(1, own.map(\.requests).reduce(0, +)))",
                candidate.server.residentMegabytes.map { String(format: "%.0f", $0) } ?? "-",
            ]
            print("| " + columns.joined(separator: " | ") + " |")
        }
    }

    private func milliseconds(_ microseconds: [Int]) -> String {
        String(format: "%.1f", median(microseconds.map { Double($0) / 1_000 }))
    }

    private var loadAverage: String {
        (try? String(contentsOfFile: "/proc/loadavg", encoding: .utf8))?.split(separator: " ").prefix(3)
            .joined(separator: " ") ?? "-"
    }
}
