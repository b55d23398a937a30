import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import GatewayModel
import GatewayStorage
import Testing

@testable import CountersignCLI

/// Exit codes and messages for mistakes on the command line.
@Suite(.timeLimit(.minutes(5)))
struct MistakeTests {
    private let folder = TemporaryFolder()
    private let data: String

    init() throws {
        data = folder.path + "/data"
        try FolderTemplate.copy(to: data)
        _ = try AppDirectory(dataDirectory: data).createApp(id: "shop")
    }

    private func run(_ arguments: String..., input: String = "") async -> (code: ExitCode, io: RecordedIO) {
        let io = RecordedIO(
            environment: [
                "COUNTERSIGN_DATA": data, "HOME": folder.path, "XDG_CONFIG_HOME": folder.path + "/config",
                "COUNTERSIGN_WRITE_KEY": "k",
            ], input: input)
        return (await io.run(arguments: arguments), io)
    }

    @Test func anInvalidAppIDIsAUsageErrorThatSuggestsName() async {
        let (code, io) = await run("app", "create", "My Shop")
        #expect(code == .usage)
        #expect(io.talk.contains("not 'My Shop'"))
        #expect(io.talk.contains("--name"))
    }

    @Test func demoWithServerNeedsAWriteKeyAndASigningKey() async {
        let (code, io) = await run("demo", "--server", "http://127.0.0.1:1")
        #expect(code == .usage)
        #expect(io.talk.contains("--server, --write-key-file and --key belong together"))
    }

    /// 203.0.113.0/24 is reserved for documentation (RFC 5737), so no machine has such an address.
    @Test(arguments: [
        (
            "serve --host nosuch", ExitCode.usage,
            "host (flag --host): needs an IPv4 or IPv6 address such as 127.0.0.1", ""
        ),
        (
            "serve --host 203.0.113.1 --port 0", .unavailable, "Cannot assign requested address",
            "of this machine"
        ),
        ("serve --data notes.txt", .failed, "is a file, not a folder", "Give another folder"),
        ("serve --tls-certificate none.pem --tls-key none.pem", .failed, "cannot read none.pem", ""),
        (
            "serve --database postgresql://u@127.0.0.1:1/d --database-password-file none", .failed,
            "cannot read the database's password in none", ""
        ),
    ])
    func aFailedStartNamesTheRemedy(
        line: String, expected: ExitCode, reason: String, hint: String
    ) async throws {
        _ = try folder.write("mine", to: "notes.txt")
        let shell = Shell(folder: folder.path, environment: ["COUNTERSIGN_DATA": data])
        let result = try await shell.run("countersign " + line)
        #expect(result.status == expected.rawValue, "\(result.talk)")
        let lines = result.talk.split(separator: "\n")
        #expect(lines.first?.contains(reason) == true, "\(result.talk)")
        #expect(hint.isEmpty == (lines.count == 1), "\(result.talk)")
        #expect(hint.isEmpty || lines.dropFirst().joined().contains(hint), "\(result.talk)")
    }

    @Test func aPortInUseIsReported() async throws {
        let fixture = try GatewayFixture()
        let shell = Shell(folder: folder.path, environment: ["COUNTERSIGN_DATA": data])
        let result = try await shell.run("countersign serve --port \(fixture.gateway.port)")
        #expect(result.status == ExitCode.unavailable.rawValue)
        #expect(result.talk.contains("Stop the other program, or choose another port."), "\(result.talk)")
    }

    @Test func theWebhookNamedAlertsIsExplained() async throws {
        let test = await run("webhook", "test", "shop", "alerts")
        #expect(test.code == .notFound)
        #expect(test.io.talk.contains("countersign webhook alerts set"), "\(test.io.talk)")
        for command in ["show", "delete", "pause"] {
            let (code, io) = await run("webhook", command, "shop", "alerts")
            #expect(code == .usage)
            #expect(io.talk.contains("`countersign webhook alerts`"), "\(io.talk)")
        }
    }

    @Test func aTimeInThePastIsReportedWithItsFlag() async {
        let (code, io) = await run("enforcement", "set", "shop", "required", "--at", "2020-01-01T00:00:00Z")
        #expect(code == .usage)
        #expect(io.talk.contains("--at is in the past"))
        #expect(await run("enforcement", "set", "shop", "required", "--at", "2h", "--yes").code == .done)
    }

    @Test(arguments: [
        "https://127.0.0.1/jwks.json", "https://[::1]/jwks.json", "https://10.0.0.1/j", "https://localhost/j",
    ])
    func aKeySetAtAPrivateAddressNeedsAllowPrivate(url: String) async {
        let (code, io) = await run("key", "follow", "shop", url)
        #expect(code == .usage)
        #expect(io.talk.contains("the address is private"))
        #expect(io.talk.contains("--allow-private"))
        #expect(await run("key", "follow", "shop", url, "--allow-private").code == .done)
    }

    /// The API returns a policy's times as numbers that may have a fraction.
    @Test func policyValuesArePrintedWithTheirUnits() async {
        #expect(await run("policy", "set", "shop", "--leeway", "2m", "--max-lifetime", "1h").code == .done)
        let shown = await run("policy", "show", "shop").io.output
        #expect(shown.contains("leeway            2m\n"), "\(shown)")
        #expect(shown.contains("longest lifetime  1h\n"))
        #expect(await run("app", "show", "shop").io.output.contains("leeway       2m\n"))
        #expect(await run("policy", "set", "shop", "--max-lifetime", "0").code == .done)
        #expect(await run("policy", "show", "shop").io.output.contains("longest lifetime  any\n"))
    }

    @Test func anAbsoluteLifetimeBelowTheRefreshLifetimeIsReported() async {
        let (code, io) = await run("app", "tokens", "shop", "--absolute-seconds", "2h")
        #expect(code == .done)
        #expect(io.talk.contains("Every session ends 2h after it was opened"))
        #expect(await run("app", "tokens", "shop", "--refresh-seconds", "2h").io.talk.isEmpty)
    }

    @Test func aKeySetAtAPublicAddressIsFollowedWithoutAWarning() async {
        let (code, io) = await run("key", "follow", "shop", "https://id.example.com/j")
        #expect(code == .done && io.talk.split(separator: "\n").count == 1, "\(io.talk)")
    }

    @Test func aTokenOfAnUnknownKeyNamesItsKeySource() async throws {
        _ = await run("key", "follow", "shop", "https://id.example.com/j")
        let token = try SigningKey.generate(.rs256).sign(claims: ["sub": "u", "exp": 4_000_000_000])
        let file = try folder.write(token, to: "token.txt")
        let io = await run("token", "verify", file, "--app", "shop").io
        #expect(io.output.contains("rejected: 27"))
        #expect(io.talk.contains("shop follows https://id.example.com/j. The gateway fetches the keys"))
    }

    @Test func aFileOfAnUnknownKindIsReported() async throws {
        let junk = try folder.write("hello, this is junk\n", to: "junk.txt")
        let (code, io) = await run("send", junk)
        #expect(code == .failed)
        #expect(io.talk.contains("is not NDJSON, CSV, an access log or a GPX track"))
        #expect(io.talk.contains("'hello, this is junk'"))
        #expect(!io.talk.contains("is skipped"))
    }

    @Test func emptyStandardInputIsReported() async {
        #expect(await run("send").io.talk.contains("standard input is empty"))
    }

    @Test(arguments: [
        ["event", "export", "shop", "--user", ""], ["event", "list", "shop", "--user="],
        ["session", "list", "shop", "--user", ""], ["audit", "list", "--app", ""],
        ["customer", "show", "shop", ""], ["key", "delete", "shop", ""], ["app", "delete", ""],
        ["webhook", "create", "shop", "https://shop.example/in", "--user", ""],
        ["app", "create", "blog", "--name", ""],
    ])
    func emptyArgumentsAreUsageErrors(line: [String]) async {
        let io = RecordedIO(environment: ["COUNTERSIGN_DATA": data, "HOME": folder.path])
        #expect(await io.run(arguments: line) == .usage)
        #expect(io.talk.contains("is empty"), "\(io.talk)")
        #expect(io.output.isEmpty)
    }

    @Test(arguments: [
        ("event list shop --since 1h --until 2h", "--since is not before --until"),
        ("event list shop --verdict verified --unverified", "either --unverified or --verdict"),
        ("event export shop --follow --until 1h", "--follow has no end"),
        ("app origins shop --none https://a.example", "--none allows no page"),
        ("policy set shop", "nothing to change was given"),
        ("project set shop", "nothing to change was given"),
        ("policy set shop --algorithms RS256,RS256", "names one twice"),
        ("policy set shop --typ JOSE", "--typ takes JWT, at+jwt, not 'JOSE'"),
        ("project set shop --customer-tokens off --allow-private", "go with --webhook"),
        ("app create -- -x", "must not begin with -"),
    ])
    func contradictoryAndEmptyCommandsAreUsageErrors(line: String, said: String) async {
        let io = RecordedIO(environment: ["COUNTERSIGN_DATA": data, "HOME": folder.path])
        #expect(await io.run(line: line) == .usage)
        #expect(io.talk.contains(said), "\(io.talk)")
    }

    @Test func adminResetNeedsAnExistingDataDirectory() async throws {
        let (code, io) = await run("admin", "reset", "--data", folder.path + "/nowhere")
        #expect(code == .notFound)
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/nowhere"))
        #expect(io.output.isEmpty)
        let link = await run("admin", "reset", "--gateway", "https://gateway.example").io.output
        #expect(link.hasPrefix("https://gateway.example/admin/#/setup/"))
        let elsewhere = RecordedIO(environment: [
            "COUNTERSIGN_SERVER": "https://gateway.example", "COUNTERSIGN_TOKEN": "csa_x",
            "HOME": folder.path,
        ])
        #expect(await elsewhere.run("admin", "reset") == .usage)
    }

    @Test func followedKeySetsAreListedBesideTheAppsKeys() async {
        #expect(await run("key", "follow", "shop", "https://id.example.com/j").code == .done)
        let (_, io) = await run("key", "list", "shop")
        #expect(io.talk.contains("shop has no key of its own."))
        #expect(
            io.output.contains(
                "shop follows https://id.example.com/j. The gateway fetches the keys; see the result"))
        #expect(await run("key", "list", "shop", "--json").io.output == "[]\n")
    }

    @Test func enforcementWithoutAKeyIsWarnedAboutUnlessASetIsFollowed() async {
        let warning = "shop has no key, so every token is rejected. Next: countersign key add shop"
        #expect(await run("enforcement", "set", "shop", "required", "--yes").io.talk.contains(warning))
        #expect(await run("key", "follow", "shop", "https://id.example.com/j").code == .done)
        #expect(await run("enforcement", "set", "shop", "disabled", "--yes").code == .done)
        let (code, io) = await run("enforcement", "set", "shop", "required", "--yes")
        #expect(code == .done && !(io.output + io.talk).contains(warning), "\(io.talk)")
    }

    @Test func aProfileAndADataDirectoryTogetherAreAUsageError() async {
        #expect(await run("app", "list", "--profile", "live", "--data", data).code == .usage)
        #expect(await run("app", "list", "--profile", "live").code == .notFound)
    }

    @Test func outputFormatsAreJSONJSONLinesAndTable() async throws {
        _ = try AppDirectory(dataDirectory: data).createApp(id: "blog")
        #expect(await run("app", "list", "-o", "json").io.output.hasPrefix("[{"))
        let lines = await run("-o=jsonl", "app", "list").io.output.split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines.allSatisfy { $0.hasPrefix("{") && $0.hasSuffix("}") })
        #expect(await run("app", "list", "-ojsonl").io.output.split(separator: "\n") == lines)
        #expect(await run("app", "list", "--output", "table").io.output.hasPrefix("APP"))
    }

    @Test func anAPITokenExpiresAfter90DaysByDefault() async {
        #expect(await run("admin", "token", "create").io.talk.contains("; it expires at 20"))
        #expect(await run("admin", "token", "create", "--days", "0").io.talk.contains("; it never expires"))
        let tokens = JSONValue(parsing: Array(await run("admin", "token", "list", "--json").io.output.utf8))
        let ends = tokens?.elements.map(\.["expires_ms"]) ?? []
        let days = ends.compactMap(\.integer).map { Double($0 - Milliseconds(Date()).count) / 86_400_000 }
        #expect(ends.contains(.null) && days.count == 1 && days.allSatisfy { (89.9...90).contains($0) })
    }

    @Test func anAppIsShownWithItsPolicyAndKeys() async throws {
        let key = try AppDirectory(dataDirectory: data).addKey(try SharedKeys.app().publicKey.pem, to: "shop")
        let shown = JSONValue(parsing: Array(await run("app", "show", "shop", "--json").io.output.utf8))
        #expect(shown?["policy"]["algorithms"] == ["RS256"] && shown?["policy"]["leeway_seconds"] != .null)
        #expect(shown?["verification_keys"].elements.map(\.["id"]) == [.string(key.id)])
    }

    @Test func changesAreListedSinceATime() async {
        #expect(await run("audit", "list", "--since", "1h").io.output.hasPrefix("SEQ"))
        #expect(await run("audit", "list", "--since", "2999-01-01T00:00:00Z").io.talk == "No entry found.\n")
    }

    @Test func configPrintShowsWhereTheDataDirectoryWasSet() async {
        let output = await run("config", "print", "--origin").io.output
        #expect(output.contains(#/(?m)^data .* environment COUNTERSIGN_DATA$/#), "\(output)")
        #expect(
            await run("config", "print", "--data", data, "--origin", "--json").io.output.contains(
                "flag --data"))
    }

    @Test(arguments: [
        ("token verify --algorithm RS256", "did you mean --alg?"),
        ("policy set shop --alg RS256", "did you mean --algorithms?"), ("trigger list", "22 EXPIRED, "),
        ("webhook list shop", "webhook create shop URL"), ("consumer list shop", "consumer create shop NAME"),
    ])
    func messagesNameTheNextCommand(line: String, expected: String) async throws {
        try storeEvent(of: "u", in: data)
        let io = RecordedIO(environment: ["COUNTERSIGN_DATA": data])
        _ = await io.run(line: line)
        #expect(io.talk.contains(expected), "\(io.talk)")
    }
}
