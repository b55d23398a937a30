import CountersignCore
import CountersignCrypto
import CountersignGateway
import CountersignGatewayTesting
import CountersignJOSE
import Foundation
import GatewayModel
import GatewayStorage
import GatewayTestSupport
import Testing

@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct BloomreachInboxTests {
    private let client: BloomreachClient

    init() throws {
        client = try BloomreachClient()
    }

    private let fetchPath = "/webxp/projects/{p}/appinbox/fetch"
    private let readPath = "/webxp/projects/{p}/appinbox/markasread"
    private let jane = #"{"cookie":"C","registered":"jane"}"#

    private func put(_ id: String, to recipient: CustomerIdentifier? = nil, expires: Int64? = nil) throws {
        try client.edit {
            try $0.projects.putInboxMessage(
                id: id, type: "html", content: #"{"title":"\#(id)","message":"<p>Hi</p>"}"#,
                recipient: recipient, expiresMilliseconds: expires, in: "shop")
        }
    }

    private func registered(_ value: String) -> CustomerIdentifier {
        CustomerIdentifier(name: "registered", value: value)
    }

    private func fetch(
        _ ids: String? = nil, since token: String? = nil, authorization: String? = nil, isSigned: Bool = true
    ) throws -> TestAnswer {
        let sync = token.map { #","sync_token":"\#($0)""# } ?? ""
        var extra: [String: String] = [:]
        if isSigned, authorization == nil, (ids ?? jane).contains(#""registered":"jane""#) {
            extra["X-Countersign-Signature"] = try client.fixture.token(for: "jane")
        }
        return try #require(
            client.post(
                fetchPath,
                #"{"customer_ids":\#(ids ?? jane)\#(sync),"application_id":"default-application"}"#,
                authorization: authorization, extra: extra))
    }

    private func inbox(
        _ ids: String? = nil, since token: String? = nil, authorization: String? = nil
    ) throws -> ShippedClient.Inbox {
        try ShippedClient.decode(
            ShippedClient.Inbox.self, fetch(ids, since: token, authorization: authorization))
    }

    private func track(_ ids: String) {
        #expect(client.post("/track/v2/projects/{p}/customers", #"{"customer_ids":\#(ids)}"#)?.status == 200)
    }

    private func markRead(
        _ messages: [String], ids: String? = nil, authorization: String? = nil, signedBy user: String? = nil
    ) throws -> TestAnswer? {
        let list = messages.map { "\"\($0)\"" }.joined(separator: ",")
        return client.post(
            readPath,
            #"{"customer_ids":\#(ids ?? jane),"message_ids":[\#(list)],"sync_token":"1.1.1.0..x"}"#,
            authorization: authorization,
            extra: try user.map { ["X-Countersign-Signature": try client.fixture.token(for: $0)] } ?? [:])
    }

    @Test func blockedCustomerWithAValidTokenIsRejected() throws {
        _ = try turnOn()
        let token = try client.fixture.signingKey.sign(claims: [
            "sub": ["registered": "jane"], "exp": .integer(Int64(Date().timeIntervalSince1970) + 600),
        ])
        try client.edit {
            try $0.restrictions.put(
                UserRestriction(
                    key: "block", subject: .user, id: "jane", action: .block, requestsPerMinute: nil,
                    reason: "", sinceMilliseconds: 0, untilMilliseconds: nil), in: "shop")
        }
        let failed = try fetch(authorization: "Bearer " + token)
        #expect(failed.status == 503 && failed.headers["retry-after"] == "3600")
        let metrics = try #require(client.connection.get("/metrics"))
        #expect(!metrics.body.contains(#"result="accepted""#))
        try client.edit { try $0.restrictions.remove("block", from: "shop") }
        #expect(try fetch(authorization: "Bearer " + token).status == 200)
    }

    // MARK: Fetching

    @Test func messagesForAllAndForTheCustomerAreFetched() throws {
        try put("all")
        try put("janes", to: registered("jane"))
        try put("johns", to: registered("john"))
        try put("past", expires: 1)
        track(jane)
        let answer = try inbox()
        #expect(answer.success)
        #expect(Set((answer.messages ?? []).map(\.id)) == ["all", "janes"])
        let message = try #require(answer.messages?.first { $0.id == "janes" })
        #expect(message.type == "html")
        #expect(!message.is_read)
        #expect(abs(message.create_time - Date().timeIntervalSince1970) < 60)
        #expect(message.content?.title == "janes")
        // Neither the cookie alone nor the ID without a token returns her messages.
        #expect(try inbox(#"{"cookie":"C"}"#).messages?.map(\.id) == ["all"])
        #expect(try fetch(isSigned: false).json["messages"].map { "\($0)" }?.contains("janes") == false)
        #expect(try inbox(#"{"cookie":"D"}"#).messages?.map(\.id) == ["all"])
    }

    @Test func messagesOfAnIDThatIsNotTrackedYetAreFetched() throws {
        try put("janes", to: registered("jane"))
        track(#"{"cookie":"C"}"#)
        #expect(try inbox().messages?.map(\.id) == ["janes"])
    }

    @Test func aSyncTokenFetchesChanges() throws {
        track(jane)
        try put("one")
        let first = try inbox()
        #expect(first.messages?.map(\.id) == ["one"])
        let token = try #require(first.sync_token)
        #expect(try inbox(since: token).messages?.isEmpty == true)
        try put("two")
        let second = try inbox(since: token)
        #expect(second.messages?.map(\.id) == ["two"])
        #expect(try inbox(since: second.sync_token).messages?.isEmpty == true)
        // A changed message is returned again.
        try put("one")
        #expect(try inbox(since: second.sync_token).messages?.map(\.id) == ["one"])
    }

    @Test func aMessageReadOnAnotherDeviceIsSentAgainAsRead() throws {
        track(jane)
        try put("one")
        try put("two")
        let first = try inbox()
        let other = try inbox()
        #expect(try markRead(["one"], signedBy: "jane")?.body == #"{"success":true}"# + "\n")
        let later = try inbox(since: other.sync_token)
        #expect(later.messages?.map(\.id) == ["one"])
        #expect(later.messages?.first?.is_read == true)
        #expect(try inbox(since: later.sync_token).messages?.isEmpty == true)
        #expect(try inbox().messages?.filter(\.is_read).map(\.id) == ["one"])
        _ = first
    }

    /// Apps contain the API key, so it is public. It must not mark a customer's messages, even through a
    /// cookie that later joins the customer.
    @Test func theAPIKeyAloneCannotMarkAnIdentifiedCustomersMessagesAsRead() throws {
        track(jane)
        try put("all")
        try put("janes", to: registered("jane"))
        for user in [nil, "attacker"] {
            #expect(try markRead(["all", "janes"], signedBy: user)?.status == 200)
        }
        _ = try markRead(["janes"], ids: #"{"cookie":"evil"}"#)
        track(#"{"cookie":"evil","registered":"jane"}"#)
        #expect(try inbox().messages?.filter(\.is_read).isEmpty == true)
        #expect(try markRead(["all", "janes"], signedBy: "jane")?.status == 200)
        #expect(try inbox().messages?.filter(\.is_read).count == 2)
    }

    @Test func anUntrackedCookieMarksMessagesAsReadForItselfOnly() throws {
        try put("one")
        let before = try inbox(#"{"cookie":"N"}"#)
        #expect(try markRead(["one"], ids: #"{"cookie":"N"}"#)?.status == 200)
        let after = try inbox(#"{"cookie":"N"}"#, since: before.sync_token)
        #expect(after.messages?.first?.is_read == true)
        #expect(try inbox().messages?.first?.is_read == false)
    }

    @Test func aSyncTokenOfAMergedProfileFetchesEverything() throws {
        track(jane)
        try put("all")
        try put("janes", to: registered("jane"))
        track(#"{"cookie":"B"}"#)
        let anonymous = try inbox(#"{"cookie":"B"}"#)
        #expect(anonymous.messages?.map(\.id) == ["all"])
        track(#"{"cookie":"B","registered":"jane"}"#)
        let merged = try inbox(#"{"cookie":"B","registered":"jane"}"#, since: anonymous.sync_token)
        #expect(Set(merged.messages?.map(\.id) ?? []) == ["all", "janes"])
    }

    @Test func aNewlyJoinedIDAlsoFetchesOlderMessages() throws {
        track(#"{"cookie":"C"}"#)
        try put("phones", to: CustomerIdentifier(name: "phone", value: "1"))
        try put("all")
        let before = try inbox(#"{"cookie":"C"}"#)
        #expect(before.messages?.map(\.id) == ["all"])
        track(#"{"cookie":"C","phone":"1"}"#)
        let after = try inbox(#"{"cookie":"C"}"#, since: before.sync_token)
        #expect(after.messages?.contains { $0.id == "phones" } == true)
    }

    /// The sync token may be older than the token requirement. Old clients never recover from a 410.
    @Test func aClientWithoutATokenStartsOverWithItsSyncToken() throws {
        track(jane)
        try put("one")
        let token = try #require(try inbox().sync_token)
        let answer = try fetch(since: token, isSigned: false)
        #expect(answer.status == 200)
        #expect((answer.json["messages"] as? [Any])?.count == 1)
    }

    @Test func anInvalidSyncTokenGets410() throws {
        track(jane)
        track(#"{"cookie":"X"}"#)
        try put("one")
        let good = try #require(try inbox().sync_token)
        let foreign = try #require(try inbox(#"{"cookie":"X"}"#).sync_token)
        var newer = good.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        newer[2] = "999"
        for token in ["x", foreign, newer.joined(separator: "."), "2" + good.dropFirst()] {
            let answer = try fetch(since: token)
            #expect(answer.status == 410, "\(token)")
            #expect(answer.json["error"] as? String == "invalid sync token")
            #expect(answer.json["success"] as? Bool == false)
        }
        try client.edit { try $0.projects.endSyncTokens(of: "shop") }
        #expect(try fetch(since: good).status == 410)
        #expect(try inbox().messages?.count == 1)
    }

    @Test(arguments: [
        ("fetch", "{}"), ("fetch", #"{"customer_ids":{"cookie":"C"},"sync_token":7}"#), ("fetch", ""),
        ("markasread", #"{"customer_ids":{"cookie":"C"}}"#),
        ("markasread", #"{"customer_ids":{"cookie":"C"},"message_ids":"m"}"#),
        ("markasread", #"{"customer_ids":{"cookie":"C"},"message_ids":[7]}"#),
        ("markasread", #"{"message_ids":["m"]}"#),
    ])
    func invalidInboxRequestsAreRejectedWithAReason(path: String, body: String) throws {
        let answer = try #require(client.post("/webxp/projects/{p}/appinbox/" + path, body))
        #expect(answer.status == 400)
        #expect((answer.json["error"] as? String)?.isEmpty == false)
    }

    @Test func markingUnknownMessagesAsReadSucceeds() throws {
        track(jane)
        #expect(try markRead(["gone"])?.body == #"{"success":true}"# + "\n")
        #expect(try markRead([])?.body == #"{"success":true}"# + "\n")
        let database = try client.fixture.place.connection(to: "events")
        #expect(try database.first("SELECT count(*) FROM inbox_read") { $0.int(0) } == 0)
    }

    // MARK: Customer tokens

    private func token(
        _ subject: String, lifetime: Double = 600, kid: String = "key-1", secret: String
    ) -> String {
        let expires = Int64(Date().timeIntervalSince1970 + lifetime)
        let input =
            Base64URL.encode(Array(#"{"alg":"HS256","typ":"JWT","kid":"\#(kid)"}"#.utf8)) + "."
            + Base64URL.encode(Array(#"{"sub":\#(subject),"exp":\#(expires)}"#.utf8))
        return input + "."
            + Base64URL.encode(HMACSHA256.authenticate(Array(input.utf8), key: Array(secret.utf8)))
    }

    /// Sets the mode of customer tokens and returns the secret of a new key.
    private func turnOn(_ mode: CustomerTokens = .required) throws -> String {
        try client.edit { try $0.setCustomerTokens(mode, for: "shop") }
        let secret = try client.fixture.apps.projects.addCustomerTokenKey(id: "key-1", to: "shop")
        try client.fixture.gateway.refreshApps()
        return secret
    }

    @Test func aCustomerTokenOpensTheInboxOfItsCustomer() throws {
        let secret = try turnOn()
        track(jane)
        try put("janes", to: registered("jane"))
        let bearer = "Bearer " + token(#"{"registered":"jane"}"#, secret: secret)
        #expect(try inbox(authorization: bearer).messages?.map(\.id) == ["janes"])
        #expect(try markRead(["janes"], authorization: bearer)?.status == 200)
        #expect(try inbox(authorization: bearer).messages?.first?.is_read == true)
    }

    @Test func aCustomerTokenOfTheAppsKeyRingOpensTheInbox() throws {
        _ = try turnOn()
        try put("janes", to: registered("jane"))
        let signed = try client.fixture.signingKey.sign(claims: [
            "sub": ["registered": "jane"], "exp": .integer(Int64(Date().timeIntervalSince1970 + 600)),
        ])
        #expect(try inbox(authorization: "Bearer \(signed)").messages?.map(\.id) == ["janes"])
        let user = try client.fixture.token(for: "jane")
        #expect(try fetch(authorization: "Bearer \(user)").status == 401)
    }

    @Test func aCustomerTokenMustCoverTheIDsOfTheRequest() throws {
        let secret = try turnOn()
        track(#"{"cookie":"X","registered":"john"}"#)
        try put("johns", to: registered("john"))
        let bearer = "Bearer " + token(#"{"registered":"jane"}"#, secret: secret)
        for ids in [
            #"{"registered":"john"}"#, #"{"cookie":"X","registered":"john"}"#, #"{"cookie":"X"}"#,
            #"{"registered":"jane","phone":"1"}"#,
        ] {
            for answer in [
                try fetch(ids, authorization: bearer),
                try #require(try markRead(["johns"], ids: ids, authorization: bearer)),
            ] {
                #expect(ShippedClient.outcome(answer) != .notAuthorized(nil), "\(ids)")
                #expect(answer.authErrorCode == 21, "\(ids)")
            }
        }
        // Another customer's cookie next to the client's own ID returns none of that customer's messages.
        let mixed = try inbox(#"{"cookie":"X","registered":"jane"}"#, authorization: bearer)
        #expect(mixed.messages?.isEmpty == true)
        #expect(
            try markRead(["johns"], ids: #"{"cookie":"X","registered":"jane"}"#, authorization: bearer)?
                .status
                == 200)
        let johns = "Bearer " + token(#"{"registered":"john"}"#, secret: secret)
        #expect(try inbox(#"{"registered":"john"}"#, authorization: johns).messages?.first?.is_read == false)
        // A cookie in the token must match the request's cookie.
        let both = "Bearer " + token(#"{"registered":"jane","cookie":"C"}"#, secret: secret)
        #expect(try fetch(authorization: both).status == 200)
        #expect(try fetch(#"{"cookie":"X","registered":"jane"}"#, authorization: both).status == 401)
    }

    @Test func anInvalidCustomerTokenIsRejectedWithItsCode() throws {
        let secret = try turnOn()
        let good = #"{"registered":"jane"}"#
        let cases: [(String, Int)] = [
            (token(good, lifetime: -60, secret: secret), 22),
            (token(good, secret: String(repeating: "x", count: 32)), 27),
            (token(good, kid: "key-2", secret: secret), 27),
            (token(#""jane""#, secret: secret), 23), ("x.y", 20), ("", 26),
            ("Bearer " + token(good, secret: secret), 20),
        ]
        for (token, code) in cases {
            let answer = try fetch(authorization: "Bearer \(token)")
            guard case .notAuthorized(let text?) = ShippedClient.outcome(answer) else {
                Issue.record("the client cannot decode the error")
                continue
            }
            #expect(!text.isEmpty)
            #expect(answer.authErrorCode == code)
            #expect(answer.headers["www-authenticate"]?.hasPrefix("Bearer error=") == true)
            if !token.isEmpty { #expect(!answer.body.contains(token)) }
        }
    }

    @Test func theProjectDecidesWhichCredentialOpensTheInbox() throws {
        let key = "Token \(client.fixture.writeKey)"
        let bearer = "Bearer " + token(#"{"registered":"jane"}"#, secret: try turnOn(.off))
        #expect(try fetch(authorization: key).status == 200)
        #expect(try fetch(authorization: bearer).status == 401)
        try client.edit { try $0.setCustomerTokens(.allowed, for: "shop") }
        #expect(try fetch(authorization: key).status == 200)
        #expect(try fetch(authorization: bearer).status == 200)
        try client.edit { try $0.setCustomerTokens(.required, for: "shop") }
        #expect(try fetch(authorization: key).status == 401)
        #expect(try markRead(["m"], authorization: key)?.status == 401)
        #expect(try fetch(authorization: bearer).status == 200)
        // Some clients also send the token for static files, but never to the other endpoints.
        #expect(client.get("/wxstatic/projects/{p}/bundle-ios.json", authorization: bearer)?.status == 200)
        #expect(
            client.post("/webxp/s/{p}/inappmessages?v=1", #"{"customer_ids":{}}"#, authorization: bearer)?
                .status == 401)
        try client.edit { try $0.projects.deleteCustomerTokenKey(id: "key-1", of: "shop") }
        #expect(try fetch(authorization: bearer).status == 401)
    }

    @Test func withRequiredTokensTheAPIKeyAloneOpensNoIdentifiedInbox() throws {
        track(jane)
        try put("janes", to: registered("jane"))
        try client.edit { try $0.setEnforcement(.required, for: "shop") }
        #expect(try fetch(isSigned: false).status == 401)
        #expect(try inbox(#"{"cookie":"C"}"#).messages?.isEmpty == true)
    }
}
