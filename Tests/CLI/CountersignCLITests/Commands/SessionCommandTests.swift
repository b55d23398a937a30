import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayIngest
import GatewayStorage
import Testing

@testable import CountersignCLI

@Suite(.timeLimit(.minutes(5)))
struct SessionCommandTests {
    private let folder = TemporaryFolder()
    private let data: String

    init() async throws {
        data = folder.path + "/data"
        try FolderTemplate.copy(to: data)
        #expect(await RecordedIO().run("app", "create", "shop", "--data", data) == .done)
    }

    private func run(_ words: String...) async -> (code: ExitCode, output: String) {
        let io = RecordedIO()
        let code = await io.run(arguments: words + ["--data", data])
        return (code, io.output)
    }

    @Test func tokenRulesAreSetAndShown() async throws {
        #expect(await run("app", "tokens", "shop").output.contains("registration  closed"))
        let set = await run("app", "tokens", "shop", "--registration", "open", "--access-seconds", "600")
        #expect(
            set.output
                == "registration  open\naccess        10m\nrefresh       30d\nreuse         1m\nabsolute      90d\n"
        )
        #expect(await run("app", "tokens", "shop", "--access-seconds", "0").code == .usage)
        #expect(await run("app", "tokens", "none-such").code == .notFound)
        let rules = try AppDirectory(dataDirectory: data).tokenRules(of: "shop")
        #expect(rules.allowsRegistration)
        #expect(rules.accessSeconds == 600)
    }

    @Test func aSecretIsShownOnceOrWrittenToAFileThatOnlyItsOwnerReads() async throws {
        let shown = await run("client", "create", "shop", "--name", "warehouse")
        let lines = shown.output.split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines.last?.hasPrefix("css_") == true)
        let path = folder.path + "/secret"
        let hidden = await run("client", "create", "shop", "--secret-file", path, "--grant", "refresh_token")
        #expect(hidden.code == .done)
        #expect(!hidden.output.contains("css_"))
        #expect(try String(contentsOfFile: path, encoding: .utf8).hasPrefix("css_"))
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        #expect(await run("client", "create", "shop", "--secret-file", path).code == .conflict)
        // A failed command leaves no file that would block the next attempt.
        #expect(await run("client", "create", "nobody", "--secret-file", path + "2").code == .notFound)
        #expect(!FileManager.default.fileExists(atPath: path + "2"))
        let list = await run("client", "list", "shop", "--json")
        #expect(!list.output.contains("css_"))
        let clients = try AppDirectory(dataDirectory: data).clients.all(of: "shop")
        #expect(clients.map(\.grants) == [[.clientCredentials, .refreshToken], [.refreshToken]])
        #expect(await run("client", "delete", "shop", clients[0].id).code == .done)
        #expect(await run("client", "delete", "shop", clients[0].id).code == .notFound)
    }

    @Test func sessionsAreOpenedListedAndEnded() async throws {
        let opened = await run("session", "create", "shop", "--user", "user-1")
        #expect(opened.output.hasPrefix("csr_"))
        _ = await run("session", "create", "shop", "--user", "user-2")
        let directory = try TokenFamilyDirectory(dataDirectory: data)
        let family = try #require(try directory.families(of: "shop", subject: "user-1").first)
        #expect(await run("session", "list", "shop").output.split(separator: "\n").count == 3)
        #expect(await run("session", "revoke", "shop", family.id).code == .done)
        #expect(await run("session", "revoke", "shop", family.id).code == .notFound)
        #expect(await run("session", "revoke", "shop", "--user", "user-2").code == .done)
        #expect(await run("session", "list", "shop").output.contains("  revoked_operator  "))
        #expect(await run("session", "list", "shop", "--json").output.contains(#""reason":"operator""#))
        #expect(try directory.families(of: "shop").allSatisfy { $0.revocation == .operator })
        for words in [
            ["session", "create", "shop"], ["session", "revoke", "shop"],
            ["session", "revoke", "shop", "x", "--user", "a"],
        ] {
            let io = RecordedIO()
            #expect(await io.run(arguments: words + ["--data", data]) == .usage)
        }
        #expect(await run("session", "create", "shop", "--user", "device:1").code == .usage)
        #expect(await run("session", "create", "shop", "--user", "u", "--client", "c").code == .notFound)
    }

    @Test func signingKeysAreListedAndRotated() async throws {
        #expect(await run("signing-key", "list").output.isEmpty)
        let first = await run("signing-key", "rotate", "--compromised")
        #expect(first.output.hasSuffix("  signs\n"))
        #expect(await run("signing-key", "rotate").output.contains("  signs from "))
        #expect(await run("signing-key", "list").output.split(separator: "\n").count == 2)
    }
}
