import CountersignCore
import CountersignGatewayTesting
import CountersignTesting
import Foundation
import Testing

@testable import CountersignGateway
@testable import CountersignJOSE
@testable import GatewayAdmin
@testable import GatewayHTTP
@testable import GatewayModel
@testable import GatewayObservability
@testable import GatewayStorage

/// Who sees which user: pseudonyms for those who only read, ids for those who may and say so.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct UserMaskTests {
    private static let user = "Alice-zbevnica"
    /// All that must not reach a reader, in lower case.
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

    /// An app with events, a failed request, a session and its end, all of one user.
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
            headers: ["X-Write-Key": bench.writeKey, "Authorization": "Bearer \(token)"])
        #expect(stored?.status == 200)
        let owner = try bench.token("admin")
        let opened = try bench.ask("POST", "apps/shop/sessions", #"{"user":"\#(Self.user)"}"#, owner)
        let id = opened.json["id"] as? String ?? ""
        _ = try bench.ask("POST", "apps/shop/sessions", #"{"user":"\#(Self.user)"}"#, owner)
        #expect(try bench.ask("DELETE", "apps/shop/sessions/\(id)", nil, owner).status == 204)
        #expect(try bench.ask("DELETE", "apps/shop/sessions?user=\(Self.user)", nil, owner).status == 200)
        // A message for the user alone, changed and deleted, and looks for the user that were written down.
        let message = "apps/shop/project/items/inbox-message/hello-Alice-zbevnica"
        for text in [Self.message, Self.message.replacing("Hello", with: "Welcome")] {
            #expect(try bench.ask("PUT", message, text, owner).status == 200)
            if text == Self.message { #expect(try bench.ask("DELETE", message, nil, owner).status == 204) }
        }
        for path in [
            "live?unmask=1&user=\(Self.user)", "apps/shop/events?unmask=1&name=Opened+for+\(Self.user)",
            "apps/shop/events?unmask=1&message_id=of-\(Self.user)", "audit?unmask=1&actor=\(Self.user)",
        ] {
            #expect(try bench.ask("GET", path, nil, owner).status == 200)
        }
        return bench
    }

    private func items(_ answer: AdminBench.Answer) -> [[String: Any]] {
        answer.json["items"] as? [[String: Any]] ?? []
    }

    private func read(_ bench: AdminBench, _ path: String, _ headers: [String: String]) throws -> String {
        try bench.ask("GET", path, nil, headers).body
    }

    /// Everything that can be read, with a path for each part in braces.
    private func readable(_ bench: AdminBench) throws -> [String] {
        let owner = try bench.token("admin")
        let sample =
            items(try bench.ask("GET", "apps/shop/samples", nil, owner)).first?["id"] as? String ?? ""
        return try bench.operations().filter { $0.method == "GET" && $0.path != "/live" }.map { operation in
            String(operation.path.dropFirst()).replacing("{app}", with: "shop")
                .replacing("samples/{id}", with: "samples/" + sample)
                .replacing("customers/{id}", with: "customers/" + Self.user)
                .replacing("{kind}/{id}", with: "inbox-message/hello-Alice-zbevnica")
                .replacing("{id}", with: "none")
                .replacing("{kind}", with: "inbox-message").replacing("{name}", with: "none")
        }
    }

    @Test func idsThatLookTheSameAreBothMasked() {
        let body: JSONValue = [
            "userId": "re\u{301}mi-1", "properties": ["note": "re\u{301}mi-1 and r\u{E9}mi-1"],
            "customer_id": "r\u{E9}mi-1",
        ]
        let event = StoredEvent(
            sequence: 1, messageID: "m", type: "track", userID: "re\u{301}mi-1", anonymousID: nil, name: "e",
            timestampMilliseconds: 0, receivedMilliseconds: 0, proof: nil, body: body.bytes)
        let shown = UserMask(key: Array(repeating: 7, count: 32)).event(event, of: "shop")
        #expect(!String(decoding: shown.body, as: UTF8.self).contains("mi-1"))
    }

    /// Swift compares and hashes text by its canonical form, which takes the square of a run of combining marks.
    @Test(arguments: ["properties", "traits", "ip", "note"])
    func aRunOfCombiningMarksIsMaskedAsFastAsOtherText(member: String) {
        let marks = String(repeating: "\u{301}\u{323}", count: 50_000)
        let body = JSONValue.object(["userId": .string("u-1"), member: .string("a" + marks)])
        let event = StoredEvent(
            sequence: 1, messageID: "m", type: "track", userID: "u-1", anonymousID: nil, name: "e" + marks,
            timestampMilliseconds: 0, receivedMilliseconds: 0, proof: nil, body: body.bytes)
        let shown = UserMask(key: Array(repeating: 7, count: 32)).event(event, of: "shop")
        #expect(!shown.body.isEmpty)
    }

    @Test func noAnswerToAReaderNamesAUser() throws {
        let bench = try bench()
        let key = try Pseudonyms(key: bench.apps.pseudonymKey(), appID: "shop")
        let reader = try bench.token("read")
        let paths = try readable(bench)
        #expect(paths.contains("apps/shop/events") && paths.contains("audit/export"))
        var named = 0
        for path in paths + ["apps/shop/events/export?format=csv", "audit/export?format=csv"] {
            let body = try read(bench, path, reader).lowercased()
            for secret in Self.secrets { #expect(!body.contains(secret), "\(path) shows \(secret)") }
            if body.contains(key.user(Self.user)) { named += 1 }
        }
        // Events twice, samples twice, sessions, messages twice, the audit log twice, both exports as CSV.
        #expect(named >= 10)
        let recheck = try #require(paths.first { $0.contains("samples/") })
        let again = try bench.ask("POST", recheck + "/recheck", "{}", bench.token("read"))
        #expect(again.status == 200)
        #expect(!again.body.lowercased().contains("alice"))
    }

    @Test func aViewerWhoIsSignedInSeesAsLittleAsAReadToken() throws {
        let bench = try bench()
        let cookie = ["Cookie": try bench.visitor(.viewer, "vic").cookie]
        for path in ["apps/shop/events", "apps/shop/sessions", "audit", "apps/shop/samples"] {
            #expect(try !bench.ask("GET", path, nil, cookie).body.lowercased().contains("alice"), "\(path)")
            let asked = try bench.ask("GET", path + "?unmask=1", nil, cookie)
            #expect(asked.status == 403 && asked.json["code"] as? String == "forbidden")
        }
    }

    @Test func anOperatorSeesIdsOnlyWhenAskingAndThatIsWrittenDown() throws {
        let bench = try bench()
        let visitor = try bench.visitor(.operator, "olga")
        let cookie = ["Cookie": visitor.cookie]
        for (path, action) in [
            ("apps/shop/events", "event.unmask"), ("apps/shop/events/export", "event.unmask"),
            ("apps/shop/sessions", "session.unmask"), ("audit", "audit.unmask"),
            ("audit/export", "audit.unmask"), ("apps/shop/samples", "sample.unmask"),
        ] {
            let count = try bench.apps.auditLog.entries(limit: 1_000).count
            #expect(try !read(bench, path, cookie).contains(Self.user), "\(path)")
            #expect(try bench.apps.auditLog.entries(limit: 1_000).count == count)
            #expect(try read(bench, path + "?unmask=1", cookie).contains(Self.user), "\(path)")
            let entry = try #require(try bench.apps.auditLog.entries(limit: 1).first)
            #expect(entry.action == action && entry.actor == "olga" && entry.role == "operator")
        }
        _ = try bench.ask("GET", "apps/shop/events?user=\(Self.user)&name=x&unmask=1", nil, cookie)
        let entry = try #require(try bench.apps.auditLog.entries(limit: 1).first)
        #expect(entry.after == #"{"name":"x","user":"Alice-zbevnica"}"# && entry.appID == "shop")
        // Of what was looked for, another reader learns the pseudonym.
        #expect(try !bench.ask("GET", "audit", nil, bench.token("read")).body.contains(Self.user))
    }

    @Test func aUserIsFoundByPseudonymAndById() throws {
        let bench = try bench()
        let reader = try bench.token("read")
        let writer = try bench.token("write")
        let other = try bench.client().post(
            batch(trackEvent("m3", user: "bob")), headers: ["X-Write-Key": bench.writeKey])
        #expect(other?.status == 200)
        for user in ["bob", Self.user] {
            let opened = try bench.ask("POST", "apps/shop/sessions", #"{"user":"\#(user)"}"#, writer)
            #expect(opened.status == 201)
        }
        #expect(items(try bench.ask("GET", "apps/shop/events", nil, reader)).count == 3)
        #expect(items(try bench.ask("GET", "apps/shop/sessions", nil, reader)).count == 4)
        let pseudonym = try Pseudonyms(key: bench.apps.pseudonymKey(), appID: "shop").user(Self.user)
        for user in [pseudonym, Self.user] {
            let found = items(try bench.ask("GET", "apps/shop/events?user=\(user)", nil, reader))
            #expect(found.map { $0["user_id"] as? String } == [pseudonym, pseudonym])
            let sessions = items(try bench.ask("GET", "apps/shop/sessions?user=\(user)", nil, reader))
            #expect(sessions.map { $0["user"] as? String } == [pseudonym, pseudonym, pseudonym])
        }
        #expect(items(try bench.ask("GET", "apps/shop/events?user=u-aaaaaaaa", nil, reader)).isEmpty)
        let ended = try bench.ask(
            "DELETE", "apps/shop/sessions?user=\(pseudonym)", nil, writer)
        #expect(ended.json["ended"] as? Int == 1)
        let left = items(try bench.ask("GET", "apps/shop/sessions?user=bob", nil, reader))
        #expect(left.map { $0["state"] as? String } == ["active"])
    }

    @Test func aMessageReadByPseudonymIsNotSavedAsItWasShown() throws {
        let bench = try bench()
        let cookie = try bench.visitor(.operator, "olga").headers
        let path = "apps/shop/project/items/inbox-message"
        let shown = try #require(items(try bench.ask("GET", path, nil, cookie)).first)
        let id = try #require(shown["id"] as? String)
        let read = try bench.ask("GET", "\(path)/\(id)", nil, cookie)
        let pseudonym = try Pseudonyms(key: bench.apps.pseudonymKey(), appID: "shop").user(Self.user)
        #expect(
            id == "hello-\(pseudonym)" && shown["recipient"] as? [String: String] == ["own_id": pseudonym])
        let matching = cookie.merging(["If-Match": try #require(read.headers["etag"])]) { $1 }
        let saved = try bench.ask("PUT", "\(path)/\(id)", read.body, matching)
        #expect(saved.status == 422 && saved.body.contains("unmask=1"))
        // Who asks for the ids gets the message under the same tag, and that is written down.
        let unmasked = try bench.ask("GET", "\(path)/hello-Alice-zbevnica?unmask=1", nil, cookie)
        #expect(unmasked.body.contains("https://shop.example/u/Alice-zbevnica"))
        #expect(try bench.apps.auditLog.entries(limit: 1).first?.action == "item.unmask")
        let again = try bench.ask("PUT", "\(path)/hello-Alice-zbevnica", unmasked.body, matching)
        #expect(again.status == 200 && !again.body.contains(Self.user))
        let kept = try #require(try bench.apps.projects.project(of: "shop").inbox.all.first)
        #expect(kept.recipient == CustomerIdentifier(name: "own_id", value: Self.user))
        #expect(try bench.ask("DELETE", "\(path)/\(id)", nil, cookie).status == 204)
    }

    @Test func aPseudonymIsStableAndTellsNothingAcrossAppsOrGateways() throws {
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

    @Test func aTokensHeaderAndIssuerDoNotNameItsUser() {
        let mask = UserMask(key: [1])
        let header = mask.header(
            ["alg": "RS256", "typ": "JWT", "kid": "of-vic-1", "sub": "other", "x": ["vic-1"]], user: "Vic-1")
        #expect(header == ["alg": "RS256", "typ": "JWT", "kid": "…", "sub": "…", "x": "…"])
        let claims = mask.claims(
            ["iss": "https://id.example/Vic-1", "aud": ["shop", "vic-1"], "sub": "Vic-1", "exp": 5],
            user: nil, of: "shop")
        let sub = JSONValue.string(mask.user("Vic-1", of: "shop") ?? "")
        #expect(claims == ["iss": "…", "aud": "…", "sub": sub, "exp": 5])
    }

    @Test func manyUsersAreGoneThroughPieceByPiece() throws {
        let all = (0..<25_000).map { String(format: "user-%05d", $0) }
        let pseudonyms = Pseudonyms(key: [7], appID: "shop")
        let index = PseudonymIndex()
        var looked = 0
        func find(_ pseudonym: String, at time: Int64 = 0) throws -> String? {
            looked = 0
            return try index.user(pseudonym, pseudonyms, of: "shop", at: time) { last, isEnough in
                for id in all where id > last {
                    looked += 1
                    if isEnough(id) { return }
                }
            }
        }
        let late = pseudonyms.user("user-24999")
        for _ in 1...2 {
            let problem = #expect(throws: AdminProblem.self) { try find(late) }
            #expect(problem?.status == 503 && problem?.retryAfterSeconds == 1)
            #expect(looked == PseudonymIndex.mostAtOnce)
        }
        #expect(try find(late) == "user-24999" && looked == 5_000)
        #expect(try find(pseudonyms.user("user-00001")) == "user-00001" && looked == 0)
        // Nobody's: the users are not gone through again at once.
        #expect(try find("u-aaaaaaaa", at: PseudonymIndex.pause - 1) == nil && looked == 0)
        for _ in 1...2 {
            #expect(throws: AdminProblem.self) { try find("u-aaaaaaaa", at: PseudonymIndex.pause) }
        }
        #expect(try find("u-aaaaaaaa", at: PseudonymIndex.pause) == nil && looked == 5_000)
        // The clock has been set back since.
        #expect(throws: AdminProblem.self) { try find("u-aaaaaaaa") }
    }

    @Test func theBodyOfAnEventStaysReadableWithoutSayingWhoseItIs() throws {
        let bench = try bench()
        let reader = try bench.token("read")
        let events = items(try bench.ask("GET", "apps/shop/events?message_id=m1", nil, reader))
        let body = try #require(events.first?["body"] as? [String: Any])
        let user = try Pseudonyms(key: bench.apps.pseudonymKey(), appID: "shop").user(Self.user)
        #expect(body["userId"] as? String == user)
        #expect(body["event"] as? String == "Opened for \(user)")
        let properties = try #require(body["properties"] as? [String: Any])
        #expect(properties["sku"] as? String == "sku-1" && properties["price"] as? Double == 12.5)
        #expect(properties["owner"] as? String == user && properties[user] as? Bool == true)
        let context = try #require(body["context"] as? [String: Any])
        #expect((context["library"] as? [String: String])?["name"] == "countersign")
        #expect((context["traits"] as? [String: String]) == ["email": "…", "plan": "…"])
        #expect(context["ip"] as? String == "192.0.2.0/24")
        let page = try #require(context["page"] as? [String: String])
        #expect(page["url"] == "https://shop.example/u/\(user)/cart?mail=…" && page["title"] == "Cart")
        let traits =
            items(try bench.ask("GET", "apps/shop/events?message_id=m2", nil, reader))
            .first?["body"] as? [String: Any]
        #expect(traits?["traits"] as? [String: String] == ["email": "…", "phone": "…", "age": "…"])
    }

    /// One row for each way in which an id can stand in a body.
    @Test(arguments: [
        (#"{"previousId":"vic-1"}"#, "vic-1"), (#"{"customer_ids":{"registered":"vic-1"}}"#, "vic-1"),
        (#"{"customer_ids":{"own_id":[{"x":"vic-1"}]}}"#, "vic-1"), (#"{"external_id":"vic-1"}"#, "vic-1"),
        (#"{"external_id":"vic-1","p":{"q":["to VIC-1"]}}"#, "vic-1"), (#"{"p":["me@vic.example"]}"#, "vic"),
        (#"{"user_id":77,"p":{"n":77}}"#, "77"), (#"{"$email":"vic@a.example"}"#, "vic"),
        (#"{"userId":"vic 1/a","p":"https://x.example/?u=vic%201%2Fa"}"#, "vic%201"),
        (#"{"user_id":"7","p":"user 7."}"#, "user 7"), (#"{"userId":"é-vic","p":"xé-vicy"}"#, "vic"),
        (#"{"traits":{"a":{"b":"vic"}}}"#, "vic"), (#"{"Device-Id":"phone"}"#, "phone"),
        (
            #"{"context":{"device":{"id":"phone-1"},"page":{"referrer":"https://x.example/phone-1"}}}"#,
            "phone"
        ),
        (#"{"properties":{"user":{"id":"vic-1"},"accounts":[{"account":{"ID":"vic-2"}}]}}"#, "vic"),
    ])
    func noIdStays(body: String, id: String) throws {
        let shown = try Self.masked(body)
        #expect(!shown.lowercased().contains(id), "\(shown)")
    }

    @Test func aShortIdDoesNotTearOtherWordsApart() throws {
        #expect(try Self.masked(#"{"userId":"1","p":"2021 v1.0 10"}"#).contains(#""p":"2021 v1.0 10""#))
        #expect(
            try Self.masked(#"{"id":"x-1","order":{"id":"x-2"}}"#) == #"{"id":"x-1","order":{"id":"x-2"}}"#)
    }

    @Test func anEventOfManyIdsShowsNoOtherText() throws {
        let ids = (0..<40).map { #""k\#($0)":"person-\#($0)""# }.joined(separator: ",")
        let shown = try Self.masked(#"{"customer_ids":{\#(ids)},"p":"person-39 was here","n":5}"#)
        #expect(!shown.contains("person-") && shown.contains(#""p":"…""#) && shown.contains(#""n":5"#))
    }

    private static func masked(_ body: String, type: String = "track") throws -> String {
        let event = StoredEvent(
            sequence: 1, messageID: "m", type: type, userID: nil, anonymousID: nil, name: nil,
            timestampMilliseconds: 0, receivedMilliseconds: 0, proof: nil, body: Array(body.utf8))
        let mask = UserMask(key: [UInt8](repeating: 1, count: 32))
        return String(decoding: mask.event(event, of: "shop").body, as: UTF8.self)
    }

    @Test func theLiveTailNamesUsersByPseudonymAndFindsThemByEither() throws {
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
        #expect(try bench.ask("GET", "live?unmask=1", nil, bench.token("read")).status == 403)
    }

    @Test func whoOwnsTheDataDirectorySeesIdsWithoutAnEntry() throws {
        let bench = try bench()
        let local = try LocalAdministration(
            storage: bench.place.open(), backupFolder: nil)
        let count = try bench.apps.auditLog.entries(limit: 1_000).count
        let answer = local.answer("GET", "/apps/shop/events", query: nil, ifMatch: nil, body: [])
        #expect(String(decoding: answer.body, as: UTF8.self).contains(Self.user))
        #expect(try bench.apps.auditLog.entries(limit: 1_000).count == count)
    }
}
