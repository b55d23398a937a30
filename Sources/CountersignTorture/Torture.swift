internal import Foundation

/// `CountersignTorture SCENARIO [ROUNDS]`: kills processes and power at random moments, and counts what is left.
///
/// Exit status 0 if nothing was lost and nothing came twice.
@main
struct Torture {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            switch arguments.first {
            case "device": try await Device(arguments: Array(arguments.dropFirst())).run()
            case "token-device": try await TokenDevice(arguments: Array(arguments.dropFirst())).run()
            case "tracker": try await Tracker(arguments: Array(arguments.dropFirst())).run()
            case "bad-day-device": try await BadDayDevice(arguments: Array(arguments.dropFirst())).run()
            case "control": try Control(arguments: Array(arguments.dropFirst())).run()
            case "gateway": try GatewayProcess(arguments: Array(arguments.dropFirst())).run()
            default:
                let chosen = Scenario.all.filter {
                    arguments.isEmpty || arguments[0] == $0.name || arguments[0] == "all"
                }
                guard !chosen.isEmpty else { throw TortureError("no such scenario: \(arguments[0])") }
                var isGood = true
                for scenario in chosen {
                    let rounds = arguments.count > 1 ? Int(arguments[1]) ?? scenario.rounds : scenario.rounds
                    isGood = try await scenario.run(rounds) && isGood
                }
                exit(isGood ? 0 : 1)
            }
        } catch {
            FileHandle.standardError.write(Data("torture: \(error)\n".utf8))
            exit(2)
        }
    }
}

struct TortureError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// One row of the reliability plan.
struct Scenario: Sendable {
    let name: String
    let summary: String
    let rounds: Int
    /// True if all was well.
    let run: @Sendable (Int) async throws -> Bool

    static let all = [
        Scenario(name: "D1", summary: "client killed", rounds: 100) {
            try await KillScenarios.client(rounds: $0)
        },
        Scenario(name: "K1", summary: "client killed while it tracks", rounds: 20) {
            try await AgeScenario.run(rounds: $0)
        },
        Scenario(name: "D3", summary: "client and gateway killed", rounds: 30) {
            try await KillScenarios.both(rounds: $0)
        },
        Scenario(name: "D4", summary: "power failure of the device", rounds: 30) {
            try await PowerScenario.run(rounds: $0)
        },
        Scenario(name: "D5", summary: "fsync fails", rounds: 40) { try await FsyncScenario.run(rounds: $0) },
        Scenario(name: "B1", summary: "bad days of two devices on one queue", rounds: 5) {
            try await BadDayScenario.run(rounds: $0)
        },
        Scenario(name: "A3", summary: "tokens that live 2 s, for so many seconds", rounds: 60) {
            try await TokenScenario.run(seconds: $0)
        },
        Scenario(name: "D14", summary: "four processes share a queue", rounds: 10) {
            try await KillScenarios.shared(rounds: $0)
        },
    ]
}
