import CountersignJOSE
import Foundation

/// Measures the latency of the admin API for each view of the dashboard, with verdicts of ninety days.
///
/// `wrk` sends requests to a gateway whose wall clock runs fast (`faketime`), so that ninety days pass meanwhile. Then
/// the gateway runs with the real time, and gets the requests of the dashboard.
struct Views {
    private static let days = 90
    private static let segments = 30
    private static let users = 40
    private static let rounds = 20
    /// The highest latency that the aim allows, in milliseconds.
    private static let aim = 200.0

    let countersign: String
    let folder: URL
    let requests: Int

    /// Fills the gateway and prints a line for each view.
    func run() throws {
        let data = folder.appendingPathComponent("views").path
        func command(_ arguments: String...) throws -> String {
            try Command.output(countersign, arguments + ["--data", data], folder: folder)
        }
        let own = try SigningKey.generate(.rs256)
        let other = try SigningKey.generate(.rs256)
        let publicKey = folder.appendingPathComponent("views.pem").path
        try own.publicKey.pem.write(toFile: publicKey, atomically: true, encoding: .utf8)
        let writeKey = try command("app", "create", "views")
        _ = try command("key", "add", "views", publicKey)
        _ = try command("enforcement", "set", "views", "optional")
        let script = try traffic(writeKey, own, other)

        // The gateway is restarted after each three days of its clock. Otherwise it would write its counts when its
        // clock is months ahead.
        var sent = 0
        var seconds = 5
        for segment in 0..<Self.segments {
            let length = Double(Self.days) * 86_400 / Double(Self.segments)
            let gateway = try Server.gateway(
                countersign: countersign, dataDirectory: data,
                clock: .ahead(
                    ofNow: Double(segment - Self.segments) * length, by: length / Double(seconds)))
            let count = try load(script, on: gateway, seconds: seconds)
            gateway.stop()
            sent += count
            let left = (requests - sent) / max(1, Self.segments - segment - 1)
            seconds = max(1, Int((Double(left) * Double(seconds) / Double(count)).rounded(.up)))
        }

        let token = try command("admin", "token", "create", "--name", "bench")
        let server = try Server.gateway(countersign: countersign, dataDirectory: data, clock: .real)
        defer { server.stop() }
        let bytes =
            try FileManager.default.attributesOfItem(atPath: data + "/analytics.sqlite")[.size] as? Int
        print(
            "\(sent) verdicts over \(Self.days) days, analytics.sqlite \((bytes ?? 0) / 1_048_576) MiB; aim: below "
                + "\(Int(Self.aim)) ms")
        print("view                            median ms  slowest ms  answer KiB")
        for (name, path) in try paths(server, token) {
            let times = try (0..<Self.rounds).map { _ in try ask(server, token, path) }
            let slowest = times.map(\.milliseconds).max() ?? 0
            print(
                name.padding(toLength: 30, withPad: " ", startingAt: 0)
                    + String(
                        format: "%11.1f%12.1f%12d", times.map(\.milliseconds).sorted()[Self.rounds / 2],
                        slowest,
                        (times.first?.bytes ?? 0) / 1_024) + (slowest < Self.aim ? "" : "  above the aim"))
        }
    }

    private func paths(_ server: Server, _ token: String) throws -> [(String, String)] {
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        func since(_ hours: Int64) -> String { "from_ms=\(now - hours * 3_600_000)&to_ms=\(now)" }
        let app = "/apps/views"
        return [
            ("overview", "/overview"), ("apps", "/apps"),
            ("failures, 1 hour", "\(app)/analytics?\(since(1))"),
            ("failures, 24 hours", "\(app)/analytics?\(since(24))"),
            ("failures, 7 days", "\(app)/analytics?\(since(168))"),
            ("failures, 90 days", "\(app)/analytics?\(since(2_160))"),
            ("failures of one version", "\(app)/analytics?\(since(2_160))&app_version=3"),
            ("top versions, 90 days", "\(app)/analytics/top?\(since(2_160))&by=app_version"),
            ("top keys, 90 days", "\(app)/analytics/top?\(since(2_160))&by=key"),
            ("samples", "\(app)/samples"), ("samples of a code", "\(app)/samples?code=22"),
            ("preview, 24 hours", "\(app)/enforcement/preview?hours=24"),
            ("preview, 7 days", "\(app)/enforcement/preview?hours=168"),
            ("keys", "\(app)/keys"), ("events", "\(app)/events"),
            ("events of a user", "\(app)/events?user=user-7"),
            ("event by message id", "\(app)/events?message_id=views-1-17"), ("sessions", "\(app)/sessions"),
            ("audit", "/audit"),
            // The dashboard requests days for this range, but other clients may request hours.
            ("90 days by hour", "\(app)/analytics?\(since(2_160))&bucket=hour"),
            ("one version, by hour", "\(app)/analytics?\(since(2_160))&app_version=3&bucket=hour"),
        ]
    }

    private func ask(_ server: Server, _ token: String, _ path: String) throws -> (
        milliseconds: Double, bytes: Int
    ) {
        let text = try Command.output(
            "curl",
            [
                "-s", "-o", "/dev/null", "-H", "Authorization: Bearer \(token)", "-w",
                "%{http_code} %{time_starttransfer} %{size_download}", "\(server.url)/admin/api\(path)",
            ])
        let parts = text.split(separator: " ")
        guard parts.count == 3, parts[0] == "200", let seconds = Double(parts[1]), let bytes = Int(parts[2])
        else { throw Command.Failure(description: "\(path) answered \(text)") }
        return (seconds * 1000, bytes)
    }

    private func load(_ script: String, on server: Server, seconds: Int) throws -> Int {
        let text = try Command.output(
            "wrk",
            ["-t1", "-c64", "-d\(seconds)s", "-s", script, server.url + "/v1/batch", UUID().uuidString])
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("RESULT ") }),
            let count = line.split(separator: " ").last.flatMap({ Int($0) }), count > 0
        else { throw Command.Failure(description: "wrk printed no result: \(text)") }
        return count
    }

    /// A script of `wrk`: 4 of 11 requests have a valid token, the other 7 each another fault, from ten versions of
    /// the app.
    private func traffic(_ writeKey: String, _ own: SigningKey, _ other: SigningKey) throws -> String {
        let now = Int64(Date().timeIntervalSince1970)
        func token(_ key: SigningKey, _ user: Int, _ claims: [String: Int64] = ["exp": 86_400 * 365]) throws
            -> String
        {
            try key.sign(
                claims: claims.reduce(into: ["sub": .string("user-\(user)")]) { all, claim in
                    all[claim.key] = .integer(now + claim.value)
                })
        }
        let tokens = folder.appendingPathComponent("views.txt").path
        let far: Int64 = 86_400 * 365
        let lines = try (0..<Self.users).flatMap { user in
            [
                try token(own, user), try token(own, user), try token(own, user), try token(own, user), "",
                try token(other, user), try token(own, user, ["exp": -far]), try token(own, user + 1),
                try token(own, user, [:]), try token(own, user, ["exp": 2 * far, "nbf": far]), "not-a-token",
            ].map { "user-\(user) \($0)" }
        }
        try lines.joined(separator: "\n").write(toFile: tokens, atomically: true, encoding: .utf8)
        let script = folder.appendingPathComponent("views.lua").path
        try """
        local run, count, lines = 0, 0, {}
        for line in io.lines("\(tokens)") do
          local user, token = line:match("^(%S+) ?(.*)$")
          local headers = { ["X-Write-Key"] = "\(writeKey)", ["Content-Type"] = "application/json" }
          if token ~= "" then headers["Authorization"] = "Bearer " .. token end
          lines[#lines + 1] = { user = user, headers = headers }
        end
        function init(arguments) run = arguments[1] end
        function request()
          count = count + 1
          local line = lines[count % #lines + 1]
          local who = count % 20 == 0 and '"anonymousId":"a"' or '"userId":"' .. line.user .. '"'
          return wrk.format("POST", nil, line.headers, string.format('{"batch":[{"type":"track","messageId":"%s-%010d",' ..
            '%s,"event":"Order Completed","context":{"library":{"name":"bench","version":"%d"},"app":{"version":"%d"}}}]}',
            run, count, who, count % 3, math.floor(count / 7) % 10))
        end
        function done(summary) io.write(string.format("RESULT %d\\n", summary.requests)) end
        """.write(toFile: script, atomically: true, encoding: .utf8)
        return script
    }
}
