import Foundation

/// Requests of one kind, sent by `wrk`.
final class Load {
    /// Figures of `wrk`, and of the system for the server process.
    struct Result {
        let requests: Int
        let requestsPerSecond: Double
        /// User and system time of the server process.
        let microsecondsPerRequest: Double
        let p50: Int
        let p99: Int
        let p999: Int
    }

    private let traffic: Comparison.Traffic
    private let script: String
    private var runs = 0
    /// The next token, by server. A token sent in an earlier run would be cached by the server.
    private var turns: [String: Int] = [:]

    init(_ traffic: Comparison.Traffic, _ credentials: Credentials, folder: URL) throws {
        self.traffic = traffic
        script = folder.appendingPathComponent("\(UUID().uuidString).lua").path
        // Message ids are random. One event has about 1 KB.
        let picks = if case .users = traffic.tokens { true } else { false }
        try """
        local run = 0
        local tokens = {}
        for token in io.lines("\(credentials.tokenFiles[traffic.tokens.file] ?? "")") do
          tokens[#tokens + 1] = {
            ["X-Write-Key"] = "\(credentials.writeKey)", ["Authorization"] = "Bearer " .. token,
            ["Content-Type"] = "application/json"
          }
        end
        local description = string.rep("A pot of green tea for two, with a cup and a saucer. ", 11)
        local turn = 0
        function init(arguments)
          run = arguments[1]
          turn = tonumber(arguments[2])
          math.randomseed(os.time() * 1000 + run)
        end
        local function id()
          return string.format("%08x-%04x-4%03x-a%03x-%06x%06x", math.random(0, 0x7fffffff), math.random(0, 0xffff),
            math.random(0, 0xfff), math.random(0, 0xfff), math.random(0, 0xffffff), math.random(0, 0xffffff))
        end
        function request()
          local events = {}
          turn = turn + 1
          local token = \(picks) and math.random(#tokens) or turn % #tokens + 1
          local user = (token - 1) % \(traffic.tokens.users) + 1
          for i = 1, \(traffic.events) do
            events[i] = string.format('{"type":"track","messageId":"%s","userId":"user-%d",' ..
              '"event":"Order Completed","timestamp":"2026-11-21T08:30:00.000Z","properties":' ..
              '{"order_id":"50314b8e","total":42.5,"currency":"EUR","products":["tea-01","cup-02","pot-01"],' ..
              '"description":"%s"},"context":{"library":{"name":"bench","version":"1"}}}', id(), user, description)
          end
          return wrk.format("POST", nil, tokens[token], '{"batch":[' .. table.concat(events, ",") .. ']}')
        end
        function done(summary, latency, requests)
          io.write(string.format("RESULT %d %d %d %d %d %d\\n", summary.requests, summary.duration,
            summary.errors.status, latency:percentile(50), latency:percentile(99), latency:percentile(99.9)))
        end
        """.write(toFile: script, atomically: true, encoding: .utf8)
    }

    /// Sends batches until a server has stored a number of events, or until a time limit.
    func fill(_ server: Server, to events: Int, within seconds: Double = .infinity) throws {
        let start = Date()
        while try server.storedEvents() < events, Date().timeIntervalSince(start) < seconds {
            _ = try run(on: server, seconds: 5, checks: true)
        }
    }

    /// Runs the load. With `checks`, throws unless the responses are as the traffic expects.
    func run(
        on server: Server, seconds: Int, checks: Bool, connections: Int = 64, core: Int? = nil
    ) throws -> Result {
        runs += 1
        let before = server.cpuSeconds ?? 0
        let text = try Command.output(
            "wrk", core: core,
            [
                "-t1", "-c\(connections)", "-d\(seconds)s", "-s", script, server.url + "/v1/batch",
                String(runs), String(turns[server.url] ?? 0),
            ])
        let after = server.cpuSeconds ?? 0
        guard
            let numbers = text.split(separator: "\n").first(where: { $0.hasPrefix("RESULT ") })?
                .split(separator: " ").dropFirst().compactMap({ Int($0) }), numbers.count == 6,
            numbers[0] > 0
        else { throw Command.Failure(description: "wrk printed no result: \(text)") }
        turns[server.url, default: 0] += numbers[0]
        guard !checks || numbers[2] == (traffic.isAccepted ? 0 : numbers[0]) else {
            throw Command.Failure(
                description: "\(traffic.name): \(numbers[2]) of \(numbers[0]) were rejected")
        }
        return Result(
            requests: numbers[0], requestsPerSecond: Double(numbers[0]) / Double(numbers[1]) * 1_000_000,
            microsecondsPerRequest: (after - before) * 1_000_000 / Double(numbers[0]), p50: numbers[3],
            p99: numbers[4], p999: numbers[5])
    }
}

func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
}
