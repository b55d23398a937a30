import Foundation

/// A gateway of its own with one app that requires tokens, made with the program's own commands.
final class Fixture {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// What `wrk` and the system counted.
    struct Result {
        let requests: Int
        let microseconds: Int
        /// Answers that were not 2xx or 3xx.
        let refused: Int
        let p50: Int
        let p99: Int
        /// User and system time of the gateway; nil where there is no `/proc`.
        let cpuSeconds: Double?
    }

    private let countersign: String
    private let folder: URL
    private let gateway = Process()
    private let url: String
    private let writeKey: String
    private var tokens: [GatewayBenchmark.Token: String] = [:]

    init(countersign: String, folder: URL) throws {
        self.countersign = countersign
        self.folder = folder
        let data = folder.appendingPathComponent("data").path
        func run(_ arguments: String...) throws -> String {
            try Self.output(of: countersign, arguments, folder: folder)
        }
        writeKey = try run("app", "create", "bench", "--data", data)
        for name in ["own", "other"] {
            try FileManager.default.createDirectory(
                at: folder.appendingPathComponent(name), withIntermediateDirectories: true)
            _ = try run("key", "generate", "--out", name)
        }
        _ = try run("key", "add", "bench", "own/public.pem", "--data", data)
        _ = try run("enforcement", "set", "bench", "required", "--data", data)
        let past = String(Int(Date().timeIntervalSince1970) - 7_200)
        tokens[.good] = try run("token", "create", "--key", "own/private.pem", "--user", "user-1")
        tokens[.forged] = try run("token", "create", "--key", "other/private.pem", "--user", "user-1")
        tokens[.expired] = try run(
            "token", "create", "--key", "own/private.pem", "--user", "user-1", "--now", past)

        gateway.executableURL = URL(fileURLWithPath: countersign)
        gateway.arguments = [
            "serve", "--data", data, "--port", "0", "--requests-per-second-per-address", "0", "--log-level",
            "warning",
        ]
        let output = Pipe()
        gateway.standardOutput = output
        gateway.standardError = FileHandle.nullDevice
        try gateway.run()
        var line = ""
        while let byte = try output.fileHandleForReading.read(upToCount: 1)?.first, byte != 0x0A {
            line.unicodeScalars.append(Unicode.Scalar(byte))
        }
        guard line.hasPrefix("http://") else { throw Failure(description: "the gateway did not start") }
        url = line
    }

    func stop() {
        gateway.terminate()
        gateway.waitUntilExit()
    }

    /// Runs one scenario and checks that the answers are what it says, so that nothing else is measured.
    func run(_ scenario: GatewayBenchmark.Scenario, seconds: Int) throws -> Result {
        let script = folder.appendingPathComponent("\(scenario.name).lua")
        try lua(scenario).write(to: script, atomically: true, encoding: .utf8)
        let before = cpuSeconds
        let text = try Self.output(
            of: "/usr/bin/env",
            ["wrk", "-t1", "-c16", "-d\(seconds)s", "-s", script.path, url + "/v1/batch"],
            folder: folder)
        let after = cpuSeconds
        guard
            let numbers = text.split(separator: "\n").first(where: { $0.hasPrefix("RESULT ") })?
                .split(separator: " ").dropFirst().compactMap({ Int($0) }), numbers.count == 5
        else { throw Failure(description: "wrk printed no result: \(text)") }
        let result = Result(
            requests: numbers[0], microseconds: numbers[1], refused: numbers[2], p50: numbers[3],
            p99: numbers[4],
            cpuSeconds: before.flatMap { before in after.map { $0 - before } })
        guard result.requests > 0, result.refused == (scenario.isAccepted ? 0 : result.requests) else {
            throw Failure(
                description: "\(scenario.name): \(result.refused) of \(result.requests) were refused")
        }
        return result
    }

    /// How many events the database holds.
    func storedEvents() throws -> String {
        try Self.output(
            of: "/usr/bin/env",
            [
                "sqlite3", "-readonly", folder.appendingPathComponent("data/events.sqlite").path,
                "SELECT count(*) FROM event",
            ], folder: folder)
    }

    /// Requests with message ids that never come twice.
    private func lua(_ scenario: GatewayBenchmark.Scenario) -> String {
        """
        local count = 0
        local headers = {
          ["X-Write-Key"] = "\(writeKey)", ["Authorization"] = "Bearer \(tokens[scenario.token] ?? "")",
          ["Content-Type"] = "application/json"
        }
        function request()
          local events = {}
          for i = 1, \(scenario.events) do
            count = count + 1
            events[i] = '{"type":"track","messageId":"\(scenario.name)-' .. count .. '","userId":"user-1",' ..
              '"event":"Order Completed","timestamp":"2026-11-21T08:30:00.000Z","properties":' ..
              '{"order_id":"50314b8e","total":42.5,"currency":"EUR","products":["tea-01","cup-02","pot-01"]},' ..
              '"context":{"library":{"name":"bench","version":"1"}}}'
          end
          return wrk.format("POST", nil, headers, '{"batch":[' .. table.concat(events, ",") .. ']}')
        end
        function done(summary, latency, requests)
          io.write(string.format("RESULT %d %d %d %d %d\\n", summary.requests, summary.duration,
            summary.errors.status, latency:percentile(50), latency:percentile(99)))
        end
        """
    }

    /// User and system time of the gateway process so far (proc(5), fields 14 and 15 of `stat`).
    private var cpuSeconds: Double? {
        guard
            let text = try? String(
                contentsOfFile: "/proc/\(gateway.processIdentifier)/stat", encoding: .utf8),
            let name = text.lastIndex(of: ")")
        else { return nil }
        // Behind the name come the fields from the third on.
        let fields = text[text.index(after: name)...].split(separator: " ")
        guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else {
            return nil
        }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    private static func output(of program: String, _ arguments: [String], folder: URL) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.currentDirectoryURL = folder
        let output = Pipe()
        process.standardOutput = output
        let errors = Pipe()
        process.standardError = errors
        try process.run()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        let talk = try errors.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Failure(
                description: "\(program) \(arguments.first ?? "") ended with \(process.terminationStatus): "
                    + String(decoding: talk, as: UTF8.self))
        }
        return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
