import CountersignCore
import Foundation
import Testing

/// Runs the scenarios of `Conformance/README.md` with the clients of the Swift SDK.
@Suite(.timeLimit(.minutes(5)))
struct ConformanceTests {
    /// The file for the outcomes, one line of JSON each; nil if no report is requested.
    private static let report = ProcessInfo.processInfo.environment["COUNTERSIGN_CONFORMANCE_REPORT"].map {
        Lock($0)
    }

    @Test(arguments: try Scenario.all())
    func scenario(_ scenario: Scenario) async throws {
        do {
            try await ScenarioRun(scenario).run()
            try Self.note(scenario, passed: true)
        } catch {
            try Self.note(scenario, passed: false)
            throw error
        }
    }

    private static func note(_ scenario: Scenario, passed: Bool) throws {
        try report?.withLock { path in
            let line: JSONValue = [
                "mode": .string(scenario.mode.rawValue), "name": .string(scenario.name),
                "passed": .bool(passed),
            ]
            if !FileManager.default.fileExists(atPath: path) {
                try Data().write(to: URL(fileURLWithPath: path))
            }
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            defer { try? file.close() }
            try file.seekToEnd()
            try file.write(contentsOf: Data(line.bytes + [UInt8(ascii: "\n")]))
        }
    }
}
