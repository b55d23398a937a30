internal import CountersignGateway
internal import CountersignGatewayTesting
internal import Foundation

/// Processes that are killed at random moments.
enum KillScenarios {
    private static func nap(upTo milliseconds: Int) async throws {
        try await Task.sleep(
            nanoseconds: UInt64.random(in: 0...UInt64(milliseconds) * 1_000_000, using: &dice))
    }

    /// D1: a device is killed 0 to 200 ms after its start, repeatedly on one queue.
    static func client(rounds: Int) async throws -> Bool {
        let workshop = try Workshop()
        let queue = workshop.directory.appendingPathComponent("device")
        var sound = 0
        for round in 0..<rounds {
            let device = try workshop.startDevice("\(round)", count: 1_000_000)
            try await nap(upTo: 200)
            workshop.kill(device)
            if try workshop.check(queueIn: queue) { sound += 1 }
        }
        try workshop.drain()
        return try workshop.account(
            "D1", "\(rounds) kills, \(sound) sound queue files", isGood: sound == rounds)
    }

    /// D3: a device and the gateway are killed independently.
    static func both(rounds: Int) async throws -> Bool {
        let workshop = try Workshop()
        // The gateway becomes a separate process, always on the same port.
        let port = workshop.fixture.gateway.port
        let endpoint = workshop.endpoint
        workshop.fixture.gateway.stop()
        let arguments = ["gateway", workshop.fixture.dataDirectory, "\(port)"]
        var gateway = try workshop.start(arguments)
        var device = try workshop.startDevice("first", count: 1_000_000, endpoint: endpoint)
        for round in 0..<rounds {
            try await nap(upTo: 300)
            if Bool.random(using: &dice) {
                workshop.kill(gateway)
                try await nap(upTo: 100)
                gateway = try workshop.start(arguments)
            } else {
                workshop.kill(device)
                device = try workshop.startDevice("\(round)", count: 1_000_000, endpoint: endpoint)
            }
        }
        workshop.kill(device)
        try workshop.drain(endpoint: endpoint)
        workshop.kill(gateway)
        return try workshop.account("D3", "\(rounds) kills of either")
    }

    /// D14: four processes record into one queue and try to send. One process is killed.
    static func shared(rounds: Int) async throws -> Bool {
        let workshop = try Workshop()
        var failed = 0
        for round in 0..<rounds {
            let devices = try (0..<4).map { try workshop.startDevice("\(round)-\($0)", count: 50) }
            try await nap(upTo: 200)
            workshop.kill(devices[0])
            for device in devices.dropFirst() {
                device.waitUntilExit()
                if device.terminationStatus != 0 { failed += 1 }
            }
        }
        try workshop.drain()
        let rejected = try Journal.lines(workshop.journal).count { $0.hasPrefix("refused") }
        return try workshop.account(
            "D14", "\(rounds) rounds of 4 processes, \(failed) failed, \(rejected) rejected calls",
            isGood: failed == 0 && rejected == 0)
    }
}
