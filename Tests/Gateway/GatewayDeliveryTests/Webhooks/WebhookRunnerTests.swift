import CountersignCore
import CountersignGatewayTesting
import CountersignTesting
import Foundation
import GatewayDelivery
import GatewayHTTP
import GatewayModel
import GatewayStorage
import GatewayTestSupport
import Testing

/// Deliveries to several endpoints, with an in-memory webhook and a simulated clock.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct WebhookRunnerTests {
    private let bench: DeliveryBench

    init() throws { bench = try DeliveryBench(.webhook) }

    @Test func aFailedDeliveryIsRepeatedUnchangedAlsoAfterARestart() throws {
        let endpoint = try bench.endpoint()
        bench.log.add(3)
        bench.answer { _ in 500 }
        bench.advance()
        bench.log.add(2)
        bench.advance(after: 4_999)
        #expect(bench.requests.count == 1)
        bench.advance(after: 1)

        let again = try DeliveryBench(after: bench)
        again.answer { _ in 200 }
        again.advance(after: 10_000)
        let sent = again.requests
        #expect(sent.map(\.events) == [[1, 2, 3], [1, 2, 3], [1, 2, 3], [4, 5]])
        #expect(Set(sent.prefix(3).map(\.messageID)).count == 1)
        #expect(sent[3].messageID != sent[0].messageID)
        let records = try again.deliveries(of: endpoint).reversed()
        #expect(records.map(\.attempt) == [1, 2, 3, 1])
        #expect(records.map(\.status) == [500, 500, 200, 200])
        #expect(records.map(\.error) == ["status", "status", nil, nil])
        #expect(records.first?.firstSequence == 1 && records.first?.lastSequence == 3)
    }

    /// A change between two attempts, and the events of each later request.
    enum Change: CaseIterable {
        case filter, smallerBatches, largerBatches, deletion, retention, secret, nothing

        var events: [[Int64]] {
            switch self {
            case .filter: [[2, 4], [6]]
            case .smallerBatches: [[1, 2], [3, 4], [5, 6]]
            case .deletion: [[1, 3, 4], [5, 6]]
            case .retention: [[3, 4], [5, 6]]
            case .largerBatches, .secret, .nothing: [[1, 2, 3, 4], [5, 6]]
            }
        }

        func make(_ bench: DeliveryBench, _ endpoint: WebhookEndpoint) throws {
            let webhooks = bench.directory.webhooks
            switch self {
            case .filter: try webhooks.change(endpoint.id, of: "shop", ["name": "even"], at: 0)
            case .smallerBatches: try webhooks.change(endpoint.id, of: "shop", ["batch_size": 2], at: 0)
            case .largerBatches: try webhooks.change(endpoint.id, of: "shop", ["batch_size": 50], at: 0)
            case .deletion: bench.log.state.withLock { $0.leftOut = [2] }
            case .retention: bench.log.state.withLock { $0.floor = 2 }
            case .secret:
                _ = try webhooks.rotateSecret(of: endpoint.id, of: "shop", to: nil, keepingOldFor: 1, at: 0)
            case .nothing: break
            }
        }
    }

    /// A receiver that drops repeated ids still receives every event.
    @Test(arguments: Change.allCases, [false, true])
    func aRetryKeepsItsIDOnlyWithTheSameEvents(
        change: Change, isTakenOver: Bool
    ) throws {
        let endpoint = try bench.endpoint(["batch_size": 4])
        bench.log.add(6)
        bench.answer { _ in 500 }
        bench.advance()
        try change.make(bench, endpoint)
        // Reads the changed settings.
        bench.runner.check()
        let next = try isTakenOver ? DeliveryBench(after: bench) : bench
        next.answer { _ in 204 }
        next.advance(after: 5_000)
        let first = try #require(next.requests.first)
        let later = next.requests.dropFirst()
        #expect(first.events == [1, 2, 3, 4])
        #expect(later.map(\.events) == change.events)
        #expect((later.first?.messageID == first.messageID) == (later.first?.events == first.events))
        #expect(Set(later.map(\.messageID)).count == later.count)
    }

    @Test(arguments: [false, true])
    func aRetriedReplayKeepsItsIDOnlyWithTheSameEvents(isTakenOver: Bool) throws {
        let endpoint = try bench.endpoint(["batch_size": 4])
        bench.log.add(4)
        bench.advance()
        bench.clearRequests()
        let webhooks = bench.directory.webhooks
        let id = try webhooks.request(.replay, of: endpoint.id, of: "shop", after: 0, through: 4, at: 0)
        bench.answer { _ in 500 }
        bench.advance()
        bench.advance(after: 5_000)
        try webhooks.change(endpoint.id, of: "shop", ["name": "odd"], at: 0)
        let next = try isTakenOver ? DeliveryBench(after: bench) : bench
        next.answer { _ in 204 }
        next.advance(after: 10_000)
        let sent = next.requests
        #expect(sent.map(\.events) == [[1, 2, 3, 4], [1, 2, 3, 4], [1, 3]])
        #expect(sent[0].messageID == id && sent[1].messageID == id && sent[2].messageID != id)
        #expect(try webhooks.requests().isEmpty)
    }

    @Test func aBatchThatIsTooLargeIsHalvedAtOnceAndGrowsAgain() throws {
        _ = try bench.endpoint(["batch_size": 8])
        bench.log.add(20)
        bench.answer { $0.events.count > 3 ? 413 : 200 }
        bench.advance()
        let sent = bench.requests
        #expect(sent.prefix(4).map(\.events) == [Array(1...8), Array(1...4), [1, 2], [3, 4, 5]])
        #expect(Set(sent.prefix(4).map(\.messageID)).count == 4)
        #expect(sent.filter { $0.events.count <= 3 }.flatMap(\.events) == Array(1...20))
    }

    @Test func aReplayThatIsTooLargeIsHalvedToo() throws {
        let endpoint = try bench.endpoint(["batch_size": 8])
        bench.log.add(8)
        bench.advance()
        bench.clearRequests()
        bench.answer { $0.events.count > 2 ? 413 : 200 }
        _ = try bench.directory.webhooks.request(
            .replay, of: endpoint.id, of: "shop", after: 0, through: 8, at: 0)
        bench.advance()
        let taken = bench.requests.filter { $0.events.count <= 2 }
        #expect(taken.flatMap(\.events) == Array(1...8))
        #expect(Set(bench.requests.map(\.messageID)).count == bench.requests.count)
    }

    @Test func aSingleEventThatIsTooLargeIsRetriedLikeAnyFailure() throws {
        let endpoint = try bench.endpoint()
        bench.log.add(1)
        bench.answer { _ in 413 }
        bench.advance()
        bench.advance(after: 4_999)
        #expect(bench.requests.count == 1)
        #expect(try bench.progress(endpoint)?.failures == 1)
        bench.advance(after: 1)
        #expect(bench.requests.count == 2)
    }

    @Test func aSlowReceiverDelaysNoOtherAndHasOneRequestAtATime() throws {
        let slow = try bench.endpoint()
        let others = try (0..<100).map { _ in try bench.endpoint() }
        bench.answer { $0.endpoint == slow.id ? nil : 200 }
        for _ in 1...3 {
            bench.log.add(5)
            bench.advance()
        }
        let sent = bench.requests
        #expect(sent.count { $0.endpoint == slow.id } == 1)
        #expect(sent.count { $0.endpoint != slow.id } == 3 * others.count)
        bench.answer { _ in 200 }
        bench.release()
        let late = bench.requests.filter { $0.endpoint == slow.id }
        #expect(late.map(\.events) == [[1, 2, 3, 4, 5], Array(6...15)])
    }

    @Test func aClosedWebhookCancelsItsRequestWithoutAFailure() throws {
        let endpoint = try bench.endpoint()
        let (way, answer) = (Lock<(any Way)?>(nil), Lock(""))
        let webhooks = Webhooks(bench.directory, try bench.storage.openDeliveries(), now: { Date() }) {
            _, _, _, isCancelled, done in
            way.withLock { $0 }?.close()
            done(isCancelled() ? WebhookAttempt(.init(.cancelled, reason: "")) : WebhookAttempt(status: 200))
        }
        let route = try #require(try webhooks.routes().first)
        let batch = DeliveryBatch(route, DeliveryProgress(committed: 0)) { _, _ in "" }
        way.withLock { $0 = webhooks.open(route.id) }
        way.withLock { $0 }?.accept(batch) { given in answer.withLock { $0 = "\(given)" } }
        #expect(try answer.withLock { $0 } == "notTried" && bench.deliveries(of: endpoint).isEmpty)
    }

    @Test func a410OrFiveDaysOfFailuresPauseAndSendAnAlert() throws {
        _ = try bench.directory.setAlertWebhook(
            url: "https://alerts.example/in", secret: nil, for: "shop")
        let endpoint = try bench.endpoint()
        bench.log.add(1)
        bench.answer { _ in 410 }
        bench.advance()
        func paused() throws -> WayPause? {
            try bench.directory.webhooks.endpoint(endpoint.id, of: "shop").pause
        }
        #expect(try paused()?.reason == .gone)
        #expect(try paused()?.by == "gateway")
        bench.advance(after: 86_400_000)
        #expect(bench.requests.count == 1)

        try bench.directory.webhooks.setPause(nil, of: endpoint.id, of: "shop", at: 0)
        bench.answer { _ in 503 }
        for _ in 0..<4 { bench.advance(after: 86_400_000) }
        #expect(try paused() == nil)
        for _ in 0..<2 { bench.advance(after: 86_400_000) }
        #expect(try paused()?.reason == .failing)
        let count = bench.requests.count
        bench.advance(after: 86_400_000)
        #expect(bench.requests.count == count)
        let alerts = try bench.directory.alerts.takeDue(at: bench.now.withLock { $0 })
        let texts = alerts.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(texts.count == 2 && texts.allSatisfy { $0.contains(#""type":"webhook.paused""#) })
        #expect(texts[0].contains(#""reason":"gone""#) && texts[1].contains(#""reason":"failing""#))
        let actions = try bench.directory.auditLog.entries(limit: 10).map(\.action)
        #expect(actions.prefix(3) == ["webhook.pause", "webhook.resume", "webhook.pause"])

        try bench.directory.webhooks.setPause(nil, of: endpoint.id, of: "shop", at: 0)
        bench.answer { _ in 204 }
        bench.advance()
        #expect(bench.requests.last?.events == [1])
        #expect(try bench.progress(endpoint)?.committed == 1)
    }

    @Test func replaysAndTestsDoNotMoveThePosition() throws {
        let endpoint = try bench.endpoint(["batch_size": 2])
        bench.log.add(6)
        bench.advance()
        bench.clearRequests()
        let webhooks = bench.directory.webhooks
        try webhooks.setPause(.init(.requested, by: "lee"), of: endpoint.id, of: "shop", at: 0)
        let test = try webhooks.request(.test, of: endpoint.id, of: "shop", at: 0)
        let replay = try webhooks.request(.replay, of: endpoint.id, of: "shop", after: 1, through: 4, at: 0)
        // Reads the pause and the requests.
        bench.runner.check()
        bench.log.add(2)
        bench.advance()
        let sent = bench.requests
        #expect(sent.map(\.isTest) == [true, false, false])
        #expect(sent.map(\.isReplay) == [false, true, true])
        #expect(sent.map(\.events) == [[], [2, 3], [4]])
        #expect(sent.prefix(2).map(\.messageID) == [test, replay])
        #expect(Set(sent.map(\.messageID)).count == 3)
        #expect(try bench.progress(endpoint)?.committed == 6)
        #expect(try webhooks.requests().isEmpty)
        #expect(try bench.deliveries(of: endpoint).prefix(3).map(\.kind) == [.replay, .replay, .test])
    }

    @Test func pendingTestsAndWebhooksAreLimited() throws {
        let endpoint = try bench.endpoint()
        func requestTest() throws {
            _ = try bench.directory.webhooks.request(.test, of: endpoint.id, of: "shop", at: 0)
        }
        for _ in 0..<WebhookStore.mostRequests { try requestTest() }
        #expect { try requestTest() } throws: { ($0 as? GatewayError)?.code == .conflict }
        for _ in 1..<WebhookStore.mostOfApp { _ = try bench.endpoint() }
        #expect { _ = try bench.endpoint() } throws: { ($0 as? GatewayError)?.code == .conflict }
    }

    @Test func theListOfDeliveriesIsBounded() throws {
        let endpoint = try bench.endpoint(["batch_size": 1])
        bench.log.add(DeliveryStore.mostOfEndpoint + 20)
        bench.advance()
        let kept = try bench.deliveries(of: endpoint)
        #expect(kept.count == DeliveryStore.mostOfEndpoint)
        #expect(kept.first?.lastSequence == 220 && kept.last?.lastSequence == 21)
        bench.advance(after: Int64(DeliveryStore.keptDays) * 86_400_000 + 3_600_000)
        #expect(try bench.deliveries(of: endpoint).isEmpty)
    }

    @Test func dataOfADeletedEndpointIsDeletedAlsoAfterAClockJump() throws {
        let right = bench.now.withLock { $0 }
        bench.advance(after: 365 * 86_400_000)
        bench.now.withLock { $0 = right }
        let endpoint = try bench.endpoint()
        bench.log.add(1)
        bench.advance()
        #expect(try !bench.deliveries(of: endpoint).isEmpty)
        try bench.directory.webhooks.delete(endpoint.id, of: "shop")
        bench.runner.wake()
        bench.advance(after: 3_600_000)
        #expect(try bench.deliveries(of: endpoint).isEmpty)
    }

    @Test func aDeliveryHasAtMostHalfAMebibyteOrOneEvent() throws {
        _ = try bench.endpoint(["batch_size": 500])
        bench.log.add(5, bytes: 200_000)
        bench.log.add(1, bytes: 600_000)
        bench.log.add(1)
        bench.advance()
        #expect(bench.requests.map(\.events) == [[1, 2], [3, 4], [5], [6], [7]])
    }

    @Test func aStoredResponseBodyIsShortenedAndHasNoControlCharacters() {
        let bytes = Array("ok\u{1b}[31m\u{202E}\n<b>é\u{0}".utf8) + [0xFF]
        #expect(DeliveryRecord.text(bytes) == "ok[31m<b>é\u{FFFD}")
        #expect(DeliveryRecord.text(Array(repeating: 0x61, count: 5_000)).utf8.count == 1_024)
    }

    @Test func twoSecretsSignUntilTheOldOneEnds() throws {
        let endpoint = try bench.endpoint()
        let now = bench.now.withLock { $0 }
        let secret = try bench.directory.webhooks.rotateSecret(
            of: endpoint.id, of: "shop", to: nil, keepingOldFor: 2, at: now)
        let rotated = try bench.directory.webhooks.endpoint(endpoint.id, of: "shop")
        #expect(rotated.secret == WebhookSignature.key(secret) && rotated.secret != endpoint.secret)
        let both = rotated.keys(atMilliseconds: now + 7_199_999)
        #expect(both == [rotated.secret, endpoint.secret])
        #expect(rotated.keys(atMilliseconds: now + 7_200_000) == [rotated.secret])
        let signatures = WebhookSignature.headers(id: "msg_1", timestamp: 1, body: [1], keys: both)[2].value
            .split(separator: " ")
        #expect(signatures.count == 2 && signatures.allSatisfy { $0.hasPrefix("v1,") })
        // Neither the response nor the audit log contains a secret.
        let text = String(decoding: rotated.json.bytes, as: UTF8.self)
        #expect(!text.contains(rotated.secret.hexadecimal) && !text.contains(endpoint.secret.hexadecimal))
        for entry in try bench.directory.auditLog.entries(limit: 10) {
            #expect(entry.after?.contains(rotated.secret.hexadecimal) != true)
        }
    }

    // The example of the Standard Webhooks reference libraries.
    @Test func theSignatureIsThatOfTheReferenceLibraries() throws {
        let key = try #require(WebhookSignature.key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
        let headers = WebhookSignature.headers(
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: 1_614_265_330,
            body: Array(#"{"test": 2432232314}"#.utf8), keys: [key])
        #expect(
            headers.map(\.value) == [
                "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330",
                "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ])
    }
}
