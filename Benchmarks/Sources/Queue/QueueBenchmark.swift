import Countersign
import CountersignTransport
import Foundation

/// `Queue [EVENTS]`: records events offline, then sends them to a server in memory.
///
/// Prints, for several numbers of events, the cost of `track` for the caller, the total cost of an event, the
/// speed at which the queue drains, the bytes of a row on disk and the memory of the process.
///
/// `Queue users [USERS]`: prints the cost of a rejected and of an accepted request while many users have queued events.
@main
struct QueueBenchmark {
    static func main() async throws {
        if CommandLine.arguments.dropFirst().first == "users" {
            let largest = CommandLine.arguments.dropFirst(2).first.flatMap { Int($0) } ?? 100_000
            print("users\tms a rejected request\tms an accepted request")
            for count in [500, 4_000, 20_000, 100_000] where count <= largest {
                try await measureUsers(count)
            }
            return
        }
        let largest = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 1_000_000
        print("events     track p50/p99 µs  cpu µs/event  stored/s  sent/s  bytes/row  rss MB  sent")
        for count in [1_000, 10_000, 100_000, 1_000_000] where count <= largest {
            try await measure(count)
        }
        try await measureCap(largest)
    }

    /// Prints the disk space of a queue when more events are recorded than its limit allows.
    private static func measureCap(_ count: Int) async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
            "countersign-bench-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        guard let endpoint = URL(string: "https://server.example") else { return }
        var configuration = CountersignConfiguration(endpoint: endpoint, writeKey: "wk")
        configuration.dataDirectory = directory
        configuration.flushPolicy = .manual
        configuration.limits.maximumEvents = 2_000_000
        configuration.limits.maximumBytes = 16 << 20
        let client = try CountersignClient(configuration: configuration, transport: AcceptingServer())
        client.identify(userID: "user-1", token: "a.b.c")
        var largest = 0
        for number in 0..<count {
            client.track("Product Viewed", properties: ["product_id": .integer(Int64(number))])
            if number % 2_000 == 1_999 {
                try await catchUp(client)
                largest = max(largest, bytesOnDisk(directory))
            }
        }
        try await client.record("end")
        largest = max(largest, bytesOnDisk(directory))
        let snapshot = await client.snapshot()
        await client.close()
        print(
            "cap of 16 MiB, \(count) recorded: \(snapshot.queued) kept, at most \(largest / 1024) KiB on disk with the log, "
                + "rss \(residentMegabytes()) MB")
    }

    /// Records two events of each user. The server rejects all requests of the first flush, because they have no token.
    private static func measureUsers(_ count: Int) async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
            "countersign-bench-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        guard let endpoint = URL(string: "https://server.example") else { return }
        let server = TokenServer()
        var configuration = CountersignConfiguration(endpoint: endpoint, writeKey: "wk")
        configuration.dataDirectory = directory
        configuration.flushPolicy = .manual
        configuration.tokenStore = NoTokens()
        // A long back-off, so that no user's events are sent again in the first flush.
        configuration.authenticationRetry = RetryPolicy(
            baseDelay: 7_200, maximumDelay: 7_200, maximumServerDelay: 7_200)
        configuration.limits.maximumEvents = 2_000_000
        configuration.limits.maximumBytes = 2 << 30
        let client = try CountersignClient(configuration: configuration, transport: server)
        for number in 0..<count {
            client.identify(userID: "user-\(number)")
            client.track("Product Viewed")
            if number % 1_000 == 999 { try await catchUp(client) }
        }
        try await catchUp(client)
        let clock = SystemClock()
        var start = clock.uptime
        let rejected = await client.flush().batches.count
        let rejecting = clock.uptime - start
        server.isOpen = true
        start = clock.uptime
        let accepted = await client.flush()
        let accepting = clock.uptime - start
        await client.close()
        func milliseconds(_ seconds: TimeInterval, _ requests: Int) -> String {
            String(format: "%.3f", seconds * 1_000 / Double(max(1, requests)))
        }
        print(
            "\(count)\t\(milliseconds(rejecting, rejected))\t\(milliseconds(accepting, accepted.batches.count))\t"
                + "(\(rejected) rejected, \(accepted.delivered) events delivered)")
    }

    /// Waits until the events are in the queue file, because apps record more slowly than these loops.
    private static func catchUp(_ client: CountersignClient) async throws {
        try await client.record("wait for the disk")
        // The snapshot runs after the pending checkpoint into the queue file.
        _ = await client.snapshot()
    }

    private static func bytesOnDisk(_ directory: URL) -> Int {
        let files = FileManager.default.enumerator(at: directory, includingPropertiesForKeys: nil)
        return (files?.compactMap { $0 as? URL } ?? []).reduce(0) { sum, file in
            let values = try? FileManager.default.attributesOfItem(atPath: file.path)
            return sum
                + (values?[.type] as? FileAttributeType == .typeRegular ? values?[.size] as? Int ?? 0 : 0)
        }
    }

    private static func measure(_ count: Int) async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
            "countersign-bench-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        guard let endpoint = URL(string: "https://server.example") else { return }
        var configuration = CountersignConfiguration(endpoint: endpoint, writeKey: "wk")
        configuration.dataDirectory = directory
        configuration.flushPolicy = .manual
        configuration.limits.maximumEvents = 2_000_000
        configuration.limits.maximumBytes = 2 << 30
        let client = try CountersignClient(configuration: configuration, transport: AcceptingServer())
        client.identify(userID: "user-1", token: "a.b.c")
        try await client.record("warm up")

        let clock = SystemClock()
        let cpuBefore = cpuSeconds()
        let start = clock.uptime
        var times: [Double] = []
        for number in 0..<count {
            let before = clock.uptime
            client.track(
                "Product Viewed",
                properties: [
                    "product_id": .integer(Int64(number)), "name": "Walking boots", "price": 119.95,
                    "currency": "EUR", "in_stock": true,
                ])
            times.append(clock.uptime - before)
            if number % 2_000 == 1_999 { try await catchUp(client) }
        }
        try await client.record("end")
        let recorded = clock.uptime - start
        let cpu = cpuSeconds() - cpuBefore
        times.sort()

        let queued = await client.snapshot().queued
        let file = configuration.dataDirectory?.appendingPathComponent("default/queue.sqlite").path ?? ""
        let size = try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int ?? 0
        let drainStart = clock.uptime
        let result = await client.flush()
        let drained = clock.uptime - drainStart
        await client.close()

        func padded(_ text: String, _ width: Int) -> String {
            text + String(repeating: " ", count: max(1, width - text.count))
        }
        func micro(_ index: Int) -> String { String(format: "%.1f", times[index] * 1_000_000) }
        print(
            padded("\(count)", 11) + padded("\(micro(count / 2)) / \(micro(count * 99 / 100))", 18)
                + padded(String(format: "%.1f", cpu * 1_000_000 / Double(count)), 14)
                + padded("\(Int(Double(count) / recorded))", 10)
                + padded("\(Int(Double(result.delivered) / drained))", 8) + padded("\(size / queued)", 11)
                + padded("\(residentMegabytes())", 8) + "\(result.delivered)/\(queued)")
    }

    private static func cpuSeconds() -> Double {
        Double(clock()) / Double(CLOCKS_PER_SEC)
    }

    private static func residentMegabytes() -> Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        return (line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0)
            / 1_024
    }
}

/// A token store without tokens, so that the benchmark does not read a file for each user.
struct NoTokens: TokenStore {
    func token(for userID: String) throws -> String? { nil }
    func store(_ token: String, for userID: String) throws {}
    func removeToken(for userID: String) throws {}
    func removeAll() throws {}
}

/// Answers every batch with 26 (missing token) until `isOpen` is true.
final class TokenServer: HTTPTransport, @unchecked Sendable {
    private let lock = NSLock()
    private var isAccepting = false

    var isOpen: Bool {
        get { lock.withLock { isAccepting } }
        set { lock.withLock { isAccepting = newValue } }
    }

    func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse {
        if isOpen { return try await AcceptingServer().send(request) }
        return TransportResponse(
            status: 401,
            body: Array(#"{"success":false,"auth_error":{"error_code":26,"reason":"no token"}}"#.utf8))
    }
}

/// Accepts every batch immediately.
struct AcceptingServer: HTTPTransport {
    func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse {
        var count = 0
        let marker = Array("\"messageId\"".utf8)
        request.body.withUnsafeBytes { body in
            for index in body.indices where body[index] == marker[0] && index + marker.count <= body.count {
                if body[index + 1] == marker[1], body[index..<index + marker.count].elementsEqual(marker) {
                    count += 1
                }
            }
        }
        return TransportResponse(
            status: 200,
            body: Array(#"{"success":true,"accepted":\#(count),"duplicates":0,"rejected":[]}"#.utf8))
    }
}
