/// A crash test with its default number of rounds.
struct Scenario: Sendable {
    let name: String
    let summary: String
    let rounds: Int
    /// Runs a number of rounds. Returns whether the scenario's checks passed.
    let run: @Sendable (Int) async throws -> Bool

    static let all = [
        Scenario(name: "D1", summary: "client killed", rounds: 100) {
            try await KillScenarios.client(rounds: $0)
        },
        Scenario(name: "K1", summary: "client killed while it records after a start", rounds: 20) {
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
        Scenario(name: "F1", summary: "disks that become full and stay full", rounds: 100) {
            try await FullDiskScenario.run(rounds: $0)
        },
        Scenario(name: "R1", summary: "damaged values and logs", rounds: 100) {
            try await DamageScenario.run(rounds: $0)
        },
        Scenario(name: "U1", summary: "bursts of events", rounds: 100) {
            try await BurstScenario.run(rounds: $0)
        },
        Scenario(name: "A3", summary: "tokens that live 2 s (rounds are seconds)", rounds: 60) {
            try await TokenScenario.run(seconds: $0)
        },
        Scenario(name: "I1", summary: "client killed after its user changed", rounds: 100) {
            try await IdentityScenario.kills(rounds: $0)
        },
        Scenario(
            name: "I2", summary: "anonymous client killed while another process holds the queue file",
            rounds: 100
        ) {
            try await IdentityScenario.busy(rounds: $0)
        },
        Scenario(name: "I3", summary: "a process signs out while another is stopped", rounds: 100) {
            try await IdentityScenario.stopped(rounds: $0)
        },
        Scenario(name: "I4", summary: "fsync fails while the user changes", rounds: 100) {
            try await IdentityScenario.fsync(rounds: $0)
        },
        Scenario(name: "D14", summary: "four processes share a queue", rounds: 10) {
            try await KillScenarios.shared(rounds: $0)
        },
    ]
}
