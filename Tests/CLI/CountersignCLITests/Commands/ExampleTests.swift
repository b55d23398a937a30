import CountersignCore
import CountersignCrypto
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import GatewayModel
import GatewayStorage
import Testing

@testable import CountersignCLI

/// Runs each example of each command's help in a shell.
@Suite(.timeLimit(.minutes(5)))
struct ExampleTests {
    private let folder = TemporaryFolder()
    private let key: SigningKey
    private let writeKey: String

    init() throws {
        key = try SharedKeys.app()
        try FolderTemplate.copy(.issuingKey, to: folder.path + "/data")
        let directory = try AppDirectory(dataDirectory: folder.path + "/data")
        writeKey = try directory.createApp(id: "shop").writeKey
        _ = try directory.projects.addCustomerTokenKey(id: "old", to: "shop")
    }

    @Test(
        // `copy` needs a database: see `CopyTests`.
        arguments: CommandTable.all.filter { $0.name != "copy" }.flatMap { command in
            command.examples.map { (command.name, $0.commandLine) }
        })
    func everyExampleOfTheHelpRunsAsPrinted(command: String, commandLine: String) async throws {
        let files = try files(ofCustomer: commandLine.contains("--customer-id"))
        for (name, text) in files where commandLine.contains(name) {
            _ = try folder.write(text, to: name)
        }
        let shell = Shell(
            folder: folder.path,
            environment: [
                "COUNTERSIGN_DATA": folder.path + "/data", "COUNTERSIGN_PORT": "0",
                "XDG_STATE_HOME": folder.path + "/state",
            ])
        let gateway = GatewayProcess(executable: Program.path, dataDirectory: folder.path + "/data") { _ in }
        let needsGateway =
            [
                "send", "tail", "listen", "trigger", "doctor", "self-check", "event list", "event export",
                "enforcement preview", "dashboard",
            ].contains(command) || command.hasPrefix("consumer")
        if needsGateway { _ = try await gateway.start() }
        try await prepare(command)
        let commandLine = try await withRealID(command, commandLine, shell)
        let result =
            ["serve", "dev", "listen"].contains(command)
            ? try await shell.runUntilFirstLine(commandLine + (command == "dev" ? " --backend-port 0" : ""))
            : try await shell.run(command == "tail" ? Self.triggering(commandLine) : commandLine)
        if needsGateway { #expect(await gateway.stop() == 0) }
        #expect(result.status == 0, "\(result.talk)")
        #expect(!result.output.isEmpty || !result.talk.isEmpty)
    }

    /// Sends requests until the command ends.
    private static func triggering(_ commandLine: String) -> String {
        """
        \(commandLine) &
        while kill -0 $! 2>/dev/null; do countersign trigger 22 --keep >/dev/null || exit; done
        wait $!
        """
    }

    /// Creates the customers, users, profiles and keys that the examples need.
    private func prepare(_ command: String) async throws {
        if command.hasPrefix("customer") {
            try storeCustomer("user-1", plan: "gold", in: folder.path + "/data")
        }
        if command.hasPrefix("admin user") {
            let admins = try AppDirectory(dataDirectory: folder.path + "/data").admins
            for (name, role) in [("lee", AdminRole.owner), ("kim", .viewer)] {
                try admins.createUser(name: name, role: role, password: .ofNobody(cost: .password))
            }
        }
        if command.hasPrefix("profile") {
            let io = RecordedIO(environment: ["XDG_CONFIG_HOME": folder.path + "/config"], input: "csa_old")
            #expect(await io.run(line: "profile add old --server https://127.0.0.1:1") == .done)
        }
        if command == "token verify" {
            _ = try AppDirectory(dataDirectory: folder.path + "/data").addKey(key.publicKey.pem, to: "shop")
        }
    }

    /// Replaces the id in an example with an existing one.
    private func withRealID(_ command: String, _ commandLine: String, _ shell: Shell) async throws -> String {
        let directory = try AppDirectory(dataDirectory: folder.path + "/data")
        let id: String? =
            switch command {
            case "write-key delete": try directory.writeKeys(of: "shop").first?.id
            case "admin token delete": try directory.apiTokens.create(name: "old", scopes: ["read"]).entry.id
            case "event show": try await storedPosition(shell)
            default: nil
            }
        guard let id, let shown = commandLine.split(separator: " ").last else { return commandLine }
        return commandLine.replacing(shown, with: id)
    }

    /// Stores an event and returns its position.
    private func storedPosition(_ shell: Shell) async throws -> String? {
        try storeEvent(of: "user-1", in: folder.path + "/data")
        let list = try await shell.run("countersign event list shop --json")
        return list.output.firstMatch(of: #/"position": ?"([\w\-]+)"/#).map { String($0.output.1) }
    }

    /// Returns the contents of the files that examples name.
    private func files(ofCustomer isCustomer: Bool) throws -> [String: String] {
        let expiry = JSONValue.integer(Int64(Date().timeIntervalSince1970) + 600)
        let secret = "0123456789abcdef0123456789abcdef"
        let token =
            isCustomer
            ? try CustomerTokenKey(id: "backend", secret: secret)
                .sign(customerIDs: ["registered": "ada"], claims: ["exp": expiry])
            : try key.sign(claims: ["sub": "user-1", "exp": expiry])
        let line = JSONValue.object([
            "name": "first", "keys": [.string(key.publicKey.pem)], "token": .string(token),
            "expected_user": "user-1",
        ])
        return [
            "public.pem": key.publicKey.pem, "private.pem": key.privatePEM, "token.txt": token,
            "secret.txt": secret + "\n",
            "tokens.jsonl": String(decoding: line.bytes, as: UTF8.self) + "\n",
            "jwks.json": JWKSet(keys: [key.publicKey]).json, "gateway.json": #"{"port": 8787}"#,
            "message.json":
                #"{"id":"welcome","type":"html","content":{"html":"<p>Hello</p>"},"recipient":{"registered":"user-1"}}"#,
            "write-key.txt": writeKey + "\n", "password.txt": "correct horse battery\n",
            "api-token.txt": "csa_of-another-gateway\n",
            "consent.json": #"{"id":"newsletter"}"#,
            "access.log": """
            192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-" "-"
            192.0.2.2 - - [17/May/2015:10:05:04 +0000] "GET / HTTP/1.1" 200 1 "-" "-"

            """,
        ]
    }
}
