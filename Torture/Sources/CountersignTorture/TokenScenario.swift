internal import CountersignGateway
internal import CountersignGatewayTesting
internal import CountersignTransport
internal import Foundation

/// A3: devices have tokens that live 2 s, responses of refreshes are lost, devices are killed. None may need a login.
enum TokenScenario {
    private static let devices = 50
    private static let lifetime = 2

    static func run(seconds: Int) async throws -> Bool {
        let workshop = try Workshop()
        var rules = TokenRules()
        rules.allowsRegistration = true
        rules.accessSeconds = lifetime
        try workshop.fixture.apps.setTokenRules(rules, for: workshop.fixture.appID)
        // A running gateway loads a change within a second.
        try await Task.sleep(nanoseconds: 2_000_000_000)
        for number in 0..<devices { try await register(number, workshop) }

        let clock = SystemClock()
        var begins: [TimeInterval] = []
        var processes = try (0..<devices).map { number in
            begins.append(clock.uptime)
            return try start(number, workshop)
        }
        var kills = 0
        let end = clock.uptime + Double(seconds)
        while clock.uptime < end {
            try await Task.sleep(nanoseconds: 250_000_000)
            let victim = Int.random(in: 0..<devices, using: &dice)
            workshop.kill(processes[victim])
            kills += 1
            // Also restarts processes that exited on their own.
            for number in 0..<devices where !processes[number].isRunning {
                processes[number] = try start(number, workshop)
            }
        }
        // The running time in token lifetimes, and one for the registration's token, which expired before the start.
        let tokens = begins.reduce(0) { $0 + 1 + (clock.uptime - $1) / TimeInterval(lifetime) }
        for process in processes { workshop.kill(process) }
        let lines = try Journal.lines(workshop.journal)
        // Drains nothing if a device had to log in, because that device cannot drain.
        for number in 0..<devices where !lines.contains("login -") {
            let process = try start(number, workshop, mode: "drain")
            process.waitUntilExit()
            guard process.terminationStatus == 0 else { throw TortureError("device \(number) did not drain") }
        }
        return try account(lines, workshop, tokens: Int(tokens), kills: kills)
    }

    private static func register(_ number: Int, _ workshop: Workshop) async throws {
        guard let url = URL(string: workshop.endpoint + "/api/register") else {
            throw TortureError("no endpoint")
        }
        let body =
            #"{"org":"\#(workshop.fixture.appID)","uuid":"device-\#(number)","model":"m","manufacturer":"m"}"#
        let response = try await CurlTransport().send(
            TransportRequest(
                url: url, headers: [("Content-Type", "application/json")], body: Array(body.utf8)))
        struct Pair: Decodable {
            let accessToken: String
            let refreshToken: String
        }
        let pair = try JSONDecoder().decode(Pair.self, from: Data(response.body))
        try "\(pair.accessToken) \(pair.refreshToken)".write(
            to: file(number, workshop), atomically: true, encoding: .utf8)
    }

    private static func file(_ number: Int, _ workshop: Workshop) -> URL {
        workshop.directory.appendingPathComponent("pair-\(number)")
    }

    private static func start(_ number: Int, _ workshop: Workshop, mode: String = "run") throws -> Process {
        try workshop.start([
            "token-device", workshop.directory.appendingPathComponent("device-\(number)").path,
            workshop.endpoint, file(number, workshop).path, workshop.journal, mode,
        ])
    }

    private static func account(
        _ lines: [Substring], _ workshop: Workshop, tokens: Int, kills: Int
    ) throws -> Bool {
        let words = lines.map { $0.split(separator: " ") }.filter { $0.count == 2 }
        let stored = words.filter { $0[0] == "stored" }.map { String($0[1]) }
        let refreshes = words.count { $0[0] == "refresh" }
        let logins = words.count { $0[0] == "login" }
        let rejections = words.count { $0[0] == "refused" }
        // A lost response needs another refresh.
        let losses = words.count { $0[0] == "lost" }
        let minimum = tokens + losses
        let database = try Database(
            path: "\(workshop.fixture.dataDirectory)/events.sqlite", isReadOnly: true)
        let received = try database.rows("SELECT message_id FROM event WHERE type = 'location'").map { $0[0] }
        let ids = Set(received)
        let lost = stored.count { !ids.contains($0) }
        let twice = received.count - ids.count
        let isGood =
            lost == 0 && twice == 0 && logins == 0 && rejections == 0 && !stored.isEmpty
            && Double(refreshes) <= Double(minimum) * 1.1
        print(
            "A3: \(isGood ? "ok" : "FAILED"): \(devices) devices, \(kills) kills, \(stored.count) accepted, "
                + "\(lost) lost, \(twice) twice, \(refreshes) refreshes for \(tokens) lifetimes and \(losses) lost answers, "
                + "\(rejections) rejected requests, \(logins) logins needed")
        return isGood
    }
}
