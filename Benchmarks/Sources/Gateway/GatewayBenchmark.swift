import Foundation

/// Measures the gateway under `wrk`: requests a second, and CPU time of the gateway process for each request.
///
/// `make bench` builds and runs it. Whole-machine numbers depend on the machine, since `wrk` takes its share of the
/// same cores; the CPU time of a request depends on it less.
@main struct GatewayBenchmark {
    /// Requests of one kind.
    struct Scenario {
        let name: String
        /// Events of a request.
        let events: Int
        let token: Token
        /// All answers are 200, or none is.
        let isAccepted: Bool
    }

    enum Token {
        case good, expired, forged
    }

    static let scenarios = [
        Scenario(name: "batch-accepted-N=1", events: 1, token: .good, isAccepted: true),
        Scenario(name: "batch-accepted-N=20", events: 20, token: .good, isAccepted: true),
        Scenario(name: "batch-rejected-expired-N=1", events: 1, token: .expired, isAccepted: false),
        Scenario(name: "batch-rejected-signature-N=1", events: 1, token: .forged, isAccepted: false),
    ]

    static func main() throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 2 else {
            print("usage: Gateway PATH-OF-COUNTERSIGN [SECONDS]")
            exit(2)
        }
        let seconds = arguments.count > 2 ? Int(arguments[2]) ?? 5 : 5
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "bench-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let fixture = try Fixture(countersign: arguments[1], folder: folder)
        defer { fixture.stop() }
        print("scenario                        requests/s  CPU us/request  p50 us  p99 us  requests")
        for scenario in scenarios {
            let result = try fixture.run(scenario, seconds: seconds)
            let rate = Double(result.requests) / (Double(result.microseconds) / 1_000_000)
            let cost = result.cpuSeconds.map {
                String(format: "%.1f", $0 * 1_000_000 / Double(result.requests))
            }
            print(
                scenario.name.padding(toLength: 30, withPad: " ", startingAt: 0)
                    + String(format: "%12.0f", rate) + leftPadded(cost ?? "-", 16)
                    + leftPadded(String(result.p50), 8) + leftPadded(String(result.p99), 8)
                    + leftPadded(String(result.requests), 10))
        }
        print("events stored: \(try fixture.storedEvents())")
    }

    private static func leftPadded(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
