import CountersignCore
import CountersignCrypto
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import GatewayHTTP
import GatewayModel
import GatewayStorage
import GatewayTestSupport
import Testing

@testable import GatewayAdmin

/// Two clients change the same state. The slower one gets 412, and no change is lost.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct InterleavedChangeTests {
    /// Runs just before the next transaction of `first`.
    private let interruption = Lock<(@Sendable () throws -> Void)?>(nil)
    private let place: TestStorage
    private let apps: AppDirectory
    private let first: LocalAdministration
    private let second: LocalAdministration

    init() throws {
        place = try TestStorage()
        apps = try place.openControl()
        let database = HookedDatabase(
            try place.openControl().database,
            willChange: { [interruption] in try interruption.withLock { $0.take() }?() })
        _ = try apps.createApp(id: "shop", name: "The shop")
        first = try LocalAdministration(
            storage: place.open(), directory: AppDirectory(database, actor: .account, now: { Date() }),
            backupFolder: nil, now: { Date() })
        second = try LocalAdministration(storage: place.open(), backupFolder: nil)
    }

    private func text(_ response: HTTPResponse) -> String { String(decoding: response.body, as: UTF8.self) }

    private func tag(of response: HTTPResponse) -> String? {
        response.headers.first { $0.name == "ETag" }?.value
    }

    /// Method, path, and the two operators' bodies.
    private static let changes: [(String, String, String, String)] = [
        ("PATCH", "/apps/shop", #"{"name":"Mine"}"#, #"{"retention_days":30}"#),
        ("PATCH", "/apps/shop/keys/KEY", #"{"description":"mine"}"#, #"{"description":"theirs"}"#),
        ("DELETE", "/apps/shop/keys/KEY", "", #"{"description":"theirs"}"#),
        ("PUT", "/apps/shop/enforcement", #"{"state":"optional"}"#, #"{"state":"required"}"#),
        ("PUT", "/apps/shop/policy", #"{"audience":"mine"}"#, #"{"audience":"theirs"}"#),
        (
            "PUT", "/apps/shop/webhook", #"{"url":"https://mine.example/"}"#,
            #"{"url":"https://theirs.example/"}"#
        ),
        (
            "PUT", "/apps/shop/project", #"{"token":"mine","customer_tokens":"off"}"#,
            #"{"token":"theirs","customer_tokens":"off"}"#
        ),
        (
            "PUT", "/apps/shop/token-rules",
            #"{"registration":"open","access_seconds":60,"refresh_seconds":600,"reuse_seconds":0}"#,
            #"{"registration":"open","access_seconds":90,"refresh_seconds":600,"reuse_seconds":0}"#
        ),
        (
            "PUT", "/apps/shop/key-source", #"{"url":"https://mine.example/jwks.json"}"#,
            #"{"url":"https://theirs.example/jwks.json"}"#
        ),
        ("DELETE", "/apps/shop/key-source", "", #"{"url":"https://theirs.example/jwks.json"}"#),
        (
            "PUT", "/apps/shop/project/items/in-app-message/m", #"{"trigger":{"event_type":"mine"}}"#,
            #"{"trigger":{"event_type":"theirs"}}"#
        ),
        (
            "PUT", "/apps/shop/project/items/inbox-message/i", #"{"type":"push","content":{"by":"me"}}"#,
            #"{"type":"push","content":{"by":"them"}}"#
        ),
        (
            "DELETE", "/apps/shop/project/items/inbox-message/i", "",
            #"{"type":"push","content":{"by":"them"}}"#
        ),
        ("PATCH", "/apps/shop/webhooks/HOOK", #"{"batch_size":5}"#, #"{"batch_size":7}"#),
        ("PATCH", "/users/ada", #"{"role":"viewer"}"#, #"{"role":"owner"}"#),
        ("DELETE", "/users/ada", "", #"{"role":"owner"}"#),
        ("PUT", "/sign-in-rules", #"{"second_factor_required":true}"#, #"{"second_factor_required":true}"#),
    ]

    @Test(arguments: changes)
    func theLaterOfTwoConcurrentChangesIsRejected(
        method: String, template: String, mine: String, theirs: String
    ) throws {
        let key = try apps.addKey(SigningKey.generate(.es256).publicKey.pem, to: "shop")
        for (name, role) in [("ada", AdminRole.operator), ("root", .owner)] {
            try apps.admins.createUser(
                name: name, role: role, password: .ofNobody(cost: Scrypt.Cost(n: 16, r: 8, p: 1)))
        }
        try apps.projects.put(.inAppMessage, json: #"{"id":"m","trigger":{"event_type":"view"}}"#, in: "shop")
        _ = try apps.projects.putInboxMessage(json: #"{"id":"i","type":"html","content":{}}"#, in: "shop")
        let hook = try apps.webhooks.create(
            of: "shop", ["url": "https://shop.example/"], secret: nil, after: 0, at: 1
        ).endpoint
        let path = template.replacing("KEY", with: key.id).replacing("HOOK", with: hook.id)
        let read = first.answer("GET", path, query: nil, ifMatch: nil, body: [])
        let current = try #require(tag(of: read), "\(text(read))")
        let isPart = template.hasSuffix("KEY") || template.hasSuffix("shop") || template.contains("users")
        let faster = isPart || template.hasSuffix("HOOK") ? "PATCH" : "PUT"
        let interruption: @Sendable () throws -> Void = { [second] in
            let done = second.answer(faster, path, query: nil, ifMatch: current, body: Array(theirs.utf8))
            #expect(done.status == 200, "\(String(decoding: done.body, as: UTF8.self))")
        }
        self.interruption.withLock { $0 = interruption }
        let entries = try apps.auditLog.entries(limit: 500).count
        let rejected = first.answer(method, path, query: nil, ifMatch: current, body: Array(mine.utf8))
        #expect(rejected.status == 412, "\(text(rejected))")
        #expect(try apps.auditLog.entries(limit: 500).count == entries + 1)
        let kept = second.answer("GET", path, query: nil, ifMatch: nil, body: [])
        #expect(kept.status == 200)
        #expect(!text(kept).lowercased().contains("mine"), "\(text(kept))")
        #expect(tag(of: kept) != current)
    }

    /// An invalid setting in the body also rejects the valid one.
    @Test func aChangeOfSeveralSettingsIsAtomic() throws {
        let read = first.answer("GET", "/apps/shop", query: nil, ifMatch: nil, body: [])
        let body = Array(#"{"retention_days":30,"name":""}"#.utf8)
        let rejected = first.answer("PATCH", "/apps/shop", query: nil, ifMatch: tag(of: read), body: body)
        #expect(rejected.status == 422, "\(text(rejected))")
        #expect(try apps.rules(of: "shop").retentionDays == nil)
    }

    /// Proxies that compress responses change their entity tags.
    @Test(arguments: [
        ("W/TAG", true), ("\"old\", W/TAG", true), ("W/\"old\" ,\tTAG", true), ("*", true),
        ("\"TEXT-gzip\"", true), ("W/\"TEXT-br\"", true), ("\"TEXT--gzip\"", true), ("W/\"old\"", false),
        ("TEXT", false), ("\"TEXTx\"", false), ("w/TAG", false), ("W/", false), ("", false),
    ])
    func ifMatchAcceptsETagsWeakenedByProxies(field: String, isAccepted: Bool) throws {
        let path = "/apps/shop/policy"
        let current = try #require(tag(of: first.answer("GET", path, query: nil, ifMatch: nil, body: [])))
        let sent = field.replacing("TAG", with: current)
            .replacing("TEXT", with: current.dropFirst().dropLast())
        let answer = first.answer(
            "PUT", path, query: nil, ifMatch: sent, body: Array(#"{"audience":"a"}"#.utf8))
        #expect(answer.status == (isAccepted ? 200 : 412), "\(sent)")
    }

    @Test func responsesForbidCachingAndTransformation() {
        let answer = first.answer("GET", "/apps", query: nil, ifMatch: nil, body: [])
        #expect(
            answer.headers.contains { $0.name == "Cache-Control" && $0.value == "no-store, no-transform" })
    }
}
