import CountersignGatewayTesting
import Foundation
import Testing

@testable import CountersignCLI

/// Commands on a database that gateways share.
@Suite(
    .enabled(if: TestEngine.standard == .postgresql, "needs PostgreSQL: make check ONLY=postgresql"),
    .timeLimit(.minutes(5)))
struct DatabaseCommandTests {
    private let place: TestStorage
    private let folder = TemporaryFolder()

    init() throws { place = try TestStorage() }

    private func run(_ arguments: String..., database: String? = nil) async -> (
        code: ExitCode, io: RecordedIO
    ) {
        var environment = place.environment
        if let database { environment["COUNTERSIGN_DATABASE"] = database }
        let io = RecordedIO(environment: environment)
        return (await io.run(arguments: arguments), io)
    }

    /// The URL of a database on the same server without a schema of the gateway.
    private var empty: String? {
        var url = place.environment["COUNTERSIGN_DATABASE"].flatMap { URLComponents(string: $0) }
        url?.path = "/postgres"
        return url?.string
    }

    @Test(arguments: [
        ["app", "list"], ["cluster", "status"], ["event", "list", "shop"], ["admin", "reset"],
        ["tail"], ["self-check"], ["trigger", "22"],
    ])
    func readingCreatesNoSchema(line: [String]) async throws {
        let empty = try #require(empty)
        let io = RecordedIO(environment: ["COUNTERSIGN_DATABASE": empty])
        #expect(await io.run(arguments: line) == .notFound)
        #expect(io.talk.contains("there is no data in the database"))
        let check = await run("migrate", "--check", database: empty)
        #expect(check.io.output == "schema 0\n")
    }

    @Test func anEmptyDatabaseIsNotCopied() async throws {
        let (code, io) = await run("copy", "--from", try #require(empty), "--to", folder.path + "/copy")
        #expect(code == .notFound)
        #expect(!io.talk.contains("Done"))
    }

    @Test func aCopyNeedsNoTokenKeyFile() async throws {
        #expect(await run("app", "create", "shop").code == .done)
        let database = try #require(place.environment["COUNTERSIGN_DATABASE"])
        let (code, io) = await run("copy", "--from", database, "--to", folder.path + "/copy")
        #expect(code == .done, "\(io.talk)")
        #expect(io.talk.contains("Done."))
    }

    @Test(arguments: [["app", "list"], ["migrate"], ["doctor"], ["serve"]])
    func aDatabaseThatDoesNotAnswerIsUnavailable(line: [String]) async {
        let io = RecordedIO(environment: [
            "COUNTERSIGN_DATABASE": "postgresql://ada:geheim@127.0.0.1:1/x", "COUNTERSIGN_DATA": folder.path,
        ])
        #expect(await io.run(arguments: line) == .unavailable)
        let text = io.talk + io.output
        #expect(text.contains("cannot be reached") && text.contains("127.0.0.1:1"), "\(text)")
        #expect(!text.contains("geheim"))
    }

    @Test func doctorChecksThePostgreSQLDatabase() async throws {
        #expect(await run("app", "create", "shop").code == .done)
        let (code, io) = await run("doctor")
        #expect(code == .done, "\(io.output)")
        for line in [
            "ok    database: PostgreSQL ", "0 live gateways", "note  gateway: no gateway runs",
            "app shop: disabled",
        ] {
            #expect(io.output.contains(line), "\(io.output)")
        }
    }
}
