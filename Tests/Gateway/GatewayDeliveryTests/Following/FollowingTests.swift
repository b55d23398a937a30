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

@testable import GatewayDelivery

/// Backends that follow an app's events over HTTP.
@Suite(.timeLimit(.minutes(5)))
struct FollowingTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    /// A gateway with an app and a token that reads its events.
    private struct Bench {
        let fixture: GatewayFixture
        let client: any TestClient
        let token: String

        init(_ transport: TestTransport = .standard) throws {
            fixture = try GatewayFixture(transport, enforcement: .disabled)
            client = try fixture.client()
            token = try fixture.apps.apiTokens.create(
                name: "backend", scopes: [AdminToken.reader], appID: "shop"
            ).text
        }

        func store(_ events: String...) throws {
            let body = #"{"batch":[\#(events.joined(separator: ","))]}"#
            let answer = try #require(client.post(body, headers: ["X-Write-Key": fixture.writeKey]))
            #expect(answer.status == 200)
            try fixture.place.waitForTransactions()
        }

        func ask(
            _ method: String, _ path: String, _ body: String? = nil, token: String? = nil,
            headers: [String: String] = [:]
        ) throws -> TestAnswer {
            var headers = headers
            headers["Authorization"] = "Bearer " + (token ?? self.token)
            return try #require(
                client.send(method, "/v1/apps/shop/" + path, headers, body.map { Array($0.utf8) }))
        }

        func code(_ method: String, _ path: String, _ body: String? = nil, token: String? = nil) throws
            -> String
        {
            let answer = try ask(method, path, body, token: token)
            return "\(answer.status) \(answer.json["code"] as? String ?? "")"
        }
    }

    private func ids(_ answer: TestAnswer) -> [String] {
        (answer.json["events"] as? [[String: Any]] ?? []).compactMap { $0["message_id"] as? String }
    }

    private func lease(_ answer: TestAnswer) -> String? {
        (answer.json["lease"] as? [String: Any])?["id"] as? String
    }

    @Test func aReadersChangesOfConsumersAreAudited() throws {
        _ = try bench.ask("POST", "consumers", #"{"name":"billing","filter":{"user":"u"},"partitions":2}"#)
        _ = try bench.ask("POST", "consumers/billing/seek", #"{"from":"end"}"#)
        _ = try bench.ask("POST", "consumers/billing/poll")
        _ = try bench.ask("DELETE", "consumers/billing")
        // These requests change nothing, so they are not audited.
        _ = try bench.ask("DELETE", "consumers/billing")
        _ = try bench.ask("POST", "consumers", #"{"name":"billing"}"#, token: "wrong")
        let entries = try bench.fixture.apps.auditLog.entries(app: "shop", limit: 3)
        #expect(entries.map(\.action) == ["consumer.delete", "consumer.seek", "consumer.create"])
        #expect(entries.allSatisfy { $0.target == "billing" && $0.role == "reader" })
        #expect(entries.allSatisfy { $0.actor.hasPrefix("token:backend#") })
        #expect(entries.last?.after?.contains(#""partitions":2"#) == true)
        #expect(entries.last?.after?.contains("user") == false)
    }

    @Test(arguments: [".", "..", "-x", "--help"])
    func namesThatLookLikePathsOrOptionsAreRejected(name: String) throws {
        #expect(try bench.code("POST", "consumers", #"{"name":"\#(name)"}"#).hasPrefix("4"))
        let apps = bench.fixture.apps
        let hash = PasswordHash.ofNobody(cost: .password)
        #expect(throws: GatewayError.self) { try apps.createApp(id: name) }
        #expect(throws: GatewayError.self) { try apps.setProjectToken(name, for: "shop") }
        #expect(throws: GatewayError.self) {
            try apps.admins.createUser(name: name, role: .viewer, password: hash)
        }
        #expect(throws: GatewayError.self) { try apps.projects.addCustomerTokenKey(id: name, to: "shop") }
        #expect(throws: GatewayError.self) {
            try apps.projects.putInboxMessage(id: name, type: "push", content: "{}", in: "shop")
        }
        let stream = StreamSettings(name: name, appID: "shop", createdMilliseconds: 0, startSequence: 0)
        #expect { try stream.check() } throws: { "\($0)".contains("name") }
    }

    @Test func eventsAreReadPageByPageWithTheirBytes() throws {
        let odd = trackEvent("m-1", extra: #","properties":{"z":1.10,"a":"é"}"#)
        try bench.store(odd, trackEvent("m-2"), trackEvent("m-3", user: "user-2"))
        let first = try bench.ask("GET", "events?limit=2")
        #expect(first.status == 200)
        #expect(ids(first) == ["m-1", "m-2"])
        #expect(first.body.contains(#""body":"# + odd), "the text of members and numbers is unchanged")
        #expect(first.json["has_more"] as? Bool == true)
        let next = try #require(first.json["next"] as? String)
        let second = try bench.ask("GET", "events?limit=2&after=\(next)")
        #expect(ids(second) == ["m-3"])
        let end = try #require(second.json["next"] as? String)
        let empty = try bench.ask("GET", "events?after=\(end)")
        #expect(ids(empty) == [])
        #expect(empty.json["next"] as? String != nil, "an empty response has the next position")
        let event = try #require((first.json["events"] as? [[String: Any]])?.first)
        #expect(event["verdict"] as? String == "not_judged")
        let stored = try bench.fixture.place.open().log.follow(EventQuery(appID: "shop"), after: 0, limit: 1)
        #expect(event["seq"] as? Int == stored.events.first.map { Int($0.sequence) })
        let after = try bench.ask("GET", "events?after=\(try #require(event["position"] as? String))")
        #expect(ids(after) == ["m-2", "m-3"])
    }

    @Test(arguments: ["", "&wait=1"])
    func eventsDeletedByRetentionAreReportedWithoutLaterEvents(_ wait: String) throws {
        try bench.store(trackEvent("m-1"), trackEvent("m-2"))
        let events = try bench.ask("GET", "events").json["events"] as? [[String: Any]] ?? []
        let position = try #require(events.first?["position"] as? String)
        let last = try #require(events.last?["seq"] as? Int64)
        // Simulates that retention has deleted both events.
        try bench.fixture.place.connection(to: "events").execute(
            "INSERT INTO event_floor VALUES ('shop', \(last))")
        let answer = try bench.ask("GET", "events?after=\(position)&name=none" + wait)
        #expect(ids(answer).isEmpty && answer.json["events_missed"] as? Bool == true)
        let next = try #require(answer.json["next"] as? String)
        #expect(try bench.ask("GET", "events?after=\(next)").json["events_missed"] as? Bool == false)
    }

    @Test func repeatedAndLongParametersAreRejected() throws {
        for query in ["limit=1&limit=2", "name=a&name=a", "user=a&limit=1&user="] {
            let answer = try bench.ask("GET", "events?" + query)
            #expect(answer.status == 400 && answer.json["code"] as? String == "invalid_parameter", "\(query)")
        }
        // 512 bytes, each percent-encoded in three.
        let name = String(repeating: "%C3%A9", count: 256)
        #expect(try bench.ask("GET", "events?name=" + name).status == 200)
        #expect(try bench.ask("GET", "events?name=" + name + "a").status == 400)
    }

    @Test func linesAndCompressionFollowTheAcceptHeaders() throws {
        let event = trackEvent("m-1", extra: ",\n\"properties\":{}")
        try bench.store(event, trackEvent("m-2"))
        let lines = try bench.ask("GET", "events", headers: ["Accept": "application/x-ndjson"])
        #expect(lines.headers["content-type"] == "application/x-ndjson")
        #expect(lines.body.split(separator: "\n").count == 2)
        #expect(lines.headers["x-countersign-next"] != nil)
        let packed = try bench.ask("GET", "events?limit=1", headers: ["Accept-Encoding": "br, gzip;q=0.5"])
        #expect(packed.headers["content-encoding"] == nil, "a short response is not compressed")
        try bench.store(
            trackEvent("m-3", extra: #","properties":{"a":"\#(String(repeating: "x", count: 4_000))"}"#))
        let long = try bench.ask("GET", "events", headers: ["Accept-Encoding": "gzip"])
        #expect(long.headers["content-encoding"] == "gzip")
        let plain = try bench.ask("GET", "events", headers: ["Accept-Encoding": "gzip;q=0"])
        #expect(plain.headers["content-encoding"] == nil)
    }

    @Test(
        arguments: [
            ("type=identify", []), ("name=Order%20Placed", ["m-1", "m-2"]), ("user=user-2", ["m-2"]),
            // Forms and most libraries encode a space as `+`.
            ("name=Order+Placed", ["m-1", "m-2"]), ("name=Order%2BPlaced", []),
            ("verdict=verified", []), ("verdict=unverified", ["m-1", "m-2"]),
        ] as [(String, [String])])
    func filtersSelectEventsAndThePositionPassesAllOthers(query: String, found: [String]) throws {
        try bench.store(trackEvent("m-1"), trackEvent("m-2", user: "user-2"))
        let answer = try bench.ask("GET", "events?" + query)
        #expect(ids(answer) == found)
        let next = try #require(answer.json["next"] as? String)
        #expect(ids(try bench.ask("GET", "events?after=" + next)) == [], "all events are passed")
    }

    @Test func aFilterSelectsEventsByAStoredClaim() throws {
        var policy = ClaimsPolicy()
        policy.keptClaims = ["plan"]
        try bench.fixture.apps.setPolicy(policy, for: "shop")
        try bench.fixture.apps.setEnforcement(.required, for: "shop")
        try bench.fixture.gateway.refreshApps()
        for plan in ["pro", "free"] {
            let token = try bench.fixture.signingKey.sign(claims: [
                "sub": "user-1", "plan": .string(plan),
                "exp": .integer(Int64(Date().timeIntervalSince1970 + 600)),
            ])
            let headers = ["X-Write-Key": bench.fixture.writeKey, "Authorization": "Bearer " + token]
            let answer = try bench.fixture.client().post(batch(trackEvent(plan)), headers: headers)
            #expect(answer?.status == 200)
        }
        try bench.fixture.place.waitForTransactions()
        let answer = try bench.ask("GET", "events?claim=plan%3Dpro")
        #expect(ids(answer) == ["pro"])
        #expect(answer.body.contains(#""claims":{"plan":"pro"}"#))
        for (filter, status) in [("plan", 400), ("plan=free", 201)] {
            let made = try bench.ask("POST", "consumers", #"{"name":"c","filter":{"claim":"\#(filter)"}}"#)
            #expect(made.status == status)
        }
        #expect(ids(try bench.ask("POST", "consumers/c/poll")) == ["free"])
    }

    @Test func aReaderTokenGivesAccessToOneAppOnly() throws {
        _ = try bench.fixture.apps.createApp(id: "kiosk")
        let other = try bench.fixture.apps.apiTokens.create(name: "o", scopes: ["reader"], appID: "kiosk")
            .text
        let admin = try bench.fixture.apps.apiTokens.create(name: "a", scopes: ["admin"]).text
        #expect(try bench.code("GET", "events", token: other) == "403 forbidden")
        #expect(try bench.code("GET", "events", token: admin) == "403 forbidden")
        #expect(try bench.code("GET", "events", token: "csa_none") == "401 unauthenticated")
        let bare = try #require(bench.client.get("/v1/apps/shop/events"))
        #expect(bare.status == 401)
        #expect(bare.headers["www-authenticate"] == "Bearer")
        // Authentication and authorization precede the validation of parameters.
        for (method, path, body) in [("GET", "events?name=&limit=0", nil), ("POST", "consumers", "[")] {
            #expect(try bench.code(method, path, body, token: "csa_none") == "401 unauthenticated")
            #expect(try bench.code(method, path, body, token: other) == "403 forbidden")
            #expect(try bench.code(method, path, body).hasPrefix("400 "))
        }
        #expect(bench.client.get("/v1/apps/shop/events?name=")?.status == 401)
        let api = try #require(
            bench.client.get("/admin/api/apps", headers: ["Authorization": "Bearer " + bench.token]))
        #expect(api.status == 403)
        let tokens = bench.fixture.apps.apiTokens
        #expect(throws: GatewayError.self) { try tokens.create(name: "x", scopes: ["reader"]) }
        #expect(throws: GatewayError.self) { try tokens.create(name: "x", scopes: ["read"], appID: "shop") }
        #expect(throws: GatewayError.self) {
            try tokens.create(name: "x", scopes: ["reader", "read"], appID: "shop")
        }
        #expect(throws: GatewayError.self) { try tokens.create(name: "x", scopes: ["reader"], appID: "none") }
        let id = try #require(tokens.all().first { $0.name == "backend" }?.id)
        try tokens.delete(id: id)
        #expect(try bench.code("GET", "events") == "401 unauthenticated", "a deleted token is rejected")
    }

    @Test func aConsumerLeasesAcknowledgesAndContinues() throws {
        try bench.store(trackEvent("m-1"), trackEvent("m-2"), trackEvent("m-3"))
        let made = try bench.ask("POST", "consumers", #"{"name":"billing"}"#)
        #expect(made.status == 201)
        #expect(made.json["lag_events"] as? Int == 3)
        let first = try bench.ask("POST", "consumers/billing/poll", #"{"limit":2}"#)
        #expect(ids(first) == ["m-1", "m-2"])
        let taken = try bench.ask("POST", "consumers/billing/poll")
        #expect(taken.status == 200)
        #expect(lease(taken) == nil, "another worker has the lease")
        let one = try #require(lease(first))
        #expect(try bench.ask("POST", "consumers/billing/ack", #"{"lease":"\#(one)"}"#).status == 200)
        #expect(
            try bench.ask("POST", "consumers/billing/ack", #"{"lease":"\#(one)"}"#).status == 200,
            "a repeated acknowledgement succeeds")
        let second = try bench.ask("POST", "consumers/billing/poll")
        #expect(ids(second) == ["m-3"])
        let two = try #require(lease(second))
        #expect(try bench.ask("POST", "consumers/billing/release", #"{"lease":"\#(two)"}"#).status == 200)
        #expect(
            try bench.code("POST", "consumers/billing/ack", #"{"lease":"\#(two)"}"#) == "409 lease_expired")
        let third = try bench.ask("POST", "consumers/billing/poll")
        #expect(ids(third) == ["m-3"])
        let back = try bench.ask("POST", "consumers/billing/seek", #"{"from":"start"}"#)
        #expect(back.json["lag_events"] as? Int == 3)
        let three = try #require(lease(third))
        #expect(
            try bench.code("POST", "consumers/billing/ack", #"{"lease":"\#(three)"}"#) == "409 lease_expired")
        let all = try bench.ask("POST", "consumers/billing/poll")
        #expect(ids(all) == ["m-1", "m-2", "m-3"])
        let events = try #require(all.json["events"] as? [[String: Any]])
        let position = try #require(events[1]["position"] as? String)
        let four = try #require(lease(all))
        let acknowledged = try bench.ask(
            "POST", "consumers/billing/ack", #"{"lease":"\#(four)","position":"\#(position)"}"#)
        #expect(acknowledged.json["position"] as? String == position)
        let shown = try bench.ask("GET", "consumers/billing")
        #expect(shown.json["lag_events"] as? Int == 1)
        let list = try bench.ask("GET", "consumers")
        #expect((list.json["items"] as? [[String: Any]])?.compactMap { $0["name"] as? String } == ["billing"])
        #expect(try bench.ask("DELETE", "consumers/billing").status == 200)
        #expect(try bench.code("GET", "consumers/billing") == "404 consumer_not_found")
        #expect(try bench.code("POST", "consumers/billing/poll") == "404 consumer_not_found")
    }

    @Test func invalidRequestsAreRejectedWithoutAChange() throws {
        try bench.store(trackEvent("m-1"))
        for (path, code) in [
            ("events?after=x", "422 position_malformed"), ("events?limit=0", "400 invalid_parameter"),
            ("events?limit=1001", "400 invalid_parameter"), ("events?wait=61", "400 invalid_parameter"),
            ("events?verdict=good", "400 invalid_parameter"), ("events?claim=x", "400 invalid_parameter"),
            ("events?type=foo", "400 invalid_parameter"),
            ("events?wait_seconds=1", "400 invalid_parameter"), ("events?foo", "400 invalid_parameter"),
            ("consumers?limit=1", "400 invalid_parameter"), ("consumers/b?x=", "400 invalid_parameter"),
            ("events?after=\(String(repeating: "1", count: 300))", "400 invalid_parameter"),
            ("events?limit=", "400 invalid_parameter"), ("consumers/a%20b", "404 consumer_not_found"),
        ] { #expect(try bench.code("GET", path) == code, "\(path)") }
        #expect(try bench.ask("POST", "consumers", #"{"name":"b"}"#).status == 201)
        for (path, body, code) in [
            ("consumers", #"{"name":"b"}"#, "409 consumer_exists"),
            ("consumers", #"{"name":"a/b"}"#, "400 consumer_invalid"),
            ("consumers", "{}", "400 invalid_parameter"),
            ("consumers", #"{"name":"c","partitions":17}"#, "400 invalid_parameter"),
            ("consumers", #"{"name":"c","parts":2}"#, "400 invalid_parameter"),
            ("consumers", #"{"name":"c","hold_days":3}"#, "400 invalid_parameter"),
            ("consumers", #"{"name":"c","from":"start","time_ms":1}"#, "400 invalid_parameter"),
            ("consumers", #"{"name":"c","filter":{"x":1}}"#, "400 invalid_parameter"),
            ("consumers", #"{"name":"c","filter":{"type":"foo"}}"#, "400 invalid_parameter"),
            ("consumers?wait=1", #"{"name":"c"}"#, "400 invalid_parameter"),
            ("consumers", #"{"name":"c","position":"x"}"#, "422 position_malformed"),
            ("consumers", "[]", "400 invalid_json"),
            ("consumers/b/poll", #"{"limit":0}"#, "400 invalid_parameter"),
            ("consumers/b/poll", #"{"lease_seconds":4}"#, "400 invalid_parameter"),
            ("consumers/b/ack", "{}", "400 invalid_parameter"),
            ("consumers/b/ack", #"{"lease":"x"}"#, "409 lease_expired"),
            ("consumers/b/seek", "{}", "400 invalid_parameter"),
            ("consumers/none/poll", "{}", "404 consumer_not_found"),
            ("consumers", "{\(String(repeating: " ", count: 100_000))}", "413 body_too_large"),
            ("consumers", #"{"name":"c","filter":[]}"#, "400 invalid_parameter"),
        ] { #expect(try bench.code("POST", path, body) == code, "\(path) \(body)") }
        #expect(ids(try bench.ask("POST", "consumers/b/poll")) == ["m-1"])
        #expect(try bench.ask("POST", "consumers", #"{"name":"n","filter":null}"#).status == 201)
    }

    @Test func thePullAPIDoesNotFindConsumersOfWebhooks() throws {
        // The consumer needs a real webhook, because the gateway deletes consumers without one.
        let admin = try bench.fixture.apps.apiTokens.create(name: "admin", scopes: ["admin"]).text
        let made = try #require(
            bench.client.send(
                "POST", "/admin/api/apps/shop/webhooks", ["Authorization": "Bearer " + admin],
                Array(#"{"url":"https://shop.example/in"}"#.utf8)))
        let name = try #require(made.json["id"] as? String)
        #expect((try bench.ask("GET", "consumers").json["items"] as? [Any])?.isEmpty == true)
        #expect(try bench.code("DELETE", "consumers/\(name)") == "404 consumer_not_found")
        let seek = try bench.code("POST", "consumers/\(name)/seek", #"{"from":"end"}"#)
        #expect(seek == "404 consumer_not_found")
        let outside = try bench.fixture.place.open().openConsumers(with: nil, now: { 0 })
        let id = EventConsumerID(appID: "shop", kind: .webhook, name: name)
        #expect(try outside.find(id).id == id)
        withExtendedLifetime(bench) {}
    }

    @Test(.timeLimit(.minutes(5)))
    func aWaitingRequestGetsNewEvents() async throws {
        let bench = try Bench(.live)
        let end = try #require(try bench.ask("GET", "events").json["next"] as? String)
        #expect(try bench.ask("POST", "consumers", #"{"name":"b","from":"end"}"#).status == 201)
        DispatchQueue.global().async { [fixture = bench.fixture] in
            _ = try? fixture.client().post(
                batch(trackEvent("m-1")), headers: ["X-Write-Key": fixture.writeKey])
        }
        // The response has the event, whether it is stored before or after the request.
        #expect(ids(try bench.ask("GET", "events?wait=50&after=" + end)) == ["m-1"])
        #expect(ids(try bench.ask("POST", "consumers/b/poll", #"{"wait":50}"#)) == ["m-1"])
    }

    /// The test's connection reads for at most 20 seconds, so a request that keeps waiting has no answer.
    @Test(.timeLimit(.minutes(5)), arguments: ["GET events?wait=60", "POST consumers/b/poll"])
    func aRequestThatWaitsForEventsOfADeletedAppFails(target: String) throws {
        let bench = try Bench(.live)
        #expect(try bench.ask("POST", "consumers", #"{"name":"b","from":"end"}"#).status == 201)
        let waiting = try RawConnection(port: bench.fixture.gateway.port)
        let words = target.split(separator: " ")
        let body = words[0] == "POST" ? #"{"wait":60}"# : ""
        waiting.send(
            "\(words[0]) /v1/apps/shop/\(words[1]) HTTP/1.1\r\nHost: shop\r\n"
                + "Content-Length: \(body.utf8.count)\r\n"
                + "Content-Type: application/json\r\nAuthorization: Bearer \(bench.token)\r\n\r\n\(body)")
        #expect(try bench.ask("GET", "events").status == 200)
        _ = try bench.fixture.apps.deleteApp(id: "shop")
        // 404 if the request has waited, otherwise 401, because the app's tokens are deleted too.
        #expect([401, 404].contains(waiting.answer()?.status))
        #expect(try bench.code("GET", "events") == "401 unauthenticated")
    }

    @Test func aPollOfAnAppDeletedMeanwhileGetsAppNotFound() {
        func code(exists: Bool, wasAllowed: Bool) -> String? {
            FollowingDialect.rejection(of: .unknown, to: "shop", exists: exists, wasAllowed: wasAllowed)?.code
        }
        #expect(code(exists: false, wasAllowed: true) == "app_not_found")
        #expect(code(exists: true, wasAllowed: true) == "unauthenticated")
        #expect(code(exists: false, wasAllowed: false) == "unauthenticated")
    }

    /// A request whose client has hung up does not lease the next events.
    @Test(.timeLimit(.minutes(5)))
    func aDisconnectedPollLeasesNothing() throws {
        let bench = try Bench(.live)
        #expect(try bench.ask("POST", "consumers", #"{"name":"b","from":"end"}"#).status == 201)
        let gone = try RawConnection(port: bench.fixture.gateway.port)
        let body = #"{"wait":50,"lease_seconds":600}"#
        gone.send(
            "POST /v1/apps/shop/consumers/b/poll HTTP/1.1\r\nHost: shop\r\nContent-Length: \(body.utf8.count)\r\n"
                + "Content-Type: application/json\r\nAuthorization: Bearer \(bench.token)\r\n\r\n\(body)")
        gone.endSending()
        #expect(gone.isClosedByServer())
        try bench.store(trackEvent("m-1"))
        #expect(ids(try bench.ask("POST", "consumers/b/poll", #"{"wait":50}"#)) == ["m-1"])
    }

    /// The command line does this while a gateway runs.
    @Test(.onSQLite("PostgreSQL keeps its leases in the database"))
    func aSeekByAnotherProcessEndsTheLeases() throws {
        try bench.store(trackEvent("m-1"), trackEvent("m-2"))
        #expect(try bench.ask("POST", "consumers", #"{"name":"b"}"#).status == 201)
        let first = try bench.ask("POST", "consumers/b/poll", #"{"lease_seconds":600}"#)
        #expect(ids(first) == ["m-1", "m-2"])
        #expect(ids(try bench.ask("POST", "consumers/b/poll")) == [])
        let outside = try bench.fixture.place.open().openConsumers(with: nil, now: { 0 })
        let id = EventConsumerID(appID: "shop", kind: .pull, name: "b")
        _ = try outside.seek(id, to: .start)
        let shown = try bench.ask("GET", "consumers/b").json["partitions"] as? [[String: Any]]
        #expect(shown?.first?["leased_until_ms"] is NSNull)
        #expect(ids(try bench.ask("POST", "consumers/b/poll")) == ["m-1", "m-2"])
        // A consumer created again has no leases of the deleted one.
        try outside.delete(id)
        _ = try outside.create(id, EventConsumerSettings(), from: .start)
        #expect(ids(try bench.ask("POST", "consumers/b/poll")) == ["m-1", "m-2"])
        let old = try #require(lease(first))
        #expect(try bench.code("POST", "consumers/b/ack", #"{"lease":"\#(old)"}"#) == "409 lease_expired")
    }
}
