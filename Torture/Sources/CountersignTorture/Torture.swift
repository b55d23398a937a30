internal import Foundation

/// `CountersignTorture [SCENARIO [ROUNDS]]`: crash tests of the SDK, with kills and simulated power failures.
///
/// Exit status: 0 if all scenarios passed, 1 if a scenario failed, 2 after an error.
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
            case "identity-device": try await IdentityDevice(arguments: Array(arguments.dropFirst())).run()
            case "location-device": try await LocationDevice(arguments: Array(arguments.dropFirst())).run()
            case "leaving-device": try await LeavingDevice(arguments: Array(arguments.dropFirst())).run()
            case "full-disk-device":
                try await FullDiskDevice(arguments: Array(arguments.dropFirst())).run()
            case "control": try Control(arguments: Array(arguments.dropFirst())).run()
            case "gateway": try GatewayProcess(arguments: Array(arguments.dropFirst())).run()
            default:
                let chosen = Scenario.all.filter {
                    arguments.isEmpty || arguments[0] == $0.name || arguments[0] == "all"
                }
                guard !chosen.isEmpty else { throw TortureError("unknown scenario: \(arguments[0])") }
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
