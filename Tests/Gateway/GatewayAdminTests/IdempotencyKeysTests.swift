import CountersignGateway
import CountersignGatewayTesting
import CountersignTesting
import Foundation
import GatewayTestSupport
import Testing

/// Repeated POST requests with the same `Idempotency-Key`.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct IdempotencyKeysTests {
    private func post(
        _ bench: AdminBench, _ headers: [String: String], key: String, body: String = #"{"description":"x"}"#,
        path: String = "apps/shop/write-keys"
    ) throws -> AdminBench.Answer {
        try bench.ask("POST", path, body, headers.merging(["Idempotency-Key": key]) { $1 })
    }

    @Test func aRepeatedIdempotencyKeyReplaysTheResponseWithItsSecret() throws {
        let bench = try AdminBench()
        let sender = try bench.token("write")
        let first = try post(bench, sender, key: "a")
        #expect(first.status == 201 && first.headers["idempotency-replayed"] == nil)
        let again = try post(bench, sender, key: "a")
        #expect(again.status == 201 && again.headers["idempotency-replayed"] == "true")
        #expect(again.json["write_key"] as? String == first.json["write_key"] as? String)
        #expect(again.headers["etag"] == first.headers["etag"])
        // The app was created with one write key.
        #expect(try bench.apps.writeKeys(of: "shop").count == 2)

        // With another idempotency key, sender or day, a new write key is created.
        #expect(try post(bench, sender, key: "b").headers["idempotency-replayed"] == nil)
        #expect(try post(bench, bench.token("write"), key: "a").headers["idempotency-replayed"] == nil)
        bench.clock.advance(by: 86_400)
        #expect(try post(bench, sender, key: "a").headers["idempotency-replayed"] == nil)
        #expect(try bench.apps.writeKeys(of: "shop").count == 5)
    }

    @Test func aReusedUserNameGetsNoReplayOfTheDeletedUser() throws {
        let bench = try AdminBench()
        _ = try bench.visitor(.owner, "root")
        let first = try post(bench, try bench.visitor(.operator, "kim").headers, key: "a")
        #expect(first.status == 201)
        try bench.apps.admins.deleteUser("kim")
        bench.clock.advance(by: 1)
        let other = try post(bench, try bench.visitor(.operator, "kim").headers, key: "a")
        #expect(other.status == 201 && other.headers["idempotency-replayed"] == nil)
        #expect(other.json["write_key"] as? String != first.json["write_key"] as? String)
    }

    @Test func manyKeysOfAViewerEvictNoKeyOfAnotherCaller() throws {
        let bench = try AdminBench()
        let (sender, viewer) = (try bench.token("write"), try bench.token("read"))
        let first = try post(bench, sender, key: "a")
        bench.clock.advance(by: 1)
        for key in 0...1_000 {
            let verified = try post(
                bench, viewer, key: "\(key)", body: #"{"token":"x"}"#, path: "apps/shop/tokens/verify")
            #expect(verified.status == 200)
        }
        #expect(try post(bench, sender, key: "a").body == first.body)
    }

    @Test func anIdempotencyKeyIsRejectedForAnotherRequest() throws {
        let bench = try AdminBench()
        let sender = try bench.token("write")
        #expect(try post(bench, sender, key: "a").status == 201)
        let other = try post(bench, sender, key: "a", body: #"{"description":"y"}"#)
        #expect(other.status == 422 && other.json["code"] as? String == "idempotency_key_reused")
        let elsewhere = try post(bench, sender, key: "a", body: #"{"id":"blog"}"#, path: "apps")
        #expect(elsewhere.json["code"] as? String == "idempotency_key_reused")
        #expect(try post(bench, sender, key: String(repeating: "k", count: 256)).status == 422)
        // GET ignores the header.
        let list = try bench.ask("GET", "apps", nil, sender.merging(["Idempotency-Key": "a"]) { $1 })
        #expect(list.status == 200)
    }

    @Test func aRejectionIsNotStoredForItsIdempotencyKey() throws {
        let bench = try AdminBench()
        let sender = try bench.token("write")
        #expect(try post(bench, sender, key: "a", body: #"{"id":"Bad Id"}"#, path: "apps").status == 422)
        #expect(try post(bench, sender, key: "a", body: #"{"id":"good"}"#, path: "apps").status == 201)
        // The stored response is returned only to an authenticated sender.
        for token in try bench.apps.apiTokens.all() { try bench.apps.apiTokens.delete(id: token.id) }
        #expect(try post(bench, sender, key: "a", body: #"{"id":"good"}"#, path: "apps").status == 401)
    }
}
