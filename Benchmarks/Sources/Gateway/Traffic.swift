import Foundation

/// Measures the traffic of many users with a token each, with random ids and a growing log, as from real clients.
///
/// Each row is measured in turns with HAProxy, which verifies the same tokens. Before the rows of the next size, the
/// log is filled to that size with batches.
struct Traffic {
    struct Kind {
        let name: String
        let users: Int
        let events: Int
        /// Whether each request has a token that is not in the gateway's cache.
        var isFresh = false

        var tokens: GatewayBenchmark.Tokens { isFresh ? .freshOfUsers(users) : .users(users) }
    }

    static let kinds = [
        Kind(name: "2,000 users, 1 event", users: 2_000, events: 1),
        Kind(name: "24,000 users, 1 event", users: 24_000, events: 1),
        Kind(name: "100,000 users, 1 event", users: 100_000, events: 1),
        Kind(name: "2,000 users, 20 events", users: 2_000, events: 20),
        Kind(name: "24,000 users, fresh", users: 24_000, events: 1, isFresh: true),
    ]
    /// The number of measurements of each row.
    private static let rounds = 3

    let countersign: String
    let folder: URL
    /// The sizes of the log, in events, at which the rows are measured.
    let sizes: [Int]
    let seconds: Int

    func run() throws {
        let credentials = try Credentials(countersign: countersign, folder: folder, kinds: Self.kinds)
        let gateway = try Server.gateway(countersign: countersign, dataDirectory: credentials.dataDirectory)
        defer { gateway.stop() }
        let haproxy = try Server.haproxy(credentials, folder: folder)
        defer { haproxy?.stop() }
        print(
            "events stored  traffic                  requests/s  us/request (min median max)  p50 us  p99 us  bytes/event  MB  to HAProxy"
        )
        for size in sizes {
            try fill(gateway, credentials, upTo: size)
            for kind in Self.kinds { try measure(kind, gateway, haproxy, credentials) }
        }
    }

    private func load(_ kind: Kind, _ credentials: Credentials) throws -> Load {
        try Load(
            .init(
                name: "u\(kind.users)-n\(kind.events)", events: kind.events, tokens: kind.tokens,
                isAccepted: true),
            credentials, folder: folder)
    }

    private func measure(_ kind: Kind, _ gateway: Server, _ haproxy: Server?, _ credentials: Credentials)
        throws
    {
        let load = try load(kind, credentials)
        // Sends users' tokens before the measurement, so that the gateway's cache has as many as fit.
        _ = try load.run(on: gateway, seconds: max(2, kind.users / 8_000), checks: true)
        var costs: [Double] = []
        var ratios: [Double] = []
        var last: Load.Result?
        var written = 0
        var events = 0
        for _ in 0..<Self.rounds {
            let peer = try haproxy.map { try load.run(on: $0, seconds: seconds, checks: false) }
            let before = gateway.writtenBytes ?? 0
            let result = try load.run(on: gateway, seconds: seconds, checks: true)
            written += (gateway.writtenBytes ?? 0) - before
            events += result.requests * kind.events
            costs.append(result.microsecondsPerRequest)
            if let peer { ratios.append(result.microsecondsPerRequest / peer.microsecondsPerRequest) }
            last = result
        }
        costs.sort()
        guard let last else { return }
        let columns = [
            "\(try gateway.storedEvents())", kind.name,
            String(format: "%.0f", last.requestsPerSecond),
            costs.map { String(format: "%.1f", $0) }.joined(separator: " "), "\(last.p50)", "\(last.p99)",
            "\(written / max(1, events))",
            gateway.residentMegabytes.map { String(format: "%.0f", $0) } ?? "-",
            ratios.isEmpty ? "-" : String(format: "%.2f", median(ratios)),
        ]
        print(columns.joined(separator: " | "))
    }

    private func fill(_ gateway: Server, _ credentials: Credentials, upTo size: Int) throws {
        try load(Kind(name: "fill", users: 24_000, events: 100), credentials).fill(gateway, to: size)
    }
}
