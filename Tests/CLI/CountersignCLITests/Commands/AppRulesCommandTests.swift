import CountersignGateway
import GatewayStorage
import Testing

@testable import CountersignCLI

@Suite(.timeLimit(.minutes(5)))
struct AppRulesCommandTests {
    @Test func originsAndRetentionAreSetAndShown() async throws {
        let folder = TemporaryFolder()
        let data = folder.path + "/data"
        #expect(await RecordedIO().run("app", "create", "shop", "--data", data) == .done)
        let set = RecordedIO()
        #expect(await set.run("app", "origins", "shop", "https://shop.example", "--data", data) == .done)
        #expect(await set.run("app", "retention", "shop", "--days", "90", "--data", data) == .done)
        #expect(await set.run("app", "retention", "shop", "--bytes", "1000", "--data", data) == .done)
        let shown = RecordedIO()
        #expect(await shown.run("app", "origins", "shop", "--data", data) == .done)
        #expect(await shown.run("app", "retention", "shop", "--data", data) == .done)
        #expect(shown.output == "https://shop.example\ndays   90\nbytes  1000B\n")
        #expect(await set.run("app", "retention", "shop", "--days", "0", "--data", data) == .done)
        #expect(await set.run("app", "origins", "shop", "--none", "--data", data) == .done)
        let rules = try AppDirectory(dataDirectory: data).rules(of: "shop")
        #expect(rules.origins.isEmpty)
        #expect(rules.retentionDays == nil)
        #expect(rules.retentionBytes == 1_000)
        let wrong = RecordedIO()
        #expect(await wrong.run("app", "origins", "shop", "shop.example", "--data", data) == .usage)
        // Browsers do not send these origins.
        for origin in [
            "https://shop.example:443", "http://shop.example:80", "https://shop.example:08443",
            "https://b\u{FC}cher.example", "https://Shop.example", "https://shop.example/",
        ] {
            #expect(await wrong.run("app", "origins", "shop", origin, "--data", data) == .usage, "\(origin)")
        }
        #expect(wrong.talk.contains("browsers leave out the port 443 of https"))
        for origin in [
            "https://shop.example:8443", "http://shop.example:443", "https://xn--bcher-kva.example",
        ] {
            #expect(await wrong.run("app", "origins", "shop", origin, "--data", data) == .done, "\(origin)")
        }
        #expect(await wrong.run("app", "origins", "none-such", "--data", data) == .notFound)
        // An origin that an earlier version accepted does not block other changes.
        var old = rules
        old.origins = ["https://shop.example:443"]
        try AppDirectory(dataDirectory: data).set(old, for: "shop")
        #expect(await wrong.run("app", "retention", "shop", "--days", "7", "--data", data) == .done)
        #expect(try AppDirectory(dataDirectory: data).rules(of: "shop").origins == old.origins)
    }
}
