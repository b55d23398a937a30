import CountersignCore
import CountersignGatewayTesting
import Foundation
import GatewayTestSupport
import Testing

@testable import CountersignGateway
@testable import GatewayModel
@testable import GatewayStorage

/// Webhooks of a running gateway, by its admin API.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct WebhookRoutesTests {
    private func create(
        _ bench: AdminBench, _ body: String, _ headers: [String: String]
    ) throws -> AdminBench.Answer {
        try bench.ask("POST", "apps/shop/webhooks", body, headers)
    }

    /// Stores events of the user jane.
    private func store(_ bench: AdminBench, _ ids: String...) throws {
        let events = ids.map { trackEvent($0, user: "jane") }.joined(separator: ",")
        try bench.store(batch(events))
    }

    @Test func aWebhookIsCreatedDeliveredToChangedAndDeleted() throws {
        let bench = try AdminBench()
        let owner = try bench.token("admin")
        let server = try WebhookServer { _ in .answer(200, body: "thanks, jane") }
        defer { server.close() }
        let made = try create(
            bench, #"{"url":"\#(server.url)","allow_private":true,"name":"Order Placed"}"#, owner)
        #expect(made.status == 201, "\(made.body)")
        let id = try #require(made.json["id"] as? String)
        let secret = try #require(made.json["secret"] as? String)
        let key = try #require(WebhookSignature.key(secret))
        #expect(made.json["state"] as? String == "active" && made.json["batch_size"] as? Int == 100)

        try store(bench, "m-1", "m-2")
        #expect(server.waitForRequest())
        let request = try #require(server.requests.first)
        let timestamp = try #require(request.headers["webhook-timestamp"].flatMap(Int64.init))
        let messageID = try #require(request.headers["webhook-id"])
        let expected = WebhookSignature.headers(
            id: messageID, timestamp: timestamp, body: request.body, keys: [key])
        #expect(request.headers["webhook-signature"] == expected[2].value)
        let text = String(decoding: request.body, as: UTF8.self)
        #expect(text.hasPrefix(#"{"type":"events","app":"shop","events":["#) && text.contains("jane"))

        // Only roles that see user ids see the response of the attempt.
        let path = "apps/shop/webhooks/\(id)"
        bench.gateway.waitForWebhooks()
        let listed = try bench.items(path + "/deliveries", owner)
        #expect(listed.first?["message_id"] as? String == messageID)
        #expect(listed.first?["status"] as? Int == 200 && listed.first?["events"] as? Int == 2)
        #expect(listed.first?["answer"] as? String == "thanks, jane")
        let viewer = try bench.token("read")
        let seen = try bench.items(path + "/deliveries", viewer)
        #expect(seen.first?["answer"] as? String == "" && seen.count == listed.count)
        let shown = try bench.ask("GET", path, nil, viewer)
        #expect(shown.json["oldest_unread_ms"] is NSNull && shown.json["secret"] == nil)

        let tag = try #require(shown.headers["etag"])
        let change = #"{"user":"jane","batch_size":7}"#
        #expect(try bench.ask("PATCH", path, change, owner).status == 428)
        let changed = try bench.ask("PATCH", path, change, owner.merging(["If-Match": tag]) { $1 })
        #expect(changed.status == 200 && changed.json["batch_size"] as? Int == 7)
        #expect(try bench.ask("PATCH", path, change, owner.merging(["If-Match": tag]) { $1 }).status == 412)
        #expect(changed.json["user"] as? String == "jane")
        // A viewer sees pseudonyms, also in the audit log.
        #expect((try bench.ask("GET", path, nil, viewer).json["user"] as? String)?.hasPrefix("u-") == true)
        #expect(!(try bench.ask("GET", "audit", nil, viewer).body.contains("jane")))

        #expect(try bench.ask("DELETE", path, nil, owner).status == 204)
        #expect(try bench.ask("GET", path, nil, owner).status == 404)
        #expect(try bench.items("apps/shop/webhooks", owner).isEmpty)
    }

    @Test func aWebhookCanBeTestedReplayedPausedAndRotated() throws {
        let bench = try AdminBench()
        let owner = try bench.token("admin")
        let server = try WebhookServer { _ in .answer(200) }
        defer { server.close() }
        let made = try create(bench, #"{"url":"\#(server.url)","allow_private":true,"from":"start"}"#, owner)
        let path = "apps/shop/webhooks/\(try #require(made.json["id"] as? String))"
        try store(bench, "m-1")
        #expect(server.waitForRequest())
        let paused = try bench.ask("POST", path + "/pause", nil, owner)
        #expect(paused.json["state"] as? String == "paused")
        #expect((paused.json["paused"] as? [String: Any])?["reason"] as? String == "requested")
        let test = try bench.ask("POST", path + "/test", nil, owner)
        #expect(test.status == 202)
        #expect(server.waitForRequest())
        #expect(server.requests.last?.headers["webhook-id"] == test.json["message_id"] as? String)
        #expect(server.requests.last?.body == Array(#"{"type":"test"}"#.utf8))
        bench.gateway.waitForWebhooks()
        let first = try #require(server.requests.first?.headers["webhook-id"])
        #expect(try bench.ask("POST", path + "/replay", #"{"delivery":"\#(first)"}"#, owner).status == 202)
        #expect(server.waitForRequest())
        let replayed = String(decoding: server.requests.last?.body ?? [], as: UTF8.self)
        #expect(replayed.contains(#""replay":true"#) && replayed.contains("m-1"))
        for body in [#"{"delivery":"msg_none"}"#, "{}", #"{"from_seq":5,"to_seq":4}"#, #"{"from_seq":5}"#] {
            #expect(try bench.ask("POST", path + "/replay", body, owner).status == 422, "\(body)")
        }
        let rotated = try bench.ask("POST", path + "/rotate", #"{"hours":1}"#, owner)
        #expect(rotated.json["secret"] as? String != made.json["secret"] as? String)
        #expect(
            (rotated.json["old_secret"] as? [String: Any])?["until_ms"] as? Int64 == bench.now + 3_600_000)
        let resumed = try bench.ask("POST", path + "/resume", nil, owner)
        #expect(resumed.json["state"] as? String == "active")
    }

    @Test(arguments: ["start", "end"])
    func aWebhookBeginsAfterTheDeletedEvents(from: String) throws {
        let bench = try AdminBench()
        try bench.place.connection(to: "events").execute("INSERT INTO event_floor VALUES ('shop', 5)")
        let made = try create(
            bench, #"{"url":"https://127.0.0.1:1/","allow_private":true,"from":"\#(from)"}"#,
            try bench.token("admin"))
        #expect(made.status == 201 && made.json["committed_seq"] as? Int ?? 0 >= 5, "\(made.body)")
    }

    @Test func theAlertWebhookIsTestedAndItsAttemptsAreListed() throws {
        let bench = try AdminBench()
        let owner = try bench.token("admin")
        let path = "apps/shop/webhooks/alerts"
        #expect(try bench.ask("POST", path + "/test", nil, owner).status == 404)
        let server = try WebhookServer { _ in .answer(503, body: "later") }
        defer { server.close() }
        _ = try bench.apps.setAlertWebhook(
            url: server.url, secret: nil, allowsPrivateAddresses: true, for: "shop")
        let asked = try bench.ask("POST", path + "/test", nil, owner)
        #expect(asked.status == 202)
        #expect(server.waitForRequest())
        let request = try #require(server.requests.first)
        #expect(request.body == Array(#"{"type":"test"}"#.utf8))
        #expect(request.headers["webhook-id"] == asked.json["message_id"] as? String)
        #expect(request.headers["webhook-signature"]?.hasPrefix("v1,") == true)
        bench.gateway.waitForWebhooks()
        let listed = try bench.place.open().deliveries.deliveries(
            of: DeliveryRecord.alerts(of: "shop"), before: nil, limit: 10)
        #expect(listed.first?.kind == .alert && listed.first?.status == 503)
        #expect(listed.first?.answer == "later")
    }

    @Test func onlyAnOwnerMayAllowPrivateURLsAndURLsAreValidated() throws {
        let bench = try AdminBench()
        let writer = try bench.token("write")
        let inside = #"{"url":"https://10.0.0.1/in","allow_private":true}"#
        #expect(try create(bench, inside, writer).status == 403)
        let made = try create(bench, #"{"url":"https://shop.example/in"}"#, writer)
        #expect(made.status == 201)
        let path = "apps/shop/webhooks/\(try #require(made.json["id"] as? String))"
        let any = writer.merging(["If-Match": "*"]) { $1 }
        #expect(try bench.ask("PATCH", path, #"{"allow_private":true}"#, any).status == 403)
        for url in ["http://shop.example/", "ftp://shop.example", "https://u:p@shop.example/", "x"] {
            #expect(try create(bench, #"{"url":"\#(url)"}"#, writer).status == 422, "\(url)")
        }
        for body in [
            "{}", #"{"url":"https://a.example","batch_size":501}"#,
            #"{"url":"https://a.example","verdict":"good"}"#,
            #"{"url":"https://a.example","secret":"whsec_AA"}"#,
            #"{"url":"https://a.example","paused":null,"nonsense":1}"#,
        ] { #expect(try create(bench, body, writer).status == 422, "\(body)") }
        #expect(try create(bench, #"{"url":"https://a.example"}"#, bench.token("read")).status == 403)
    }

    @Test func aDeliveryInterruptedByAShutdownIsRepeated() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        let hangs = Lock(true)
        let server = try WebhookServer { _ in hangs.withLock { $0 } ? .hang : .answer(200) }
        defer { server.close() }
        _ = try fixture.apps.webhooks.create(
            of: "shop", ["url": .string(server.url), "allow_private": true], secret: nil, after: 0, at: 0)
        _ = try fixture.client().post(batch(trackEvent("m-1")), headers: ["X-Write-Key": fixture.writeKey])
        #expect(server.waitForRequest())
        fixture.gateway.stop()
        hangs.withLock { $0 = false }
        var configuration = fixture.place.configuration
        configuration.port = 0
        let again = try Gateway(configuration: configuration)
        defer {
            again.stop()
            // Deallocation would delete the fixture's folder.
            withExtendedLifetime(fixture) {}
        }
        try again.startInProcess()
        #expect(server.waitForRequest())
        let requests = server.requests
        #expect(requests.count == 2 && requests[0].body == requests[1].body)
        #expect(requests[0].headers["webhook-id"] == requests[1].headers["webhook-id"])
        again.waitForWebhooks()
        #expect(server.requests.count == 2)
    }
}
