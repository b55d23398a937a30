import CountersignCore
import CountersignCrypto
import CountersignGatewayTesting
import CountersignJOSE
import CountersignTesting
import Foundation
import GatewayModel
import GatewayStorage
import GatewayTestSupport
import Testing

@testable import GatewayIngest

/// The apps in memory after changes in storage.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct AppRegistryTests {
    private let place: TestStorage
    /// Changes storage as a command or another gateway would.
    private let apps: AppDirectory
    private let cache = VerifiedTokenCache()
    private let registry: AppRegistry
    private let token: String

    init() throws {
        place = try TestStorage(.app)
        apps = try place.openControl()
        registry = AppRegistry(
            directory: try place.open().openControl(as: .schedule), cache: cache,
            now: { Date(timeIntervalSince1970: 1_000) })
        token = try SharedKeys.app().sign(claims: ["sub": "user-1", "exp": 2_000])
        try registry.refresh()
        #expect(try verify())
        #expect(cache.count == 1)
    }

    private func verify() throws -> Bool {
        try #require(registry.app(id: "shop")).verifier.verify(token, userID: "user-1", at: 1_000).isAccepted
    }

    /// Changes elsewhere, and changes of the app that do not affect its tokens.
    @Test func unrelatedChangesKeepTheCacheOfVerifiedTokens() throws {
        let before = try #require(registry.app(id: "shop"))
        let apiToken = try apps.apiTokens.create(name: "monitor", scopes: ["read"]).text
        try apps.admins.createUser(
            name: "kim", role: .viewer, password: PasswordHash("x", cost: Scrypt.Cost(n: 16, r: 8, p: 1)))
        let changes: [() throws -> Void] = [
            { _ = try apps.createApp(id: "blog") }, { _ = try apps.deleteApp(id: "blog") },
            { _ = try apps.apiTokens.token(apiToken, at: 7_200_000) },
            { _ = try apps.admins.openSignInSession(for: "kim", at: 1_000) },
            { _ = try apps.createWriteKey(for: "shop", description: "web") },
            { try apps.renameApp("shop", to: "The shop") },
            { _ = try apps.clients.create(of: "shop", name: "x") },
            {
                var rules = AppRules()
                rules.origins = ["https://shop.example"]
                try apps.setRules(rules, of: "shop")
            },
        ]
        for (number, change) in changes.enumerated() {
            try change()
            try registry.refresh()
            #expect(cache.count == 1, "change \(number)")
            #expect(registry.app(id: "shop") === before, "change \(number)")
        }
        #expect(registry.origins(of: "shop") == ["https://shop.example"])
    }

    /// Commands on the data directory and other gateways ask whether a key is in use.
    @Test func theFirstUseOfAWriteKeyIsStoredAtTheNextRefresh() throws {
        let (first, day) = (try apps.createWriteKey(for: "shop", description: ""), 86_400.0)
        let second = try apps.createWriteKey(for: "shop", description: "")
        let clock = ManualClock(now: Date(timeIntervalSince1970: 1_000))
        let registry = AppRegistry(directory: try place.openControl(), now: { clock.now })
        func stored(_ key: WriteKey) throws -> Int64? {
            try registry.checkForChanges()
            return try apps.writeKeys(of: "shop").first { $0.id == key.id }?.usedMilliseconds
        }
        #expect(try stored(first.entry) == nil)
        #expect(registry.app(writeKey: first.text) != nil)
        #expect(try stored(first.entry) == 1_000_000)
        // Later uses are stored every five minutes.
        clock.advance(by: 200)
        #expect(registry.app(writeKey: first.text) != nil)
        #expect(try stored(first.entry) == 1_000_000)
        #expect(registry.app(writeKey: second.text) != nil)
        #expect(try stored(second.entry) == 1_200_000)
        clock.advance(by: 299)
        #expect(registry.app(writeKey: first.text) != nil)
        #expect(try stored(first.entry) == 1_200_000)
        clock.advance(by: 1)
        #expect(try stored(first.entry) == 1_499_000)
        // The use of a key that was idle for a day is stored at once.
        clock.advance(by: day)
        #expect(try stored(second.entry) == 1_200_000)
        #expect(registry.app(writeKey: second.text) != nil)
        #expect(try stored(second.entry) == 1_500_000 + Int64(day) * 1_000)
    }

    @Test func deletingAKeyDropsItsCachedTokens() throws {
        let key = try #require(try apps.app(id: "shop").keys.first)
        try apps.deleteKey(keyID: key.id, of: "shop")
        try registry.refresh()
        #expect(cache.count == 0)
        #expect(try !verify())
    }

    @Test func aPolicyChangeInvalidatesCachedTokens() throws {
        var policy = ClaimsPolicy()
        policy.audiences = ["shop"]
        policy.requiresAudience = true
        try apps.setPolicy(policy, for: "shop")
        try registry.refresh()
        #expect(cache.count == 0)
        #expect(try !verify())
    }

    @Test func aNewAppWithTheIDOfADeletedOneHasNoCachedTokens() throws {
        _ = try apps.deleteApp(id: "shop")
        try apps.free(deletedApp: "shop")
        _ = try apps.createApp(id: "shop")
        _ = try apps.addKey(SharedKeys.app().publicKey.pem, to: "shop")
        try registry.refresh()
        #expect(cache.count == 0)
    }

    /// Includes App Inbox messages. Erasing a customer's messages makes one audit entry, which triggers the reload.
    @Test func everyServedPartOfAProjectIsReloadedAfterAChange() throws {
        let recipient = CustomerIdentifier(name: "registered", value: "ada")
        let changes: [() throws -> Void] = [
            {
                try apps.projects.putInboxMessage(
                    id: "m", type: "html", content: "{}", recipient: recipient, in: "shop")
            },
            {
                try apps.projects.putInboxMessage(
                    id: "m", type: "push", content: "{}", recipient: recipient, in: "shop")
            },
            { _ = try apps.projects.removeInboxMessages(to: [recipient], of: "shop") },
            { try apps.projects.endSyncTokens(of: "shop") },
            { _ = try apps.projects.put(.consentCategory, json: #"{"id":"ads"}"#, in: "shop") },
            { _ = try apps.projects.addCustomerTokenKey(id: "k", to: "shop") },
            { try apps.setEnforcement(.optional, for: "shop") },
        ]
        for (number, change) in changes.enumerated() {
            let before = try #require(registry.app(id: "shop"))
            try change()
            try registry.refresh()
            #expect(registry.app(id: "shop") !== before, "change \(number)")
        }
    }

    @Test func aFailedRefreshIsReportedOnceAndStaleAfterThirtySeconds() {
        let uptime = Lock<Int64>(0)
        let reports = Lock<[String?]>([])
        let health = RefreshHealth(
            uptime: { uptime.withLock { $0 } }, report: { report in reports.withLock { $0.append(report) } })
        health.begin()
        let locked = GatewayError(.storage, "locked")
        for time in stride(from: Int64(0), to: 30_000, by: 300) {
            uptime.withLock { $0 = time }
            health.note(locked)
            #expect(health.problem == "locked" && !health.isStale)
        }
        uptime.withLock { $0 = 30_000 }
        #expect(health.isStale)
        health.note(nil)
        #expect(!health.isStale && health.problem == nil)
        #expect(reports.withLock { $0 } == ["locked", nil])
    }
}
