import CountersignCore
import CountersignCrypto
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import GatewayStorage
import Testing

@testable import CountersignCLI

/// Commands that use a data directory, such as `app` and `key`.
@Suite(.timeLimit(.minutes(5)))
struct GatewayCommandTests {
    private let folder = TemporaryFolder()
    private var environment: [String: String] { ["COUNTERSIGN_DATA": folder.path + "/data"] }

    private func run(_ line: String, input: String = "") async -> (ExitCode, RecordedIO) {
        let recorded = RecordedIO(environment: environment, input: input)
        return (await recorded.run(line: line), recorded)
    }

    @Test func appCreatePrintsOnlyTheWriteKeyToStandardOutput() async throws {
        let (code, recorded) = await run("app create shop --name Shop")
        #expect(code == .done)
        #expect(recorded.output.hasPrefix("wk_"))
        #expect(recorded.output.split(separator: "\n").count == 1)
        #expect(!recorded.talk.contains("wk_"))
        let app = try AppDirectory(dataDirectory: folder.path + "/data").app(id: "shop")
        #expect(app.name == "Shop")
        #expect(app.enforcement == .disabled)
    }

    @Test func onlyWriteKeyListShowsAWriteKeyAgain() async {
        let key = await run("app create shop").1.output.trimmingCharacters(in: .newlines)
        for line in ["write-key list shop", "write-key list shop --json"] {
            #expect(await run(line).1.output.contains(key), "\(line)")
        }
        // Only a running gateway knows whether the key was used.
        #expect(await run("write-key list shop").1.output.contains("unknown here"))
        for line in ["app list", "app show shop", "app list --json", "app show shop --json"] {
            let (code, recorded) = await run(line)
            #expect(code == .done)
            #expect(recorded.output.contains("shop"))
            #expect(!recorded.output.contains(key) && !recorded.talk.contains(key))
        }
    }

    @Test(arguments: [
        ("app create shop", ExitCode.conflict), ("app create Shop", .usage), ("app show nothing", .notFound),
        ("key list nothing", .notFound), ("key add shop /no/such/file", .notFound),
        ("key add nothing -", .notFound),
        ("enforcement show nothing", .notFound), ("enforcement set nothing required", .notFound),
        ("enforcement set shop strict", .usage), ("app create shop --data /proc/none", .failed),
    ])
    func eachFailureHasItsExitCode(line: String, expected: ExitCode) async {
        _ = await run("app create shop")
        let (code, recorded) = await run(line)
        #expect(code == expected)
        #expect(recorded.output.isEmpty)
        #expect(recorded.talk.hasPrefix("countersign: "))
    }

    @Test(arguments: ["disabled", "optional", "required"])
    func enforcementIsSetAndShown(state: String) async {
        _ = await run("app create shop")
        #expect(await run("enforcement set shop \(state) --yes").0 == .done)
        #expect(await run("enforcement show shop").1.output == "\(state)\n")
        #expect(
            await run("enforcement show shop --json").1.output
                == #"{"auto_return":null,"ramp_percent":100,"returned":null,"scheduled":null,"state":""#
                + state + "\"}\n")
    }

    @Test func enforcementHasARampAnAutomaticReturnAndASchedule() async {
        func shown() async -> String {
            await run("enforcement show shop --json").1.output
        }
        _ = await run("app create shop")
        #expect(await run("enforcement set shop required --percent 10 --return-above 5 --yes").0 == .done)
        let steps =
            #"{"auto_return":{"minimum_requests":100,"rejected_percent":5,"window_minutes":5},"ramp_percent":10,"#
        #expect(await shown() == steps + #""returned":null,"scheduled":null,"state":"required"}"# + "\n")
        #expect(await run("app show shop").1.output.contains("required for 10 % of users\n"))
        #expect(await run("app show shop --json").1.output.contains(#""ramp_percent":10"#))
        // Scheduling a change keeps the present enforcement and the automatic return.
        #expect(
            await run("enforcement set shop required --at 2090-01-01T00:00:00Z --percent 50 --yes").0 == .done
        )
        let later = #"{"at_ms":3786912000000,"ramp_percent":50,"state":"required"}"#
        #expect(
            await shown() == steps + #""returned":null,"scheduled":\#(later),"state":"required"}"# + "\n")
        let said = await run("enforcement show shop").1
        #expect(said.talk.isEmpty)
        let lines = said.output.split(separator: "\n")
        #expect(lines.first == "required for 10 % of users")
        #expect(said.output.contains("at 2090-01-01T00:00:00.000Z, for 50 % of users"))
        #expect(said.output.contains("once the tokens of 5 % of users stop working"))
        // Omitted options keep their values.
        let off = await run("enforcement set shop required --return-above 0")
        #expect(off.0 == .done)
        #expect(
            off.1.talk.hasPrefix(
                """
                shop: required for 10 %, unchanged
                scheduled switch: required for 50 % at 2090-01-01T00:00:00.000Z, unchanged
                automatic return: above 5 % of users -> off

                """))
        #expect(
            await shown()
                == #"{"auto_return":null,"ramp_percent":10,"returned":null,"scheduled":\#(later),"state":"required"}"#
                + "\n")
        let dropped = await run("enforcement set shop required --at none")
        #expect(
            dropped.1.talk.hasPrefix(
                """
                shop: required for 10 %, unchanged
                scheduled switch: required for 50 % at 2090-01-01T00:00:00.000Z -> none

                """))
        let same = await run("enforcement set shop required --at 2090-01-01T00:00:00Z")
        #expect(same.0 == .usage && same.1.talk.contains("is required for 10 % already"))
        for wrong in ["optional --percent 10", "required --percent 0", "required --at soon"] {
            #expect(await run("enforcement set shop \(wrong)").0 == .usage, "\(wrong)")
        }
        #expect(await run("enforcement set shop required --at 2020-01-01T00:00:00Z").0 == .usage)
    }

    @Test func aPresetWithARejectedAddressChangesNothing() async {
        _ = await run("app create shop")
        let before = await run("policy show shop --json").1.output
        let made = await run("policy set shop --preset clerk --tenant 127.0.0.1:443")
        #expect(made.1.talk.contains("the address is private"))
        #expect(await run("policy show shop --json").1.output == before)
    }

    @Test func aWriteKeyIsCreatedListedAndDeleted() async throws {
        _ = await run("app create shop")
        let directory = try AppDirectory(dataDirectory: folder.path + "/data")
        let first = try #require(try directory.writeKeys(of: "shop").first)
        let made = await run("write-key create shop --description second")
        #expect(made.0 == .done && made.1.output.hasPrefix("wk_"))
        let listed = await run("write-key list shop").1.output
        #expect(listed.contains(first.id) && listed.contains("second"))
        // A running gateway may not have stored the first use yet.
        let unknown = await run("write-key delete shop \(first.id)")
        #expect(unknown.0 == .usage)
        #expect(unknown.1.talk.contains("no use of it is stored here"), "\(unknown.1.talk)")
        #expect(unknown.1.talk.contains("--yes"), "\(unknown.1.talk)")
        #expect(await run("write-key delete shop \(first.id) --yes").0 == .done)
        let last = try directory.writeKeys(of: "shop")
        #expect(last.map(\.description) == ["second"])
        #expect(await run("write-key delete shop \(first.id)").0 == .notFound)
        let rejected = await run("write-key delete shop \(last[0].id)")
        #expect(rejected.0 == .usage)
        #expect(rejected.1.talk.contains("it is the app's last write key"), "\(rejected.1.talk)")
        #expect(rejected.1.talk.contains("--yes"), "\(rejected.1.talk)")
        #expect(await run("write-key delete shop \(last[0].id) --yes").0 == .done)
        #expect(await run("write-key list shop").1.talk.contains("no app can send"))
    }

    @Test func aWriteKeyThatWasUsedRecentlyIsDeletedOnlyWhenConfirmed() async throws {
        _ = await run("app create shop")
        let directory = try AppDirectory(dataDirectory: folder.path + "/data")
        let (now, day) = (Milliseconds(Date()).count, Int64(86_400_000))
        for (used, isAsked) in [(now, true), (now - 29 * day, true), (now - 31 * day, false)] {
            let key = try directory.createWriteKey(for: "shop", description: "")
            try directory.noteWriteKeyUses([SHA256.digest(key.text): used])
            let answer = await run("write-key delete shop \(key.entry.id)")
            #expect(answer.0 == (isAsked ? .usage : .done), "\(answer.1.talk)")
            #expect(answer.1.talk.contains("it was used at") == isAsked)
        }
    }

    @Test func theAlertWebhookIsSetShownAndDeleted() async throws {
        _ = await run("app create shop")
        #expect(await run("webhook alerts show shop").1.talk.contains("countersign webhook alerts set shop"))
        let (code, recorded) = await run("webhook alerts set shop https://shop.example/alerts")
        #expect(code == .done)
        let lines = recorded.output.split(separator: "\n")
        #expect(lines.first == "https://shop.example/alerts" && lines.count == 2)
        let secret = try #require(lines.last)
        #expect(secret.hasPrefix("whsec_"))
        let shown = await run("webhook alerts show shop")
        #expect(shown.1.output.contains("https://shop.example/alerts"))
        #expect(!shown.1.output.contains(secret) && !shown.1.talk.contains(secret))
        #expect(await run("webhook test shop alerts").0 == .done)
        // Another address keeps the secret, which is not printed again.
        let moved = await run("webhook alerts set shop http://127.0.0.1:9/alerts --allow-private --json")
        #expect(
            moved.1.output == #"{"allow_private":true,"secret_set":true,"url":"http://127.0.0.1:9/alerts"}"#
                + "\n")
        #expect(await run("webhook alerts set shop http://127.0.0.1:9/alerts").0 == .usage)
        #expect(await run("webhook alerts delete shop").0 == .done)
        #expect(
            await run("webhook alerts show shop --json").1.output
                == #"{"allow_private":false,"secret_set":false,"url":null}"# + "\n")
        #expect(await run("webhook alerts delete shop").1.talk == "shop has no alert webhook.\n")
        let file = folder.path + "/secret"
        let kept = await run("webhook alerts set shop https://shop.example/alerts --secret-file \(file)")
        #expect(kept.1.output == "https://shop.example/alerts\n", "\(kept.1.talk)")
        #expect(try String(contentsOfFile: file, encoding: .utf8).hasPrefix("whsec_"))
    }

    @Test func withoutSpaceForASecretFileNoSecretIsMade() async throws {
        let fixture = try GatewayFixture()
        let token = try fixture.apps.apiTokens.create(name: "t", scopes: ["write"]).text
        // Signal 25, SIGXFSZ, would end the program.
        let result = try await Shell(
            folder: folder.path,
            environment: [
                "COUNTERSIGN_TOKEN": token,
                "COUNTERSIGN_SERVER": "http://127.0.0.1:\(fixture.gateway.port)",
            ]
        ).run(
            "(trap '' XFSZ; ulimit -f 0; countersign client create shop --name a --secret-file secret) 2>&1 | cat"
        )
        #expect(result.output.contains("cannot write secret: File too large"), "\(result.output)")
        #expect(try fixture.apps.clients.all(of: "shop").isEmpty)
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/secret"))
    }

    @Test(arguments: [
        ("required", "required --percent 10", false),
        ("required --percent 10", "required --percent 11", true),
        ("required --percent 10", "required --percent 100", true), ("disabled", "optional", false),
        ("optional", "required --percent 1", true), ("required", "optional", false),
        ("required --percent 10", "required", false),
        ("required --percent 10", "required --return-above 5", false),
        ("optional", "required --at 2090-01-01T00:00:00Z", true),
        ("required --percent 50", "required --percent 20 --at 2090-01-01T00:00:00Z", false),
        ("required --at 2090-01-01T00:00:00Z", "required --at 2091-01-01T00:00:00Z", false),
        ("required --at 2091-01-01T00:00:00Z", "required --at 2090-01-01T00:00:00Z", true),
        ("required --at 2090-01-01T00:00:00Z", "disabled --at none", false),
        ("required;optional --at 2090-01-01T00:00:00Z", "required --at none", true),
        ("required;optional --at 2090-01-01T00:00:00Z", "required --percent 9 --at 3000d", true),
    ])
    func aChangeThatRejectsMoreNeedsConfirmation(first: String, second: String, asks: Bool) async throws {
        _ = await run("app create shop")
        for change in first.split(separator: ";") {
            #expect(await run("enforcement set shop \(change) --yes").0 == .done)
        }
        let before = await run("enforcement show shop --json").1.output
        let (code, io) = await run("enforcement set shop \(second)")
        #expect(code == (asks ? .usage : .done), "\(io.talk)")
        guard asks else { return }
        #expect(io.talk.contains("with a bad token are rejected for"), "\(io.talk)")
        #expect(io.talk.contains("--yes"), "\(io.talk)")
        #expect(await run("enforcement show shop --json").1.output == before)
        #expect(await run("enforcement set shop \(second) --yes").0 == .done)
    }

    @Test func raisingThePercentageTo100PrintsRequiredForEveryone() async throws {
        _ = await run("app create shop")
        _ = await run("enforcement set shop required --percent 10 --yes")
        let raised = await run("enforcement set shop required --percent 100 --yes")
        #expect(raised.1.talk.hasPrefix("shop: required for 10 % -> required for everyone\n"))
        // The percentage applies only to the state required.
        #expect(
            await run("enforcement set shop optional").1.talk == "shop: required for everyone -> optional\n")
    }

    @Test func aConfirmationAfterAConcurrentChangeIsAConflict() async throws {
        _ = await run("app create shop")
        let environment = environment
        // While the command asks, another operator changes the same setting.
        let io = RecordedIO(
            environment: environment,
            answer: { _ in
                let apps = try? AppDirectory(dataDirectory: environment["COUNTERSIGN_DATA"] ?? "")
                try? apps?.setEnforcement(.optional, for: "shop")
                return "y"
            })
        #expect(await io.run("enforcement", "set", "shop", "required") == .conflict)
        #expect(await run("enforcement show shop").1.output == "optional\n")
        for (answer, code) in [("n", ExitCode.usage), ("", .usage), ("yes", .done)] {
            let io = RecordedIO(environment: environment, answer: { _ in answer })
            #expect(await io.run("enforcement", "set", "shop", "required") == code, "\(io.talk)")
        }
    }

    @Test func policySettingsCanBeChangedOneByOne() async {
        _ = await run("app create shop")
        #expect(
            await run("policy set shop --algorithms RS256,ES256 --leeway 5 --max-lifetime 3600").0 == .done)
        #expect(await run("policy set shop --audience braze --require aud").0 == .done)
        #expect(
            await run("policy show shop --json").1.output
                == #"{"algorithms":["RS256","ES256"],"audience":["braze"],"issuer":[],"kept_claims":[],"#
                + #""leeway_seconds":5.0,"#
                + #""maximum_lifetime_seconds":3600.0,"required":["aud"],"typ":["JWT"],"user_claim":"sub"}"#
                + "\n")
        for bad in ["--algorithms HS256", "--algorithms none", "--require exp", "--leeway 301"] {
            #expect(await run("policy set shop \(bad)").0 == .usage)
        }
        #expect(await run("policy set shop --keep-claim tenant --keep-claim plan").0 == .done)
        #expect(await run("policy show shop --json").1.output.contains(#""kept_claims":["tenant","plan"]"#))
        #expect(await run("policy set shop --keep-claim=").0 == .done)
        #expect(await run("policy show shop --json").1.output.contains(#""kept_claims":[]"#))
        #expect(await run("policy set shop --max-lifetime 0").0 == .done)
        #expect(await run("policy show shop --json").1.output.contains(#""maximum_lifetime_seconds":null"#))
    }

    @Test func aPrintedKeySetCanBeAddedToAnotherApp() async throws {
        for app in ["shop", "other"] { #expect(await run("app create \(app)").0 == .done) }
        var ids = ""
        for key in [try SharedKeys.app(), try SigningKey.generate(.es256)] {
            let pem = try folder.write(key.publicKey.pem, to: "public.pem")
            ids += await run("key add shop \(pem)").1.output
        }
        let keys = await run("key jwks shop").1.output
        let set = try folder.write(keys, to: "jwks.json")
        #expect(await run("key add other \(set)").1.output == ids && ids.count > 80)
        // The app has all keys already.
        let again = await run("key add other \(set)")
        #expect(again.0 == .done && again.1.output.isEmpty)
    }

    @Test(arguments: ["app list", "audit verify", "backup create", "event list shop", "profile show"])
    func aMissingDataDirectoryIsReportedAndNotCreated(line: String) async {
        let data = folder.path + "/data"
        let (code, recorded) = await run(line)
        #expect(code == .notFound, "\(recorded.talk)")
        #expect(recorded.talk.contains(data) && recorded.talk.contains("--data"))
        #expect(!FileManager.default.fileExists(atPath: data))
    }

    @Test func anAppIsDeletedOnceItsIDIsTypedAgain() async throws {
        _ = await run("app create shop")
        for line in ["app delete shop", "app delete shop --confirm Shop"] {
            let (code, recorded) = await run(line)
            #expect(code == .usage && recorded.output.isEmpty, "\(recorded.talk)")
        }
        #expect(await run("app delete none --confirm none").0 == .notFound)
        #expect(await run("app list").1.output.contains("shop"))
        #expect(await run("app delete shop --confirm shop").0 == .done)
        let listed = await run("app list").1
        #expect(listed.output.isEmpty && listed.talk.contains("shop is being deleted"))
        #expect(await run("app create shop").0 == .conflict)
        _ = await run("app create kiosk")
        let asked = RecordedIO(environment: environment, answer: { _ in "kiosk" })
        #expect(await asked.run("app", "delete", "kiosk") == .done)
        #expect(await run("audit list").1.output.contains("app.delete"))
    }

    @Test func anEmptyListPrintsTheNextStepAndNoData() async throws {
        _ = try AppDirectory(dataDirectory: folder.path + "/data")
        let (code, recorded) = await run("app list")
        #expect(code == .done)
        #expect(recorded.output.isEmpty)
        #expect(recorded.talk.contains("countersign app create shop"))
        #expect(await run("app list --json").1.output == "[]\n")
    }

    @Test func theDataDirectoryFollowsThePlatformWithoutAFlag() async throws {
        let list = try #require(CommandTable.all.first { $0.name == "app list" })
        func location(_ environment: [String: String]) -> String {
            let io = RecordedIO(environment: environment).io
            return list.invocation(flagValues: [:], words: [:], io: io).dataDirectory
        }
        #expect(location(["COUNTERSIGN_DATA": "/d", "HOME": "/h"]) == "/d")
        #if os(Linux)
            #expect(location(["HOME": "/h"]) == "/h/.local/share/countersign-data")
            #expect(location(["HOME": "/h", "XDG_DATA_HOME": "/x"]) == "/x/countersign-data")
            #expect(location(["HOME": "/h", "XDG_DATA_HOME": "x"]) == "/h/.local/share/countersign-data")
        #endif
    }

    @Test(arguments: [
        ("block shop ada", "Blocked ada until it is lifted.\n"),
        ("limit shop ada --rate 1", "Limited ada to 1 request a minute until it is lifted.\n"),
        ("revoke shop ada", "Revoked the tokens of ada that were issued before "),
    ])
    func aUserRestrictionPrintsItsEffect(line: String, said: String) async {
        _ = await run("app create shop")
        #expect(await run("user " + line).1.talk.hasPrefix(said))
    }

    @Test func aCustomerIsShownAndDeleted() async throws {
        _ = await run("app create shop")
        try storeCustomer("ada", plan: "gold", in: folder.path + "/data")
        let shown = await run("customer show shop ada").1
        #expect(shown.output.hasPrefix("registered  ada\nplan        \"gold\"\n0 events, last seen 1970"))
        #expect(shown.talk.isEmpty)
        #expect(await run("customer show shop ada --json").1.output.contains(#""value":"gold""#))
        #expect(await run("customer show shop ada --id-name cookie").0 == .notFound)
        for answer in [nil, "n", "ada"] as [String?] {
            let io = RecordedIO(environment: environment, answer: { _ in answer })
            #expect(await io.run(line: "customer delete shop ada") == .usage)
            #expect(io.talk.contains(answer == nil ? "pass --yes" : "nothing was changed"))
        }
        #expect(await run("customer show shop ada").0 == .done)
        let deleted = await run("customer delete shop ada --yes")
        #expect(deleted.0 == .done && deleted.1.output.isEmpty)
        #expect(
            deleted.1.talk
                == "Deleted the profile, 0 events, 0 samples and 0 App Inbox messages; ended 0 sessions.\n")
        for line in ["customer show shop ada", "customer delete shop ada --yes"] {
            #expect(await run(line).0 == .notFound)
        }
        #expect(await run("audit list").1.output.contains("customer.delete"))
    }
}
