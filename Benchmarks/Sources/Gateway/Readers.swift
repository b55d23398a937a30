import Foundation

/// Measures the cost of reading events by position from a large log, and by how much a reader at full speed slows down
/// writers. Writers run alone and together with the reader, in turns.
struct Readers {
    private static let rounds = 11
    private static let connections = 8

    let countersign: String
    let folder: URL
    let events: Int
    let seconds: Int
    /// The time limit for filling the log. After it the measurement runs with fewer events.
    let secondsToFill: Double

    private struct Reading {
        let events: Int
        let microsecondsPerEvent: Double
    }

    func run() throws {
        let credentials = try Credentials(
            countersign: countersign, folder: folder, tokens: [.users(2_000)])
        let token = try Command.output(
            countersign,
            [
                "admin", "token", "create", "--name", "reader", "--scopes", "reader", "--app", "bench",
                "--data",
                credentials.dataDirectory,
            ], folder: folder)
        let gateway = try Server.gateway(countersign: countersign, dataDirectory: credentials.dataDirectory)
        defer { gateway.stop() }
        func load(_ name: String, _ events: Int) throws -> Load {
            try Load(.init(name: name, tokens: .users(2_000), events: events), credentials, folder: folder)
        }
        let start = Date()
        try load("fill", 100).fill(gateway, to: events, within: secondsToFill)
        print("\(try gateway.storedEvents()) events stored after \(Int(Date().timeIntervalSince(start))) s")
        let script = try reader(token)
        let readings = try (0..<Self.rounds).map { _ in
            let before = gateway.cpuSeconds ?? 0
            let count = try finish(try begin(script, gateway))
            return Reading(
                events: count,
                microsecondsPerEvent: ((gateway.cpuSeconds ?? 0) - before) * 1_000_000 / Double(count))
        }
        let costs = readings.map(\.microsecondsPerEvent).sorted()
        print(
            String(
                format: "reader alone: %.2f us of CPU an event (%.2f to %.2f), %d events/s", median(costs),
                costs.first ?? 0, costs.last ?? 0,
                Int(median(readings.map { Double($0.events) })) / seconds))
        let writers = try load("writers", 1)
        _ = try writers.run(on: gateway, seconds: 2, checks: true)
        var ratios: [Double] = []
        for _ in 0..<Self.rounds {
            let alone = try writers.run(
                on: gateway, seconds: seconds, checks: true, connections: Self.connections)
            let crowd = try begin(script, gateway)
            let beside = try writers.run(
                on: gateway, seconds: seconds, checks: true, connections: Self.connections)
            let read = try finish(crowd)
            ratios.append(beside.requestsPerSecond / alone.requestsPerSecond)
            print(
                String(
                    format:
                        "writers alone %.0f requests/s, p99 %d us; beside the reader %.0f requests/s, p99 %d us, ",
                    alone.requestsPerSecond, alone.p99, beside.requestsPerSecond, beside.p99)
                    + "\(read / seconds) events/s read")
        }
        print(
            String(
                format: "requests/s of writers with the reader to alone: %.2f (%.2f to %.2f)", median(ratios),
                ratios.min() ?? 0, ratios.max() ?? 0))
    }

    private func begin(_ script: String, _ gateway: Server) throws -> (Process, Pipe) {
        let output = Pipe()
        let process = try Command.start(
            "wrk", ["-t1", "-c1", "-d\(seconds)s", "-s", script, gateway.url], output: output)
        return (process, output)
    }

    /// Returns the number of events that were read.
    private func finish(_ reading: (process: Process, output: Pipe)) throws -> Int {
        let text = String(
            decoding: try reading.output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        reading.process.waitUntilExit()
        guard
            let count = text.split(separator: "\n").last(where: { $0.hasPrefix("READ ") }).flatMap({
                Int($0.dropFirst(5))
            }),
            count > 0
        else { throw Command.Failure(description: "the reader read nothing: \(text.suffix(500))") }
        return count
    }

    /// A script of `wrk` that reads pages of 1,000 events over one connection, and begins again after the last event.
    private func reader(_ token: String) throws -> String {
        let script = folder.appendingPathComponent("reader.lua").path
        try """
        wrk.headers["Authorization"] = "Bearer \(token)"
        wrk.headers["Accept"] = "application/x-ndjson"
        local position, count = nil, 0
        function request()
          return wrk.format("GET", "/v1/apps/bench/events?limit=1000" .. (position and "&after=" .. position or ""))
        end
        function response(status, headers, body)
          if status ~= 200 then error("status " .. status .. ": " .. body) end
          for name, value in pairs(headers) do
            name = name:lower()
            if name == "x-countersign-next" then position = value end
            if name == "x-countersign-has-more" and value == "false" then position = nil end
          end
          local _, lines = body:gsub("\\n", "")
          count = count + lines
          print("READ " .. count)
        end
        """.write(toFile: script, atomically: true, encoding: .utf8)
        return script
    }
}
