import Foundation

/// Sends the slowest known requests of each endpoint at full speed over eight connections. Prints the latency of
/// `/livez` meanwhile and the gateway's memory.
struct Floods {
    /// The highest p99 of `/livez` and the highest memory that the aims allow.
    private static let aim = (milliseconds: 10.0, megabytes: 300.0)
    private static let connections = 8

    let countersign: String
    let folder: URL
    let seconds: Int

    private struct Flood {
        let name: String
        let path: String
        let body: [UInt8]
        var headers: [String: String] = [:]
        /// Sends the body in chunks of one byte.
        var isCrumbled = false
    }

    /// Starts a gateway, fills it and prints a line for each flood.
    func run() throws {
        let data = folder.appendingPathComponent("floods").path
        func command(_ arguments: String...) throws -> String {
            try Command.output(countersign, arguments + ["--data", data], folder: folder)
        }
        let writeKey = try command("app", "create", "floods")
        let token = try command("admin", "token", "create", "--name", "bench")
        let gateway = try Server.gateway(countersign: countersign, dataDirectory: data)
        defer { gateway.stop() }
        try fill(gateway, writeKey)
        print(
            "aims: /livez p99 below \(Int(Self.aim.milliseconds)) ms, memory below \(Int(Self.aim.megabytes)) MB"
        )
        print("flood                                   requests/s    p50 ms  p99 ms  max ms  resident MB")
        try report("none", nil, gateway)
        for flood in try floods(writeKey, token) + marks() { try report(flood.name, flood, gateway) }
    }

    private func floods(_ writeKey: String, _ token: String) throws -> [Flood] {
        try native(writeKey) + bloomreach(writeKey) + [
            Flood(
                name: "Braze, 1,000 similar user ids", path: "/api/v3/data",
                body: Self.text(
                    #"{"events":[\#(Self.list(1_000) { #"{"name":"e","user_id":"\#(Self.user($0))"}"# })]}"#),
                headers: ["X-Braze-Api-Key": writeKey]),
            Flood(
                name: "native, 64 KB without a key", path: "/v1/batch",
                body: Self.text(
                    #"{"batch":[\#(Self.list(1_000) { #"{"type":"track","event":"e","userId":"\#($0)"}"# })]}"#
                )),
            Flood(name: "a path of slashes", path: String(repeating: "/", count: 16_000), body: []),
            Flood(
                name: "native, 20,000 chunks of a byte", path: "/v1/batch",
                body: [UInt8](repeating: 0x20, count: 20_000), isCrumbled: true),
            Flood(
                name: "locations without a token", path: "/api/locations/floods",
                body: Self.text("[\(Self.list(100_000) { _ in "{}" })]")),
            Flood(
                name: "token service, 20,000 parameters", path: "/oauth/token",
                body: Self.text(Self.list(20_000, by: "&") { _ in "a=" }),
                headers: ["Content-Type": "application/x-www-form-urlencoded"]),
            Flood(
                name: "sign in, 80,000 names", path: "/admin/api/session",
                body: Self.text("{\(Self.list(80_000) { #""n\#($0)":0"# })}"),
                headers: ["Content-Type": "application/json"]),
            Flood(
                name: "admin, a page of large events",
                path: "/admin/api/apps/floods/events?limit=500", body: [],
                headers: ["Authorization": "Bearer \(token)"]),
        ]
    }

    /// Long sequences of combining marks, without a valid credential. Normalizing a sequence would take seconds.
    private func marks() throws -> [Flood] {
        // Alternates two combining classes, so that normalizing has to move each mark past all earlier ones.
        func marks(_ bytes: Int) -> String { String(repeating: "\u{301}\u{316}", count: bytes / 4) }
        func event(_ name: String) throws -> [UInt8] {
            try gzip(Self.text(#"{"device_id":"d","events":[{"name":"\#(name)","time":5}]}"#))
        }
        let zipped = ["Content-Encoding": "gzip"]
        let json = ["Content-Type": "application/json"]
        let poll = "/v1/apps/any/consumers/x/poll"
        // 43 characters, the length of a token.
        let token = ["Authorization": "Bearer csa_" + String(repeating: "x", count: 43)]
        return [
            Flood(
                name: "Braze, 60 KB of marks as name", path: "/api/v3/data",
                body: try event("a" + marks(60_000)),
                headers: zipped),
            Flood(
                name: "Braze, 3 MB of marks as name", path: "/api/v3/data", body: try event(marks(3_000_000)),
                headers: zipped),
            Flood(
                name: "poll, 16 KB of marks as member", path: poll,
                body: Self.text("{\"\(marks(15_900))\":1}"),
                headers: token),
            Flood(
                name: "native, marks as scheme", path: "/v1/batch", body: Self.text("{}"),
                headers: ["Authorization": marks(15_000)]),
            Flood(
                name: "native, marks as write key", path: "/v1/batch", body: Self.text("{}"),
                headers: ["X-Write-Key": marks(15_000)]),
            Flood(
                name: "admin, marks as cookie", path: "/admin/api/session", body: [],
                headers: ["Cookie": "countersign=" + marks(15_000)]),
            Flood(
                name: "sign in, 1 MB of marks as name", path: "/admin/api/session",
                body: Self.text(#"{"name":"\#(marks(1_000_000))","password":"p"}"#), headers: json),
        ]
    }

    private func native(_ writeKey: String) throws -> [Flood] {
        let key = ["X-Write-Key": writeKey]
        let zipped = key.merging(["Content-Encoding": "gzip"]) { $1 }
        let users = Self.text(
            #"{"batch":[\#(Self.list(1_000) { #"{"type":"track","event":"e","userId":"\#(Self.user($0))"}"# })]}"#
        )
        let names = Self.list(50_000) { #""n\#($0)":0"# }
        // U+0301, U+0323, U+0327: normalization must reorder these marks before text is compared.
        let marks = String(repeating: "\u{301}\u{323}\u{327}", count: 70_000)
        return [
            Flood(name: "native, 1,000 similar user ids", path: "/v1/batch", body: users, headers: key),
            Flood(name: "native, the same without a key", path: "/v1/batch", body: users),
            Flood(
                name: "native, the same compressed", path: "/v1/batch", body: try gzip(users), headers: zipped
            ),
            Flood(
                name: "native, a gzip bomb", path: "/v1/batch",
                body: try gzip(Array(repeating: 0x20, count: 4 << 20)), headers: zipped),
            Flood(
                name: "native, 50,000 names", path: "/v1/batch",
                body: Self.text(#"{"batch":[{"type":"identify","userId":"u","traits":{\#(names)}}]}"#),
                headers: key),
            Flood(
                name: "native, 1.9 million elements", path: "/v1/batch",
                body: Self.text(#"{"batch":[\#(Self.list(1_900_000) { _ in "0" })]}"#), headers: key),
            Flood(
                name: "native, marks as type", path: "/v1/batch",
                body: Self.text(#"{"batch":[{"type":"\#(marks)","userId":"u"}]}"#), headers: key),
        ]
    }

    private func bloomreach(_ writeKey: String) -> [Flood] {
        let project = ["Authorization": "Token \(writeKey)"]
        let ids = #""customer_ids":{"cookie":"large"}"#
        let wanted = Self.list(100) { _ in #"{"type":"property","property":"p"}"# }
        let names = Self.list(40_000) { #""n\#($0)":0"# }
        return [
            Flood(
                name: "Bloomreach, 100 large attributes",
                path: "/data/v2/projects/floods/customers/attributes",
                body: Self.text(#"{\#(ids),"attributes":[\#(wanted)]}"#), headers: project),
            Flood(
                name: "Bloomreach, inbox", path: "/webxp/projects/floods/appinbox/fetch",
                body: Self.text("{\(ids)}"), headers: project),
            Flood(
                name: "Bloomreach, nested properties", path: "/track/v2/projects/floods/customers",
                body: Self.text(#"{\#(ids),"properties":{"a":{\#(names)}},"timestamp":1}"#), headers: project),
        ]
    }

    private static func text(_ text: String) -> [UInt8] { Array(text.utf8) }

    private static func list(_ count: Int, by separator: String = ",", _ element: (Int) -> String) -> String {
        (0..<count).map(element).joined(separator: separator)
    }

    /// A user id that differs from the others only in its last bytes.
    private static func user(_ number: Int) -> String {
        String(repeating: "u", count: 500) + String(10_000 + number)
    }

    /// Stores large events, and a customer with a large property.
    private func fill(_ gateway: Server, _ writeKey: String) throws {
        let large = String(repeating: "x", count: 500_000)
        for number in 0..<100 {
            try post(
                gateway, "/v1/track", #"{"event":"e","userId":"u","messageId":"\#(number)","a":"\#(large)"}"#,
                "X-Write-Key: \(writeKey)")
        }
        try post(
            gateway, "/track/v2/projects/floods/customers",
            #"{"customer_ids":{"cookie":"large"},"properties":{"p":"\#(large)"},"timestamp":1}"#,
            "Authorization: Token \(writeKey)")
    }

    private func post(_ gateway: Server, _ path: String, _ body: String, _ header: String) throws {
        let file = folder.appendingPathComponent("body").path
        try body.write(toFile: file, atomically: true, encoding: .utf8)
        _ = try Command.output(
            "curl",
            ["-sf", "-o", "/dev/null", "-H", header, "--data-binary", "@" + file, gateway.url + path])
    }

    private func gzip(_ bytes: [UInt8]) throws -> [UInt8] {
        let file = folder.appendingPathComponent("plain").path
        try Data(bytes).write(to: URL(fileURLWithPath: file))
        _ = try Command.output("gzip", ["-9", "-k", "-f", file])
        return Array(try Data(contentsOf: URL(fileURLWithPath: file + ".gz")))
    }

    private func report(_ name: String, _ flood: Flood?, _ gateway: Server) throws {
        let output = Pipe()
        let sender = try flood.map { flood in
            try Command.start(
                "wrk",
                [
                    "-t1", "-c\(Self.connections)", "-d\(seconds + 2)s", "--timeout", "30s", "-s",
                    try script(flood), gateway.url + flood.path,
                ], output: output)
        }
        // Waits until the flood runs.
        sleep(1)
        let latency = folder.appendingPathComponent("latency.lua").path
        try """
        function done(summary, latency)
          io.write(string.format("RESULT %d %d %d\\n", latency:percentile(50), latency:percentile(99), latency.max))
        end
        """.write(toFile: latency, atomically: true, encoding: .utf8)
        let times = try numbers(
            Command.output(
                "wrk",
                ["-t1", "-c1", "-d\(seconds)s", "--timeout", "30s", "-s", latency, gateway.url + "/livez"]),
            3
        ).map { Double($0) / 1000 }
        let memory = gateway.residentMegabytes ?? 0
        var rate = 0.0
        if let sender {
            let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            sender.waitUntilExit()
            let counts = try numbers(text, 2)
            rate = Double(counts[0]) / Double(max(1, counts[1])) * 1_000_000
        }
        let isMissed = times[1] >= Self.aim.milliseconds || memory >= Self.aim.megabytes
        print(
            name.padding(toLength: 38, withPad: " ", startingAt: 0)
                + String(
                    format: "%12.0f%10.1f%8.1f%8.1f%13.0f", rate, times[0], times[1], times[2], memory)
                + (isMissed ? "  misses the aim" : ""))
    }

    private func numbers(_ text: String, _ count: Int) throws -> [Int] {
        let found = text.split(separator: "\n").first { $0.hasPrefix("RESULT ") }?.split(separator: " ")
            .dropFirst().compactMap { Int($0) }
        guard let found, found.count == count else {
            throw Command.Failure(description: "wrk printed no result: \(text)")
        }
        return found
    }

    /// The bytes of the whole request, because `wrk` does not make chunked requests.
    private static func crumbled(_ flood: Flood) -> [UInt8] {
        text("POST \(flood.path) HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
            + flood.body.flatMap { text("1\r\n") + [$0] + text("\r\n") } + text("0\r\n\r\n")
    }

    private func script(_ flood: Flood) throws -> String {
        let name = UUID().uuidString
        let body = folder.appendingPathComponent(name + ".body").path
        let path = folder.appendingPathComponent(name + ".lua").path
        try Data(flood.isCrumbled ? Self.crumbled(flood) : flood.body).write(to: URL(fileURLWithPath: body))
        let headers = flood.headers.map { "wrk.headers[\"\($0.key)\"] = \"\($0.value)\"" }
            .joined(separator: "\n")
        try """
        \(headers)
        local file = io.open("\(body)", "rb")
        local body = file:read("*a")
        file:close()
        if \(flood.isCrumbled) then
          function request() return body end
        elseif #body > 0 then
          wrk.method = "POST"
          wrk.body = body
        end
        function done(summary)
          io.write(string.format("RESULT %d %d\\n", summary.requests, summary.duration))
        end
        """.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }
}
