import Foundation
import Testing

@testable import CountersignCLI

/// What the documents say, done.
@Suite(.timeLimit(.minutes(2)))
struct DocumentTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func document(_ name: String, from file: String = #filePath) throws -> String {
        // Tests/CountersignCLITests/Documents/DocumentTests.swift is four levels below the package.
        var package = URL(fileURLWithPath: file)
        for _ in 0..<4 { package.deleteLastPathComponent() }
        return try String(contentsOf: package.appendingPathComponent(name), encoding: .utf8)
    }

    /// The code blocks of a language, in order.
    private func blocks(_ language: String, of name: String) throws -> [String] {
        try document(name).components(separatedBy: "```\(language)\n").dropFirst().map {
            $0.components(separatedBy: "```\n")[0]
        }
    }

    @Test func theSwiftSampleOfTheReadmeIsTheSnippetThatIsBuilt() throws {
        let snippet = try document("Snippets/QuickStart.swift").components(separatedBy: "// snippet.")
        let shown = try #require(snippet.first { $0.hasPrefix("show\n") }).dropFirst("show\n".count)
        #expect(try blocks("swift", of: "README.md") == [String(shown)])
    }

    @Test func theShellSamplesOfTheReadmeWorkWhenPasted() async throws {
        // A port that was free a moment ago stands in for the default one, which may be taken.
        let probe = GatewayProcess(executable: Program.path, dataDirectory: folder.path + "/probe") { _ in }
        let port = try #require(try await probe.start().port)
        _ = await probe.stop()
        let samples = try blocks("sh", of: "README.md").filter { !$0.contains("make ") }
        #expect(samples.count == 2)
        let script = samples.joined().replacingOccurrences(of: ":8787/", with: ":\(port)/")
            .replacingOccurrences(of: "swift build --product countersign\n", with: "")
        let shell = Shell(folder: folder.path, environment: ["COUNTERSIGN_PORT": String(port)])
        let result = try await shell.run(
            """
            set -e
            trap 'kill $! 2>/dev/null || true' EXIT
            \(script)
            kill $!
            wait $!
            """)
        #expect(result.status == 0, "\(result.talk)")
        #expect(result.output.contains("\"accepted\":1"))
        #expect(result.output.contains("user-1|Order Completed"))
    }

    @Test func theCommandsForOperatorsWorkWhenPasted() async throws {
        let script = try blocks("sh", of: "docs/operations.md").joined()
        let shell = Shell(folder: folder.path, environment: ["COUNTERSIGN_DATA": folder.path + "/data"])
        let result = try await shell.run("set -e\n\(script)")
        #expect(result.status == 0, "\(result.talk)")
    }

    @Test func theTableOfExitCodesIsTheProgramsOwn() throws {
        let text = try document("docs/operations.md")
        for (code, meaning) in ExitCode.table {
            #expect(text.contains("| \(code.rawValue) | \(meaning) |"))
        }
    }

    @Test func theReadmeIsShort() throws {
        #expect(
            try document("README.md").split(separator: "\n", omittingEmptySubsequences: false).count < 150)
    }
}
