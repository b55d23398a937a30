import CountersignCore
import CountersignGatewayTesting
import CountersignJOSE
import CountersignTesting
import Foundation
import GatewayTestSupport
import Testing

@testable import CountersignGateway
@testable import GatewayAdmin
@testable import GatewayHTTP
@testable import GatewayModel
@testable import GatewayObservability
@testable import GatewayStorage

/// A viewer sees pseudonyms and no text from an app. Operators and owners see events as stored.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct UserMaskTests {
    private static let user = "Alice-zbevnica"
    private static let requestID = "trail-7"
    /// Values that no response to a viewer may contain, in lower case.
    private static let secrets = ["alice", "anon-77", "zbevnica", "192.0.2.77", "555-0199"]

    private static let tracked = #"""
        {"type":"track","event":"Opened for Alice-zbevnica","messageId":"m1","userId":"Alice-zbevnica","anonymousId":"anon-77",
        "timestamp":"2026-11-21T08:00:00Z","context":{"traits":{"email":"alice@home.example","plan":"gold"},
        "ip":"192.0.2.77","page":{"url":"https://shop.example/u/alice-zbevnica/cart?mail=alice%40home.example",
        "title":"Cart"},"library":{"name":"countersign"}},"properties":{"sku":"sku-1","price":12.5,"owner":"ALICE-ZBEVNICA",
        "Alice-zbevnica":true,"note":"ask alice@work.example, anon-77","referrer_id":"x"}}
        """#
    private static let identified = #"""
        {"type":"identify","messageId":"m2","userId":"Alice-zbevnica","timestamp":"2026-11-21T08:00:01Z",
        "traits":{"email":"alice@home.example","phone":"555-0199","age":41}}
        """#

    private static let message = #"""
        {"id":"hello-Alice-zbevnica","type":"html","recipient":{"own_id":"Alice-zbevnica"},
        "content":{"html":"<p>Hello alice-zbevnica</p>","url":"https://shop.example/u/Alice-zbevnica"}}
        """#

    /// An app with events, an expired token, ended sessions, a message, a consumer and a webhook, all of one user.
    private func bench() throws -> AdminBench {
        let bench = try AdminBench()
        let key = try SharedKeys.stranger()
        _ = try bench.apps.addKey(key.publicKey.pem, to: "shop")
        try bench.apps.setEnforcement(.optional, for: "shop")
        try bench.gateway.refreshApps()
        let token = try key.sign(claims: [
            "sub": .string(Self.user), "exp": .integer(Int64(bench.clock.now.timeIntervalSince1970) - 600),
            "iss": "shop-backend", "email": "alice@home.example", "aud": .string(Self.user),
        ])
        let stored = try bench.client().post(
            #"{"batch":[\#(Self.tracked),\#(Self.identified)]}"#,
            headers: [
                "X-Write-Key": bench.writeKey, "Authorization": "Bearer \(token)",
                "X-Request-Id": Self.requestID,
            ])
        #expect(stored?.status == 200)
        let owner = try bench.token("admin")
        let opened = try bench.ask("POST", "apps/shop/sessions", #"{"user":"\#(Self.user)"}"#, owner)
        let id = opened.json["id"] as? String ?? ""
        _ = try bench.ask("POST", "apps/shop/sessions", #"{"user":"\#(Self.user)"}"#, owner)
        #expect(try bench.ask("DELETE", "apps/shop/sessions/\(id)", nil, owner).status == 204)
        #expect(try bench.ask("DELETE", "apps/shop/sessions?user=\(Self.user)", nil, owner).status == 200)
        // A message to this user only is stored, deleted, and stored with another text.
        let message = "apps/shop/project/items/inbox-message/hello-Alice-zbevnica"
        for text in [Self.message, Self.message.replacing("Hello", with: "Welcome")] {
            #expect(try bench.ask("PUT", message, text, owner).status == 200)
            if text == Self.message { #expect(try bench.ask("DELETE", message, nil, owner).status == 204) }
        }
        let filter = #"{"user":"\#(Self.user)"}"#
        let consumer = #"{"name":"billing","filter":\#(filter)}"#
        #expect(try bench.ask("POST", "apps/shop/consumers", consumer, owner).status == 201)
        let webhook = #"{"url":"https://shop.example/in","user":"\#(Self.user)"}"#
        #expect(try bench.ask("POST", "apps/shop/webhooks", webhook, owner).status == 201)
        for path in [
            "apps/shop/events/export?user=\(Self.user)", "apps/shop/customers/\(Self.user)", "audit/export",
        ] { #expect(try bench.ask("GET", path, nil, owner).status == 200) }
        return bench
    }

    private func read(_ bench: AdminBench, _ path: String, _ headers: [String: String]) throws -> String {
        try bench.ask("GET", path, nil, headers).body
    }

    /// The paths of all GET routes except `/live`, with existing ids for samples, customers and the message.
    private func readable(_ bench: AdminBench) throws -> [String] {
        let owner = try bench.token("admin")
        let sample = try bench.items("apps/shop/samples", owner).first?["id"] as? String ?? ""
        return try bench.operations().filter { $0.method == "GET" && $0.path != "/live" }.map { operation in
            String(operation.path.dropFirst()).replacing("{app}", with: "shop")
                .replacing("samples/{id}", with: "samples/" + sample)
                .replacing("customers/{id}", with: "customers/" + Self.user)
                .replacing("{kind}/{id}", with: "inbox-message/hello-Alice-zbevnica")
                .replacing("{id}", with: "none")
                .replacing("{kind}", with: "inbox-message").replacing("{name}", with: "none")
        }
    }

    @Test func viewersSeeNoUserIDsAndNoEventBodies() throws {
        let bench = try bench()
        let key = try Pseudonyms(key: bench.apps.pseudonymKey(), appID: "shop")
        let reader = try bench.token("read")
        let paths = try readable(bench)
        #expect(paths.contains("apps/shop/events") && paths.contains("audit/export"))
        let positions = try bench.items("apps/shop/events", bench.token("write"))
            .compactMap { $0["position"] as? String }
        #expect(positions.count == 2)
        var named = 0
        for path in paths + positions.map({ "apps/shop/events/" + $0 }) + ["audit/export?format=csv"] {
            let body = try read(bench, path, reader).lowercased()
            for secret in Self.secrets + ["sku-1", "trail-7", "555-0199"] {
                #expect(!body.contains(secret), "\(path) shows \(secret)")
            }
            if body.contains(key.user(Self.user)) { named += 1 }
        }
        // The event list, two events, samples, sessions, consumers, webhooks, and the audit log as list, JSON and CSV.
        #expect(named >= 10)
        let recheck = try #require(paths.first { $0.contains("samples/") })
        let again = try bench.ask("POST", recheck + "/recheck", "{}", bench.token("read"))
        #expect(again.status == 200)
        #expect(!again.body.lowercased().contains("alice"))
    }

    @Test(arguments: [
        "apps/shop/events/export", "apps/shop/customers/Alice-zbevnica",
        "apps/shop/project/items/inbox-message", "apps/shop/project/items/inbox-message/hello-Alice-zbevnica",
        // The presence of a result would reveal a user's pseudonym.
        "apps/shop/events?user=Alice-zbevnica", "apps/shop/events?message_id=m1", "apps/shop/events?name=x",
        "apps/shop/events?request_id=trail-7", "apps/shop/samples?request_id=trail-7",
        "apps/shop/sessions?user=Alice-zbevnica", "live?user=Alice-zbevnica",
    ])
    func viewersCannotSearchByID(path: String) throws {
        let bench = try bench()
        for viewer in [try bench.token("read"), ["Cookie": try bench.visitor(.viewer, "vic").cookie]] {
            let answer = try bench.ask("GET", path, nil, viewer)
            #expect(answer.status == 403 && answer.json["code"] as? String == "forbidden")
        }
        guard !path.hasPrefix("live") else { return }
        #expect(try bench.ask("GET", path, nil, bench.token("write")).status == 200)
    }

    /// With a short user id, other text in an event that contains the id must stay unchanged.
    @Test func anOperatorSeesEventsAsTheyWereSent() throws {
        let bench = try AdminBench()
        let body =
            #"{"type":"track","event":"42","messageId":"m","userId":"42","properties":{"n":42,"t":"42"}}"#
        try bench.store(batch(body))
        for headers in [try bench.token("write"), ["Cookie": try bench.visitor(.operator, "olga").cookie]] {
            let list = try bench.ask("GET", "apps/shop/events", nil, headers)
            #expect(list.body.contains(body))
            #expect((list.json["items"] as? [[String: Any]])?.first?["user_id"] as? String == "42")
            #expect(try read(bench, "apps/shop/events/export", headers).contains(body))
        }
    }

    @Test func exportsAndViewsOfACustomerAreAuditedByPseudonym() throws {
        let bench = try bench()
        let cookie = ["Cookie": try bench.visitor(.operator, "olga").cookie]
        let pseudonym = try Pseudonyms(key: bench.apps.pseudonymKey(), appID: "shop").user(Self.user)
        func last() throws -> AuditEntry { try bench.apps.auditLog.entries(limit: 1)[0] }
        #expect(
            try bench.ask("GET", "apps/shop/events/export?user=\(Self.user)&type=track", nil, cookie).status
                == 200)
        var entry = try last()
        #expect(entry.action == "event.export" && entry.actor == "olga" && entry.appID == "shop")
        #expect(entry.after == #"{"type":"track","user":"\#(pseudonym)"}"#)
        #expect(try bench.ask("GET", "apps/shop/customers/\(Self.user)", nil, cookie).status == 200)
        entry = try last()
        #expect(entry.action == "customer.show" && entry.target == pseudonym)
        #expect(try bench.ask("GET", "audit/export", nil, cookie).status == 200)
        #expect(try last().action == "audit.export")
        // Lists are not audited. Exports that continue after a position are audited once a day.
        func audited() throws -> [AuditEntry] { try bench.apps.auditLog.entries(limit: 1_000) }
        var before = try audited().count
        let events = try bench.items("apps/shop/events?user=\(Self.user)", cookie)
        let positions = events.compactMap { $0["position"] as? String }
        try #require(positions.count > 1)
        for path in ["audit", "apps/shop/samples", "apps/shop/sessions", "apps/shop/events/\(positions[0])"] {
            #expect(try bench.ask("GET", path, nil, cookie).status == 200)
        }
        #expect(try audited().count == before)
        let oldest = positions[positions.count - 1]
        for (after, entries) in [(oldest, 1), (positions[0], 0), (oldest, 0), ("start", 1)] {
            let path = "apps/shop/events/export?after=\(after)"
            #expect(try read(bench, path, cookie).isEmpty == (after == positions[0]))
            #expect(try audited().count == before + entries)
            before = try audited().count
        }
    }

    @Test func aUserIsFoundByPseudonym() throws {
        let bench = try bench()
        let reader = try bench.token("read")
        let writer = try bench.token("write")
        try bench.store(batch(trackEvent("m3", user: "bob")))
        for user in ["bob", Self.user] {
            let opened = try bench.ask("POST", "apps/shop/sessions", #"{"user":"\#(user)"}"#, writer)
            #expect(opened.status == 201)
        }
        #expect(try bench.items("apps/shop/events", reader).count == 3)
        #expect(try bench.items("apps/shop/sessions", reader).count == 4)
        let pseudonym = try Pseudonyms(key: bench.apps.pseudonymKey(), appID: "shop").user(Self.user)
        let found = try bench.items("apps/shop/events?user=\(pseudonym)", reader)
        #expect(found.map { $0["user_id"] as? String } == [pseudonym, pseudonym])
        let sessions = try bench.items("apps/shop/sessions?user=\(pseudonym)", reader)
        #expect(sessions.map { $0["user"] as? String } == [pseudonym, pseudonym, pseudonym])
        for user in [pseudonym, Self.user] {
            let events = try bench.items("apps/shop/events?user=\(user)", writer)
            #expect(events.map { $0["user_id"] as? String } == [Self.user, Self.user])
        }
        #expect(try bench.ask("GET", "apps/shop/customers/\(pseudonym)", nil, writer).status == 200)
        #expect(try bench.items("apps/shop/events?user=u-aaaaaaaa", reader).isEmpty)
        let consumer = #"{"name":"filtered","filter":{"user":"\#(pseudonym)"}}"#
        let made = try bench.ask("POST", "apps/shop/consumers", consumer, writer)
        #expect((made.json["filter"] as? [String: Any])?["user"] as? String == Self.user)
        let ended = try bench.ask("DELETE", "apps/shop/sessions?user=\(pseudonym)", nil, writer)
        #expect(ended.json["ended"] as? Int == 1)
        let left = try bench.items("apps/shop/sessions?user=bob", writer)
        #expect(left.map { $0["state"] as? String } == ["active"])
    }

    @Test func pseudonymsAreStableAndDifferBetweenAppsAndGateways() throws {
        let key = [UInt8](repeating: 7, count: 32)
        let shop = Pseudonyms(key: key, appID: "shop")
        #expect(shop.user("user-1") == Pseudonyms(key: key, appID: "shop").user("user-1"))
        #expect(Pseudonyms.isPseudonym(shop.user("user-1")))
        let different: Set = [
            shop.user("user-1"), shop.user("user-2"), shop.anonymous("user-1"),
            Pseudonyms(key: key, appID: "other").user("user-1"),
            Pseudonyms(key: [1], appID: "shop").user("user-1"),
        ]
        #expect(different.count == 5)
        let users = Set((0..<10_000).map { shop.user("user-\($0)") })
        #expect(users.count == 10_000)
        let bench = try AdminBench()
        let first = try bench.apps.pseudonymKey()
        #expect(try first.count == 32 && bench.apps.pseudonymKey() == first)
        #expect(try bench.place.openControl().pseudonymKey() == first)
    }

    @Test func aPseudonymIsSearchedForInLimitedSteps() throws {
        let all = (0..<25_000).map { String(format: "user-%05d", $0) }
        let pseudonyms = Pseudonyms(key: [7], appID: "shop")
        let index = PseudonymIndex()
        var scanned = 0
        func find(_ pseudonym: String, at time: Int64 = 0) throws -> String? {
            scanned = 0
            return try index.user(pseudonym, pseudonyms, of: "shop", at: time) { last, isEnough in
                for id in all where id > last {
                    scanned += 1
                    if isEnough(id) { return }
                }
            }
        }
        let late = pseudonyms.user("user-24999")
        for _ in 1...2 {
            let problem = #expect(throws: AdminProblem.self) { try find(late) }
            #expect(problem?.status == 503 && problem?.retryAfterSeconds == 1)
            #expect(scanned == PseudonymIndex.mostAtOnce)
        }
        #expect(try find(late) == "user-24999" && scanned == 5_000)
        #expect(try find(pseudonyms.user("user-00001")) == "user-00001" && scanned == 0)
        // An unknown pseudonym does not start another scan of the users immediately.
        #expect(try find("u-aaaaaaaa", at: PseudonymIndex.pause - 1) == nil && scanned == 0)
        for _ in 1...2 {
            #expect(throws: AdminProblem.self) { try find("u-aaaaaaaa", at: PseudonymIndex.pause) }
        }
        #expect(try find("u-aaaaaaaa", at: PseudonymIndex.pause) == nil && scanned == 5_000)
        // Setting the clock back allows another scan.
        #expect(throws: AdminProblem.self) { try find("u-aaaaaaaa") }
    }

    @Test func theLiveTailIsFilteredByIDOrPseudonym() throws {
        let bench = try AdminBench()
        let mask = UserMask(key: try bench.apps.pseudonymKey())
        let entry = LiveFeed.Entry(
            id: 1, atMilliseconds: 0,
            key: VerdictKey(
                appID: "shop", endpoint: "/v1/batch", verdict: .accepted, code: nil, enforcement: nil,
                client: ClientInfo(), keyID: nil), userID: Self.user, network: "", requestID: "",
            sampleID: nil)
        let pseudonym = try #require(mask.user(Self.user, of: "shop"))
        #expect(LiveEvents.Filter(user: Self.user).matches(entry))
        #expect(LiveEvents.Filter(user: pseudonym, pseudonymMask: mask).matches(entry))
        #expect(!LiveEvents.Filter(user: "u-aaaaaaaa", pseudonymMask: mask).matches(entry))
    }

    @Test func commandsOnADataDirectoryShowIdsWithoutAnAuditEntry() throws {
        let bench = try bench()
        let local = try LocalAdministration(storage: bench.place.open(), backupFolder: nil)
        let count = try bench.apps.auditLog.entries(limit: 1_000).count
        let answer = local.answer("GET", "/apps/shop/events", query: nil, ifMatch: nil, body: [])
        #expect(String(decoding: answer.body, as: UTF8.self).contains(Self.user))
        #expect(try bench.apps.auditLog.entries(limit: 1_000).count == count)
    }
}
