import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import GatewayModel
import GatewayStorage
import TestSupport
import Testing

@testable import CountersignCLI

@Suite(.timeLimit(.minutes(5)))
struct RemoteAdminTests {
    private let folder = TemporaryFolder()

    private func run(
        _ line: String, environment: [String: String] = [:], input: String = ""
    ) async -> (code: ExitCode, io: RecordedIO) {
        let io = RecordedIO(
            environment: ["XDG_CONFIG_HOME": folder.path + "/config"].merging(environment) { $1 },
            input: input)
        return (await io.run(line: line), io)
    }

    @Test func aRejectionHasItsExitCodeAndPrintsNoToken() async throws {
        let fixture = try GatewayFixture()
        let url = "http://127.0.0.1:\(fixture.gateway.port)"
        let reader = try fixture.apps.apiTokens.create(name: "reader", scopes: ["read"]).text
        let writer = try fixture.apps.apiTokens.create(name: "writer", scopes: ["write"]).text
        for (line, token, expected) in [
            ("app list", "csa_of-somebody-else", ExitCode.notAuthorized),
            ("app create blog", reader, .notAuthorized), ("admin user list", writer, .notAuthorized),
            ("app show nothing", reader, .notFound), ("app create shop", writer, .conflict),
            ("app create Shop", writer, .usage), ("app list", "two words", .usage),
        ] {
            let (code, io) = await run("\(line) --server \(url)", environment: ["COUNTERSIGN_TOKEN": token])
            #expect(code == expected, "\(line): \(io.talk)")
            #expect(io.output.isEmpty)
            #expect(!io.talk.contains(token))
        }
        #expect(await run("app list --server \(url)").code == .notAuthorized)
        #expect(await run("app list --server \(url) --token-file -", input: reader + "\n").code == .done)
    }

    @Test func verboseOutputHasRequestsAndAnswers() async throws {
        let fixture = try GatewayFixture()
        let url = "http://127.0.0.1:\(fixture.gateway.port)"
        let token = try fixture.apps.apiTokens.create(name: "r", scopes: ["read"]).text
        for (line, status) in [("app show shop", 200), ("app show nothing", 404)] {
            let (_, io) = await run("\(line) -v --server \(url)", environment: ["COUNTERSIGN_TOKEN": token])
            #expect(io.talk.contains("GET \(url)/admin/api/apps/"), "\(io.talk)")
            #expect(io.talk.contains(": \(status) in ") && io.talk.contains("request id 0"))
            #expect(!io.talk.contains(token))
        }
        let local = await run("--verbose app list", environment: fixture.place.environment)
        #expect(local.io.talk.contains("without a gateway"))
    }

    @Test func selfCheckUsesTheServerOfAProfile() async throws {
        let fixture = try GatewayFixture()
        let url = "http://127.0.0.1:\(fixture.gateway.port)"
        let token = try fixture.apps.apiTokens.create(name: "laptop", scopes: ["read"]).text
        #expect(await run("profile add live --server \(url)", input: token).code == .done)
        let (code, io) = await run("self-check --profile live")
        #expect(code == .done, "\(io.output)\(io.talk)")
        #expect(io.output.contains("answers"))
        #expect(await run("self-check --profile live --server \(url)").code == .usage)
        #expect(await run("self-check --profile other").code == .notFound)
    }

    @Test func aTokenFileTakesPrecedenceOverTheTokenOfAProfile() async throws {
        let fixture = try GatewayFixture()
        let url = "http://127.0.0.1:\(fixture.gateway.port)"
        let laptop = try fixture.apps.apiTokens.create(name: "laptop", scopes: ["read"]).text
        let script = try fixture.apps.apiTokens.create(name: "script", scopes: ["read"]).text
        #expect(await run("profile add live --server \(url)", input: laptop).code == .done)
        // The profile in use, and a profile named by a flag or the environment.
        let named = ["COUNTERSIGN_PROFILE": "live"]
        for (line, environment) in [
            ("profile show", [:]), ("profile show --profile live", [:]), ("profile show", named),
        ] as [(String, [String: String])] {
            let (_, io) = await run("\(line) --token-file -", environment: environment, input: script)
            #expect(io.output.contains("token:script"), "\(line): \(io.talk)")
        }
        // A variable does not replace the token of a profile.
        let variable = ["COUNTERSIGN_TOKEN": script]
        #expect(await run("profile show", environment: variable).io.output.contains("token:laptop"))
        #expect(await run("profile show --token-file \(folder.path)/none").code == .notFound)
    }

    @Test func aListOnANarrowTerminalIsPrintedAsBlocks() async throws {
        let fixture = try GatewayFixture()
        let io = RecordedIO(environment: fixture.place.environment, isOutputWatched: true, width: 20)
        #expect(await io.run("app", "list") == .done)
        #expect(io.output.hasPrefix("APP          shop\nENFORCEMENT  "))
    }

    @Test func aReadOnlyTokenSeesUsersByPseudonyms() async throws {
        let fixture = try GatewayFixture()
        let local = fixture.place.environment
        #expect(await run("session create shop --user alice-4711", environment: local).code == .done)
        let url = "http://127.0.0.1:\(fixture.gateway.port)"
        let reader = [
            "COUNTERSIGN_TOKEN": try fixture.apps.apiTokens.create(name: "r", scopes: ["read"]).text
        ]
        let writer = [
            "COUNTERSIGN_TOKEN": try fixture.apps.apiTokens.create(name: "w", scopes: ["write"]).text
        ]
        for line in ["session list shop", "audit list --json"] {
            let (code, io) = await run("\(line) --server \(url)", environment: reader)
            #expect(code == .done && !io.output.contains("alice"), "\(line)")
            let shown = await run("\(line) --server \(url)", environment: writer)
            #expect(shown.io.output.contains("alice-4711"))
            #expect(await run(line, environment: local).io.output.contains("alice-4711"))
        }
        for line in [
            "event export shop", "customer show shop alice-4711", "event list shop --user alice-4711",
            "tail --user alice-4711",
        ] {
            #expect(
                await run("\(line) --server \(url)", environment: reader).code == .notAuthorized, "\(line)")
        }
    }

    @Test func aGatewayThatIsDownIsUnavailable() async throws {
        let fixture = try GatewayFixture()
        let url = "http://127.0.0.1:\(fixture.gateway.port)"
        fixture.gateway.stop()
        #expect(
            await run("app list --server \(url)", environment: ["COUNTERSIGN_TOKEN": "csa_x"]).code
                == .unavailable)
    }

    /// The shell waits for the completions, and cannot show why they take long.
    @Test func completionGivesUpOnASilentGateway() async throws {
        let server = try RawServer { _ in "" }
        defer { server.stop() }
        let io = RecordedIO(environment: ["COUNTERSIGN_TOKEN": "csa_x"], isLate: true)
        for flag in ["--server=http", "--database=postgresql"] {
            let line = ["complete", "--", "\(flag)://127.0.0.1:\(server.port)/x", "app", "show", ""]
            let code = await io.run(arguments: line)
            #expect(code == .done && io.output.isEmpty, "\(io.talk)")
        }
    }

    @Test func aHalfAppliedPresetIsExplainedAndFinishedByRunningItAgain() async throws {
        let fixture = try GatewayFixture()
        let line = "policy set shop --preset clerk --tenant 127.0.0.1:443 --allow-private --server"
        for (scope, code) in [("write", ExitCode.notAuthorized), ("admin", .done)] {
            let token = try fixture.apps.apiTokens.create(name: scope, scopes: [scope]).text
            let (found, io) = await run(
                "\(line) http://127.0.0.1:\(fixture.gateway.port)", environment: ["COUNTERSIGN_TOKEN": token])
            #expect(found == code && io.talk.contains("its keys are not followed until") == (code != .done))
            #expect(try fixture.apps.app(id: "shop").policy.issuers == ["https://127.0.0.1:443"])
        }
    }

    @Test func aConcurrentChangeIsNotOverwritten() async throws {
        let fixture = try GatewayFixture()
        let admin = try LocalAdmin(StorageLocation(fixture.place.configuration))
        let error = await #expect(throws: CommandError.self) {
            _ = try await admin.change("apps", "shop", "policy") { members in
                var policy = try fixture.apps.app(id: "shop").policy
                policy.leeway = 7
                try fixture.apps.setPolicy(policy, for: "shop")
                members["leeway_seconds"] = 9
            }
        }
        #expect(error?.code == .conflict)
        #expect(try fixture.apps.app(id: "shop").policy.leeway == 7)
    }

    @Test func aChangeOfAListIsAnError() async throws {
        let error = await #expect(throws: CommandError.self) {
            _ = try await Lists().change("apps") { _ in Issue.record("a list was changed") }
        }
        #expect(error?.code == .failed)
    }

    @Test func anUntrustedCertificateIsRejected() async throws {
        let (certificate, key) = try await folder.makeCertificate("own")
        let fixture = try GatewayFixture { $0.tls = TLSFiles(certificatePath: certificate, keyPath: key) }
        let line = "app list --server https://127.0.0.1:\(fixture.gateway.port)"
        let token = ["COUNTERSIGN_TOKEN": try fixture.apps.apiTokens.create(name: "t", scopes: ["read"]).text]
        let (code, io) = await run(line, environment: token)
        #expect(code == .unavailable)
        #expect(io.talk.contains("--ca-file"))
        #expect(await run("\(line) --ca-file \(certificate)", environment: token).code == .done)
        #expect(await run("\(line) --ca-file \(folder.path)/none", environment: token).code == .notFound)
    }

    @Test func aTokenDoesNotGoOverPlainHTTPToAnotherMachine() async {
        let token = ["COUNTERSIGN_TOKEN": "csa_x"]
        let (code, io) = await run("app list --server http://gateway.example", environment: token)
        #expect(code == .usage)
        #expect(io.talk.contains("--allow-plain-http"))
        for bad in ["gateway.example:s3cret", "ftp://u:s3cret@g", "https://", "https://u:s3cret@g"] {
            for command in ["app list", "self-check"] {
                let (code, io) = await run("\(command) --server \(bad)", environment: token)
                #expect(code == .usage && !io.talk.contains("s3cret"), "\(io.talk)")
            }
        }
    }

    @Test func aSavedServerMayGetItsTokenOverPlainHTTP() async {
        let line = "profile add far --allow-plain-http --server http://0.0.0.0:1"
        #expect(await run(line, input: "csa_x").code == .done)
        for target in ["--server http://0.0.0.0:1", "--server http://0.0.0.0:1/", "--profile far"] {
            #expect(await run("app list \(target)").code == .unavailable, "\(target)")
            // A flag wins over the profile.
            let (code, _) = await run("app list \(target) --ca-file \(folder.path)/none")
            #expect(code == .notFound, "\(target)")
        }
    }

    /// Arguments are visible in process lists and in the shell's history.
    @Test func noFlagTakesASecret() {
        let secret = ["secret", "password", "write-key", "private-key"]
        for command in CommandTable.all {
            for flag in command.flags where secret.contains(where: { flag.name.contains($0) }) {
                guard case .path = flag.value else {
                    Issue.record("\(command.name) --\(flag.name)")
                    continue
                }
            }
            guard command.flags.contains(.server) else { continue }
            #expect(!command.flags.contains { $0.name == "token" } || command.name == "project set")
        }
    }

    // MARK: Profiles

    @Test func profilesAreAddedUsedAndDeletedInAFileOfMode600() async throws {
        let fixture = try GatewayFixture()
        let url = "http://127.0.0.1:\(fixture.gateway.port)"
        let token = try fixture.apps.apiTokens.create(name: "laptop", scopes: ["read"]).text
        let added = await run("profile add live --server \(url)/", input: token + "\n")
        #expect(added.code == .done, "\(added.io.talk)")
        #expect(!added.io.talk.contains(token) && added.io.output.isEmpty)
        #expect(added.io.talk.contains("accepts the token as token:laptop"))
        let path = folder.path + "/config/countersign/profiles.json"
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        #expect(await run("profile add live --server \(url)", input: token).code == .conflict)
        #expect(await run("profile add other --server https://127.0.0.1:1", input: "csa_o").code == .done)
        let wrong = await run("profile add wrong --server \(url)", input: "csa_wrong")
        #expect(wrong.code == .notAuthorized)
        #expect(await run("profile list").io.output.contains("wrong") == false)
        let list = await run("profile list --json").io.output
        #expect(list.contains(#""in_use":true,"name":"live""#) && !list.contains("csa_"))
        // The first profile is in use. A flag or the environment overrides it.
        #expect(await run("profile show").io.output.contains("token:laptop"))
        let data = folder.path + "/data"
        for path in [data, folder.path + "/.local/share/countersign-data"] {
            _ = try AppDirectory(dataDirectory: path)
        }
        #expect(await run("profile show --data \(data)").io.output.contains(data))
        #expect(await run("profile show", environment: ["COUNTERSIGN_DATA": data]).io.output.contains(data))
        #expect(await run("profile show --server \(url)").io.output.contains("token:laptop"))
        let both = ["COUNTERSIGN_DATA": data, "COUNTERSIGN_SERVER": url]
        #expect(await run("profile show", environment: both).code == .usage)
        #expect(await run("profile show --server \(url) --data \(data)").code == .usage)
        #expect(await run("profile show --data \(data) --token-file x").code == .usage)
        #expect(await run("profile use", environment: ["HOME": folder.path]).code == .done)
        #expect(
            await run("profile show", environment: ["HOME": folder.path]).io.output.contains(
                "countersign-data"))
        #expect(await run("profile use none").code == .notFound)
        let used = await run("profile use live", environment: ["COUNTERSIGN_DATA": data])
        #expect(
            used.io.talk
                == "Commands work on \(url) only without $COUNTERSIGN_DATA, which takes precedence.\n")
        let set = await run("profile use live", environment: both)
        #expect(set.io.talk.hasSuffix(" $COUNTERSIGN_SERVER and $COUNTERSIGN_DATA, which take precedence.\n"))
        #expect(await run("profile use live").io.talk == "Commands work on \(url) now.\n")
        #expect(await run("profile delete live").code == .done)
        #expect(!(try String(contentsOfFile: path, encoding: .utf8)).contains(token))

        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
        let rejected = await run("profile list")
        #expect(rejected.code == .notAuthorized)
        #expect(rejected.io.talk.contains("chmod 600"))
    }
}

/// A server that responds to every request with an empty list.
private struct Lists: AdminClient {
    let location = "a list"

    func send(_ request: AdminRequest) async throws -> AdminAnswer {
        try AdminAnswer(status: 200, tag: nil, bytes: Array("[]".utf8))
    }
}
