import Foundation
import GatewayModel
import Testing

@testable import CountersignCLI

@Suite(.timeLimit(.minutes(5)))
struct SettingReaderTests {
    /// The value and origin of a setting in `config print --origin`.
    private func printed(
        _ name: String, _ arguments: [String] = [], environment: [String: String] = [:]
    ) async -> String? {
        let recorded = RecordedIO(environment: environment)
        let code = await recorded.run(arguments: ["config", "print", "--origin"] + arguments)
        guard code == .done else { return recorded.talk }
        return recorded.output.split(separator: "\n").first { $0.hasPrefix(name + " ") }
            .map { $0.split(separator: " ").dropFirst().joined(separator: " ") }
    }

    @Test func theFlagWinsThenTheEnvironmentThenTheFileThenTheDefault() async throws {
        let folder = TemporaryFolder()
        let file = try folder.write(
            #"{"port": 1003, "trusted-proxies": ["10.0.0.0/8", "::1"]}"#, to: "c.json")
        let environment = ["COUNTERSIGN_PORT": "1002", "COUNTERSIGN_CONFIG": file]
        #expect(await printed("port", ["--port", "1001"], environment: environment) == "1001 flag --port")
        #expect(await printed("port", environment: environment) == "1002 environment COUNTERSIGN_PORT")
        #expect(await printed("port", ["--config", file]) == "1003 file \(file)")
        #expect(await printed("port") == "8787 default")
        #expect(await printed("trusted-proxies", ["--config", file]) == "10.0.0.0/8,::1 file \(file)")
    }

    @Test func aPipeIsReadAsAFile() async throws {
        let secret = try FilledPipe("Authorization: Bearer x\n")
        let file = try FilledPipe(
            #"{"port": 1003, "otlp-endpoint": "http://127.0.0.1:4318", "otlp-headers-file": "\#(secret.path)"}"#
        )
        #expect(await printed("port", ["--config", file.path]) == "1003 file \(file.path)")
    }

    @Test func aConfigurationFileOver1MiBIsRejected() async throws {
        #expect(
            await printed("port", ["--config", "/dev/zero"])?.contains("/dev/zero is larger than 1MiB")
                == true)
    }

    @Test(arguments: ["host", "admin-host"])
    func aHostNameIsNotAListenAddress(setting: String) async throws {
        let recorded = RecordedIO()
        #expect(await recorded.run("config", "print", "--" + setting, "nosuch") == .usage)
        #expect(recorded.talk.contains("\(setting) (flag --\(setting)): needs an IPv4 or IPv6 address"))
        for address in ["0.0.0.0", "::", "::1", "192.0.2.7"] {
            #expect(await printed(setting, ["--" + setting, address])?.hasPrefix(address + " ") == true)
        }
    }

    @Test func timesAndSizesAreShownAsTheyAreTyped() async {
        #expect(await printed("disk-floor-bytes") == "256MiB default")
        #expect(await printed("body-bytes", ["--body-bytes", "1000000"]) == "1MB flag --body-bytes")
        #expect(await printed("backup-hours", ["--backup-hours", "36"]) == "36h flag --backup-hours")
        #expect(await printed("idle-seconds") == "30s default")
        #expect(await printed("drain-seconds") == "0 default")
        #expect(await printed("port") == "8787 default")
        let help = RecordedIO()
        #expect(await help.run("token", "create", "--help") == .done)
        let text = help.output.replacing(#/\s+/#, with: " ")
        #expect(text.contains("(default: 1h; in seconds, or as 90s, 10m, 2h or 7d)"))
    }

    @Test func aWildcardAddressIsShownAsLoopback() {
        var configuration = GatewayConfiguration(dataDirectory: "d")
        for (host, shown) in [("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("192.0.2.7", "192.0.2.7")] {
            configuration.host = host
            #expect(configuration.url(port: 8787) == "http://\(shown):8787")
            #expect(configuration.adminURL(port: 8788) == "http://\(shown):8788")
        }
    }

    /// A shell that started the gateway with `&` reads further input from the same terminal.
    @Test func inTheBackgroundOnlyErrorsAreLogged() throws {
        func level(_ io: RecordedIO, origin: SettingReader.Origin = .standard) -> (LogLevel, Bool) {
            var configuration = GatewayConfiguration(dataDirectory: "d")
            configuration.logLevel = .info
            configuration.settings = [
                GatewaySetting(name: "log-level", value: "info", origin: origin.text, help: "")
            ]
            let isQuiet = ServeCommand.adaptLog(of: &configuration, to: io.io)
            return (configuration.logLevel, isQuiet)
        }
        let background = RecordedIO(isInteractive: true, isInBackground: true)
        #expect(level(background) == (.error, true))
        #expect(level(background, origin: .flag("log-level")) == (.info, false))
        #expect(level(RecordedIO(isInteractive: true)) == (.info, false))
        #expect(level(RecordedIO(isInBackground: true)) == (.info, false))
    }

    @Test(arguments: [
        (#"{"prot": 1}"#, "did you mean port?"), (#"{"port": "x"}"#, "whole number"),
        (#"{"port": 70000}"#, "0 to 65535"), (#"{"port": 1, "port": 2}"#, "has a setting twice"),
        ("\u{FEFF}{}", "must be UTF-8 without a byte order mark"), ("", "is empty"),
        (#"{"port": true}"#, "a text, a whole number or a list"), ("[1]", "not a JSON object"),
        (#"{"log-level": "loud"}"#, "off, error, warning, info, debug"), ("{", "not JSON"),
        (#"{"trusted-proxies": "10.0.0.1/8"}"#, "10.0.0.0/8,192.0.2.7"),
        (#"{"tls-certificate": "a.pem"}"#, "both tls-certificate and tls-key"),
        (#"{"tls-certificate": "a.pem, b.pem", "tls-key": "a.key"}"#, "same number of files"),
        (#"{"tls-certificate": "a.pem", "tls-key": "a.key,b.key"}"#, "same number of files"),
        (#"{"otlp-ca-file": "a.pem"}"#, "has no effect without the setting otlp-endpoint"),
        (#"{"token-key-file": "a"}"#, "has no effect without the setting database"),
        (#"{"public-url": "https://u:s3cret@collect.example"}"#, "without a user or a path"),
    ])
    func anInvalidConfigurationFileIsRejectedWithItsFault(text: String, expected: String) async throws {
        let folder = TemporaryFolder()
        let file = try folder.write(text, to: "c.json")
        let recorded = RecordedIO()
        #expect(await recorded.run("config", "print", "--config", file) == .usage)
        #expect(recorded.talk.contains(expected) && !recorded.talk.contains("s3cret"), "\(recorded.talk)")
    }

    @Test func aMisspelledEnvironmentVariableIsAUsageError() async {
        let slip = RecordedIO(environment: ["COUNTERSIGN_LOGLEVEL": "info"])
        #expect(await slip.run("config", "print") == .usage)
        #expect(slip.talk.contains("did you mean COUNTERSIGN_LOG_LEVEL?"))
        let other = RecordedIO(environment: ["COUNTERSIGN_SOMETHING_ELSE_ENTIRELY": "x"])
        #expect(await other.run("config", "print") == .done)
    }

    @Test func aSecretComesFromAFileAndIsNeverShown() async throws {
        let folder = TemporaryFolder()
        let secret = try folder.write("s3cret\n", to: "secret")
        let environment = ["COUNTERSIGN_TLS_KEY_PASSWORD_FILE": secret]
        let shown = await printed(
            "tls-key-password", ["--tls-certificate", "c", "--tls-key", "k"], environment: environment)
        #expect(shown == "******** environment COUNTERSIGN_TLS_KEY_PASSWORD_FILE")
        let recorded = RecordedIO(environment: environment)
        #expect(
            await recorded.run(
                "config", "print", "--json", "--tls-certificate", "c", "--tls-key", "k") == .done)
        #expect(!recorded.output.contains("s3cret"))
        #expect(await recorded.run("serve", "--tls-key-password", "s3cret") == .usage)
    }

    @Test func everySettingReachesTheConfiguration() throws {
        // Each setting gets a value other than its default, which must change the configuration.
        for setting in SettingTable.all {
            var before = GatewayConfiguration(dataDirectory: "d")
            // Files that require a database.
            if ["database-password-file", "token-key-file"].contains(setting.name) {
                before.database = try Setting.database("host=db dbname=d")
            }
            // Settings that require a collector.
            if setting.name.hasPrefix("otlp-"), setting.name != "otlp-endpoint" {
                before.telemetry = TelemetryRules(endpoint: "http://192.0.2.1")
            }
            var after = before
            switch setting.value {
            case _ where setting.name == "database": try setting.apply(&after, "postgresql://u@db/d")
            case .integer(_, let range), .duration(_, let range), .size(let range):
                try setting.apply(
                    &after,
                    String(
                        setting.defaultValue == "\(range.upperBound)" ? range.lowerBound : range.upperBound))
            case .choice(let words): try setting.apply(&after, words.first { $0 != "off" } ?? "")
            case .text("LINES"): try setting.apply(&after, "Authorization: Bearer x")
            case .text("RATIO"): try setting.apply(&after, "0.5")
            case .text("URL"): try setting.apply(&after, "https://192.0.2.1")
            default: try setting.apply(&after, "192.0.2.1")
            }
            // The description of a database address omits its files.
            #expect("\(before)" != "\(after)" || before.database != after.database, "\(setting.name)")
        }
    }

    @Test(arguments: [
        "collect.example", "ftp://a.example", "https://", "https://a.example/", "https://a.example/x",
        "https://u@a.example", "https://a.example?x",
    ])
    func aPublicURLHasASchemeAndAHostOnly(text: String) {
        #expect(throws: Setting.Problem.self) { try Setting.origin(text) }
    }

    @Test func headerFieldsOfACollectorAreParsedAndNotQuotedInErrors() throws {
        let fields = try Setting.headerFields("Authorization: Bearer a:b\r\nX-Tenant:  t \n\n")
        #expect(fields.map(\.name) == ["Authorization", "X-Tenant"])
        #expect(fields.map(\.value) == ["Bearer a:b", "t"])
        for text in ["s3cret", "A b: s3cret", "A: ", ": s3cret", "A: s3cr\u{e9}t", "A: s3\tcret"] {
            do throws(Setting.Problem) {
                _ = try Setting.headerFields(text)
                Issue.record("\(text) was accepted")
            } catch {
                #expect(!error.text.contains("s3"))
            }
        }
    }

    @Test(arguments: ["http://a.example:4318", "https://a.example/otlp/", "http://[::1]:4318/"])
    func aCollectorMayHaveAPath(text: String) throws {
        #expect(try Setting.endpoint(text) == (text.hasSuffix("/") ? String(text.dropLast()) : text))
    }

    @Test(arguments: [
        "a.example:4318", "ftp://a.example", "https://u:s3cret@a.example", "https://a.example?s3cret",
    ])
    func aCollectorsAddressHoldsNoSecret(text: String) {
        do throws(Setting.Problem) {
            _ = try Setting.endpoint(text)
            Issue.record("\(text) was accepted")
        } catch {
            #expect(!error.text.contains("s3cret"))
        }
    }

    @Test func settingDefaultsEqualTheDefaultsOfTheConfiguration() throws {
        var configuration = GatewayConfiguration(dataDirectory: "d")
        configuration.logLevel = .info
        var applied = GatewayConfiguration(dataDirectory: "d")
        for setting in SettingTable.all {
            if let value = setting.defaultValue { try setting.apply(&applied, value) }
        }
        #expect("\(applied)" == "\(configuration)")
    }

    @Test func namesAreUniqueAndTheReferenceIsCurrent() throws {
        #expect(Set(SettingTable.all.map(\.name)).count == SettingTable.all.count)
        let file = Package.folder.appendingPathComponent("docs/reference/settings.md")
        if ProcessInfo.processInfo.environment["COUNTERSIGN_ACCEPT"] == "1" {
            try Data(SettingReference.markdown.utf8).write(to: file)
        }
        #expect(try String(contentsOf: file, encoding: .utf8) == SettingReference.markdown)
    }
}
