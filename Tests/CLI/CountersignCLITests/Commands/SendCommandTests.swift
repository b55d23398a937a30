import CountersignGateway
import CountersignGatewayTesting
import Foundation
import Testing

@testable import CountersignCLI

/// `countersign send` to a gateway.
@Suite(.timeLimit(.minutes(5)))
struct SendCommandTests {
    private let folder = TemporaryFolder()
    private let fixture: GatewayFixture

    init() throws {
        fixture = try GatewayFixture(enforcement: .disabled)
    }

    private var url: String { "http://127.0.0.1:\(fixture.gateway.port)" }

    private var environment: [String: String] {
        ["COUNTERSIGN_WRITE_KEY": fixture.writeKey, "HOME": folder.path]
    }

    @Test func aLineThatCannotBeReadIsCountedAndIsAFailure() async throws {
        let file = try folder.write("{\"event\":\"a\",\"userId\":\"u\"}\nnonsense\n", to: "events.ndjson")
        let io = RecordedIO(environment: environment)
        #expect(await io.run("send", file, "--server", url) == .failed)
        #expect(io.output == "stored 1, already there 0, rejected 0, unreadable 1\n")
        #expect(io.talk.contains("line 2 is skipped: it is not JSON"))
    }

    @Test func aLineThatIsNotUTF8IsSkipped() async throws {
        let file = folder.path + "/events.ndjson"
        let bytes = Array(#"{"event":"caf"#.utf8) + [0xE9] + Array("\",\"userId\":\"u\"}\n".utf8)
        try Data(bytes + Array("{\"event\":\"a\",\"userId\":\"u\"}\n".utf8)).write(
            to: URL(fileURLWithPath: file))
        let io = RecordedIO(environment: environment)
        #expect(await io.run("send", file, "--server", url) == .failed)
        #expect(io.talk.contains("line 1 is skipped: it is not UTF-8"))
        #expect(io.output.hasPrefix("stored 1,"))
    }

    /// Pipes have no distinct names, so equal lines of two pipes are two events, as on standard input.
    @Test func equalLinesOfTwoPipesAreTwoEvents() async throws {
        for _ in 1...2 {
            let pipe = try FilledPipe("{\"event\":\"a\",\"userId\":\"u\"}\n")
            let io = RecordedIO(environment: environment)
            #expect(await io.run("send", pipe.path, "--server", url) == .done, "\(io.talk)")
            #expect(io.output == "stored 1, already there 0, rejected 0, unreadable 0\n")
        }
    }

    @Test func sendUsesTheServerOfTheCurrentProfile() async throws {
        let token = try fixture.apps.apiTokens.create(name: "test", scopes: ["admin"]).text
        let added = RecordedIO(environment: environment, input: token)
        let authority = try folder.write("", to: "ca.pem")
        let line = "profile add live --server \(url) --ca-file \(authority)"
        #expect(await added.run(line: line) == .done, "\(added.talk)")
        #expect(await RecordedIO(environment: environment).run("profile", "use", "live") == .done)
        let file = try folder.write("{\"event\":\"a\",\"userId\":\"u\"}\n", to: "events.ndjson")
        let io = RecordedIO(environment: environment)
        #expect(await io.run("send", file) == .done, "\(io.talk)")
        // These variables select no gateway.
        for name in ["COUNTERSIGN_TOKEN_KEY_FILE", "COUNTERSIGN_DATABASE_PASSWORD_FILE"] {
            let io = RecordedIO(environment: environment.merging([name: authority]) { $1 })
            #expect(await io.run("send", file) == .done, "\(name): \(io.talk)")
        }
        let local = RecordedIO(environment: environment.merging(["COUNTERSIGN_URL": url]) { $1 })
        #expect(await local.run("send", file, "--data", folder.path + "/none") == .unavailable)
        try FileManager.default.removeItem(atPath: authority)
        #expect(await RecordedIO(environment: environment).run("send", file) == .notFound)
    }
}
