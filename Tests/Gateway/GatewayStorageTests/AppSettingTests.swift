import CountersignCore
import CountersignGatewayTesting
import CountersignJOSE
import CountersignSQLite
import GatewayModel
import GatewayTestSupport
import Testing

@testable import GatewayStorage

/// Settings of an app and their entries in the audit log.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct AppSettingTests {
    private let place: TestStorage
    private let apps: AppDirectory

    init() throws {
        place = try TestStorage()
        apps = try place.openControl()
        _ = try apps.createApp(id: "shop")
    }

    private func text(_ json: JSONValue) -> String { String(decoding: json.bytes, as: UTF8.self) }

    @Test func anAuditEntryOfAChangeHasTheOldAndNewValues() throws {
        var rules: [TokenRules] = [TokenRules()]
        for seconds in [60, 120] {
            var next = TokenRules()
            next.accessSeconds = seconds
            rules.append(next)
            try apps.setTokenRules(next, for: "shop")
        }
        // Neither call changes a setting.
        try apps.setTokenRules(rules[2], for: "shop")
        try apps.setRules(AppRules(), of: "shop")
        let entries = try apps.auditLog.entries(limit: 2)
        #expect(entries.map(\.before) == [text(rules[1].json), text(rules[0].json)])
        #expect(entries.map(\.after) == [text(rules[2].json), text(rules[1].json)])
    }

    @Test func invalidTokenRulesAndRulesOfAnUnknownAppAreRejected() {
        var rules = TokenRules()
        rules.accessSeconds = 0
        #expect(throws: GatewayError.self) { try apps.setTokenRules(rules, for: "shop") }
        #expect(throws: GatewayError.self) { try apps.setTokenRules(TokenRules(), for: "none") }
    }

    @Test func removedSettingsAreDeletedAndAudited() throws {
        let url = "https://keys.example/jwks.json"
        try apps.setKeySource(url: url, of: "shop")
        #expect(try apps.settingIfSet(KeySources.self, of: "shop")?.all.map(\.url) == [url])
        try apps.setKeySource(url: nil, of: "shop")
        #expect(try apps.settingIfSet(KeySources.self, of: "shop") == nil)
        let entries = try apps.auditLog.entries(limit: 2)
        #expect(entries.map(\.action) == ["key_source.remove", "key_source.set"])
        #expect(entries.map { $0.before != nil } == [true, false])
        #expect(entries.map { $0.after != nil } == [false, true])
    }

    @Test func omittedMembersGetDefaults() {
        var rules = AppRules()
        rules.origins = ["https://shop.example"]
        rules.retentionDays = 5
        rules.replace(with: ["retention_bytes": 7], for: "shop")
        #expect(rules.origins.isEmpty)
        #expect(rules.retentionDays == nil)
        #expect(rules.retentionBytes == 7)
    }

    @Test(arguments: [0, -1, .infinity, .nan] as [Double])
    func aPolicyWithoutAlgorithmsOrAUsableLifetimeIsInvalid(lifetime: Double) throws {
        for policy in [ClaimsPolicy(algorithms: []), ClaimsPolicy(maximumLifetime: lifetime)] {
            let error = #expect(throws: GatewayError.self) { try policy.check() }
            #expect(error?.code == .invalid)
        }
        try ClaimsPolicy(algorithms: [.es256], maximumLifetime: 0.5).check()
    }

    /// A later version may have stored the unknown value.
    @Test func anUnknownCustomerTokenModeCountsAsRequired() throws {
        var project = ProjectSettings.standard(for: "shop")
        project.customerTokens = .allowed
        try apps.setProject(project, for: "shop")
        let connection = try place.connection(to: "control")
        let kept = String(decoding: project.kept.bytes, as: UTF8.self)
        try connection.run(
            "UPDATE app_setting SET body = ? WHERE name = 'project'",
            .text(kept.replacing(#""allowed""#, with: #""tomorrow""#)))
        #expect(connection.changes == 1)
        #expect(try apps.setting(ProjectSettings.self, of: "shop").customerTokens == .required)
    }
}
