import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import GatewayStorage
import Testing

@testable import CountersignCLI

/// Apps and files left behind by `trigger`.
@Suite(.timeLimit(.minutes(5)))
struct TriggerTests {
    private let folder = TemporaryFolder()
    private let data: String
    private let gateway: GatewayProcess
    private let shell: Shell

    init() throws {
        data = folder.path + "/data"
        try FolderTemplate.copy(.issuingKey, to: data)
        gateway = GatewayProcess(executable: Program.path, dataDirectory: data) { _ in }
        shell = Shell(folder: folder.path, environment: ["COUNTERSIGN_DATA": data])
    }

    /// The existing and the deleted apps.
    private func apps() throws -> (there: [String], deleted: [String]) {
        let directory = try AppDirectory(dataDirectory: data)
        return (try directory.apps().map(\.id), try directory.deletions().map(\.appID))
    }

    private func files() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: data).filter { $0.hasSuffix(".json") }
    }

    @Test func triggerDeletesTheAppsItCreated() async throws {
        _ = try await gateway.start()
        let result = try await shell.run("countersign trigger 22 && countersign trigger 26")
        #expect(result.status == 0, "\(result.talk)")
        #expect(result.output == "ok   401 22 EXPIRED\nok   401 26 MISSING_TOKEN\n")
        #expect(try apps().there.isEmpty && apps().deleted.count == 2)
        #expect(try files().isEmpty)
        #expect(await gateway.stop() == 0)
    }

    @Test func triggerDeletesItsAppWhenTheGatewayIsUnreachable() async throws {
        _ = try await gateway.start()
        let result = try await shell.run("countersign trigger 22 --gateway http://127.0.0.1:1")
        #expect(result.status == ExitCode.unavailable.rawValue)
        #expect(try apps().there.isEmpty && apps().deleted.count == 1)
        #expect(await gateway.stop() == 0)
    }

    @Test func triggerDeletesItsAppAfterCtrlC() async throws {
        _ = try await gateway.start()
        let result = try await shell.run(
            """
            mkfifo said
            countersign trigger all >said & trigger=$!
            exec 3<said
            read -r line <&3
            kill -INT $trigger
            cat <&3 >/dev/null
            wait $trigger
            """)
        #expect(result.status == ExitCode.interrupted.rawValue, "\(result.talk)")
        #expect(try apps().there.isEmpty && !apps().deleted.isEmpty)
        #expect(await gateway.stop() == 0)
    }

    @Test func triggerCreatesAndDeletesAppsOnARemoteGateway() async throws {
        let url = try await gateway.start().absoluteString
        let tokens = try AppDirectory(dataDirectory: data).apiTokens
        func run(_ verdict: String, _ scope: String) async -> (ExitCode, RecordedIO) {
            let token = (try? tokens.create(name: "t", scopes: [scope]).text) ?? ""
            let io = RecordedIO(environment: ["COUNTERSIGN_TOKEN": token])
            return (await io.run("trigger", verdict, "--server", url), io)
        }
        let (code, io) = await run("all", "admin")
        #expect(code == .done, "\(io.talk)")
        #expect(io.output.contains(" REVOKED") && !io.output.contains("FAIL"))
        #expect(!io.output.contains("PUBLIC_KEY_ERROR"))
        #expect(try apps().there.isEmpty && apps().deleted.count == 1)
        // Without permission to delete, no app is created.
        #expect(await run("22", "write").0 == .notAuthorized)
        #expect(await run("25", "admin").0 == .usage)
        #expect(try apps().there.isEmpty && apps().deleted.count == 1)
        #expect(await gateway.stop() == 0)
    }

    @Test func anUnknownCodeIsRejectedBeforeAnAppIsCreated() async throws {
        let apps = TriggerApps(Untouched(), keptIn: nil)
        let trigger = Trigger(apps, url: try #require(URL(string: "http://127.0.0.1:1")))
        let error = await #expect(throws: CommandError.self) {
            _ = try await trigger.send(AuthErrorCode(rawValue: 999))
        }
        #expect(error?.code == .usage)
    }

    @Test func appsKeptByTriggerAreReused() async throws {
        _ = try await gateway.start()
        let result = try await shell.run("countersign trigger 22 --keep && countersign trigger 21 --keep")
        #expect(result.status == 0, "\(result.talk)")
        #expect(try apps().there == ["trigger"] && apps().deleted.isEmpty)
        #expect(try files() == ["trigger.json"])
        #expect(await gateway.stop() == 0)
    }

    /// A token signed with another algorithm would be rejected with a different code than 27.
    @Test func triggerUsesTheKeyAlgorithmOfAKeptApp() async throws {
        let key = try SharedKeys.app()
        let directory = try AppDirectory(dataDirectory: data)
        let writeKey = try directory.createApp(id: "trigger").writeKey
        _ = try directory.addKey(key.publicKey.pem, description: "", to: "trigger")
        try directory.setEnforcement(.required, for: "trigger")
        try TriggerApp(id: "trigger", writeKey: writeKey, key: key).keep(in: data + "/trigger.json")
        _ = try await gateway.start()
        let result = try await shell.run("countersign trigger 27 --keep")
        #expect(result.status == 0, "\(result.talk)")
        #expect(result.output.contains("27"), "\(result.output)")
        #expect(await gateway.stop() == 0)
    }
}

/// An admin API that must not be called.
private struct Untouched: AdminClient {
    let location = "nowhere"

    func send(_ request: AdminRequest) async throws -> AdminAnswer {
        Issue.record("\(request.method) \(request.encodedPath)")
        throw CommandError(.failed, "unexpected")
    }
}
