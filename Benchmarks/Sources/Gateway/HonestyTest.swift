import Foundation

/// Checks that a peer rejects invalid tokens, stores an event once, and has each acknowledged event after SIGKILL.
/// Peers that do less work are not compared.
struct HonestyTest {
    private static let clients = 4
    private static let secondsUntilKill: UInt32 = 2
    private static let leastAcknowledged = 200

    let command: [String]
    let credentials: Credentials
    let folder: URL

    /// Returns the failures, and a line with the counts.
    func run(_ name: String) throws -> (failures: [String], summary: String) {
        let database = folder.appendingPathComponent("\(name)-honesty.sqlite").path
        var server = try Server.peer(command, database: database, credentials)
        var failures: [String] = []
        let good = try token("users-2000")
        for (kind, bad) in try badTokens(good) {
            // Twice, because a cache of tokens may also contain rejected ones.
            for _ in 0..<2 where try status(server, bad, id: kind) != "401" {
                failures.append("accepts a token that is \(kind)")
            }
        }
        let foreign = try status(server, good, user: "user-2", id: "foreign")
        if foreign != "401" { failures.append("accepts an event of another user: \(foreign)") }
        if try server.storedEvents() != 0 { failures.append("stores a rejected event") }
        let answer = try status(server, good, id: "good")
        if answer != "200" { failures.append("rejects a good token: \(answer)") }

        let acknowledged = try killUnderLoad(server, good)
        let stored = try rows(database, "SELECT message_id FROM event WHERE message_id LIKE 'kill-%'")
        let lost = acknowledged.subtracting(stored)
        if acknowledged.count < Self.leastAcknowledged {
            failures.append("acknowledged only \(acknowledged.count) events")
        }
        if !lost.isEmpty { failures.append("lost \(lost.count) acknowledged events after SIGKILL") }
        if Set(stored).count != stored.count { failures.append("stores a message twice") }

        server = try Server.peer(command, database: database, credentials)
        defer { server.stop() }
        if let id = acknowledged.first, try status(server, good, id: id) != "200" {
            failures.append("rejects a repeated message")
        }
        if try server.storedEvents() != stored.count + 1 {
            failures.append("stores a repeated message after a restart")
        }
        return (
            failures, "\(acknowledged.count) acknowledged before SIGKILL, \(stored.count) stored, none lost"
        )
    }

    private func token(_ file: String) throws -> String {
        let text = try String(contentsOfFile: credentials.tokenFiles[file] ?? "", encoding: .utf8)
        return String(text.prefix { $0 != "\n" })
    }

    private func badTokens(_ good: String) throws -> [(String, String)] {
        let parts = good.split(separator: ".").map(String.init)
        func unsigned(_ header: String) -> String { "\(base64URL(Data(header.utf8))).\(parts[1])" }
        let confused = unsigned(#"{"alg":"HS256","typ":"JWT"}"#)
        let input = folder.appendingPathComponent("input.txt").path
        let output = folder.appendingPathComponent("code.bin").path
        try confused.write(toFile: input, atomically: true, encoding: .utf8)
        let key = try Data(contentsOf: URL(fileURLWithPath: credentials.publicKeyPath))
        let hexadecimal = key.map { String(format: "%02x", $0) }.joined()
        _ = try Command.output(
            "openssl",
            [
                "dgst", "-sha256", "-mac", "HMAC", "-macopt", "hexkey:\(hexadecimal)", "-binary", "-out",
                output,
                input,
            ])
        let code = try base64URL(Data(contentsOf: URL(fileURLWithPath: output)))
        // The good token's user with a later exp, under the good token's signature.
        let other = base64URL(Data(#"{"sub":"user-1","exp":4102444800}"#.utf8))
        return [
            ("forged", try token("forged")), ("expired", try token("expired")),
            ("altered", "\(parts[0]).\(other).\(parts[2])"), ("unsigned", unsigned(#"{"alg":"none"}"#) + "."),
            ("HS256 with the public key", "\(confused).\(code)"), ("malformed", "abc"),
        ]
    }

    private func base64URL(_ data: Data) -> String {
        data.base64EncodedString().replacingOccurrences(of: "+", with: "-")
            .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
    }

    private func body(user: String, id: String) -> String {
        #"{"batch":[{"type":"track","messageId":"\#(id)","userId":"\#(user)","event":"Order Completed"}]}"#
    }

    private func status(_ server: Server, _ token: String, user: String = "user-1", id: String) throws
        -> String
    {
        try Command.output(
            "curl",
            [
                "-s", "-o", folder.appendingPathComponent("answer").path, "-w", "%{http_code}", "-H",
                "Authorization: Bearer \(token)", "-H", "X-Write-Key: \(credentials.writeKey)", "-H",
                "Content-Type: application/json", "-d", body(user: user, id: id), "\(server.url)/v1/batch",
            ])
    }

    /// Kills the server while several clients send the same ids, and returns the acknowledged ids.
    private func killUnderLoad(_ server: Server, _ token: String) throws -> Set<String> {
        let script = folder.appendingPathComponent("kill.lua").path
        let wholeBody = body(user: "user-1", id: "kill-%d").replacingOccurrences(of: "\"", with: "\\\"")
        try """
        wrk.headers["Authorization"] = "Bearer \(token)"
        wrk.headers["X-Write-Key"] = "\(credentials.writeKey)"
        wrk.headers["Content-Type"] = "application/json"
        local count, acknowledged = 0
        function init(arguments)
          acknowledged = io.open(arguments[1], "w")
          acknowledged:setvbuf("line")
        end
        function request()
          count = count + 1
          return wrk.format("POST", nil, nil, string.format("\(wholeBody)", count))
        end
        function response(status)
          if status == 200 then acknowledged:write("kill-", count, "\\n") end
        end
        """.write(toFile: script, atomically: true, encoding: .utf8)
        let outputs = (0..<Self.clients).map { folder.appendingPathComponent("kill-\($0).txt").path }
        // With one connection, `count` in the response's callback is the number of its request.
        let clients = try outputs.map { output in
            try Command.start(
                "wrk",
                [
                    "-t1", "-c1", "-d\(2 * Self.secondsUntilKill)s", "-s", script, server.url + "/v1/batch",
                    output,
                ])
        }
        sleep(Self.secondsUntilKill)
        server.kill()
        for client in clients { client.waitUntilExit() }
        return try Set(
            outputs.flatMap { output in
                try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n").map(String.init)
            })
    }

    private func rows(_ database: String, _ statement: String) throws -> [String] {
        try Command.output("sqlite3", [database, statement]).split(separator: "\n").map(String.init)
    }
}
