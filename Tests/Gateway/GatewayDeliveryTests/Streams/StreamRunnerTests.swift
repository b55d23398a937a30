import CountersignCore
import CountersignGatewayTesting
import CountersignSQLite
import GatewayDelivery
import GatewayModel
import GatewayTestSupport
import Testing

@testable import GatewayStorage

/// Positions and alerts of streams, with manual clocks and without threads.
@Suite(.ownThreads, .timeLimit(.minutes(2)))
struct StreamRunnerTests {
    let bench: StreamBench

    init() throws { bench = try StreamBench() }

    private func turn(_ runner: DeliveryRunner) {
        runner.check()
        bench.pool.drain()
        runner.check()
    }

    private func position() throws -> Int64 {
        try bench.consumers.find(EventConsumerID(appID: "shop", kind: .stream, name: "out"))
            .partitions[0].committed
    }

    @Test func eventsAfterASeekAreHeldUntilTheStreamHasThemAgain() throws {
        _ = try bench.create(["hold_days": 3])
        try bench.store(4)
        let runner = try bench.runner()
        turn(runner)
        #expect(try bench.isAtEnd(position()))
        let before = try #require(try bench.consumers.progress(.stream).values.first)
        bench.stream.isAway = true
        bench.pass(1_000)
        try bench.directory.streams.seek("out", of: "shop", after: 0, at: bench.now.withLock { $0 })
        turn(runner)
        #expect(try position() == 0)
        let moved = try #require(try bench.consumers.progress(.stream).values.first)
        #expect(moved.failures > 0 && moved.deliveredMilliseconds != nil)
        #expect(moved.deliveredMilliseconds == before.deliveredMilliseconds)
        bench.stream.isAway = false
        bench.pass(60_000)
        turn(runner)
        #expect(bench.stream.positions == bench.stored + bench.stored)
        #expect(try bench.isAtEnd(position()))
    }

    @Test func aLaggingStreamIsReportedOnce() throws {
        _ = try bench.directory.setAlertWebhook(
            url: "https://alerts.example/in", secret: nil, for: "shop")
        _ = try bench.create(["alert_seconds": 60])
        try bench.store(3)
        bench.stream.isAway = true
        let runner = try bench.runner()
        func alerts() throws -> [String] {
            bench.pass(60_000)
            turn(runner)
            return try bench.directory.alerts.takeDue(at: bench.now.withLock { $0 })
                .filter { $0.attempt == 1 }.map { String(decoding: $0.body, as: UTF8.self) }
        }
        turn(runner)
        #expect(try alerts().isEmpty)
        let lagging = try alerts()
        #expect(lagging.count == 1 && lagging[0].contains(#""type":"stream.lagging""#))
        #expect(lagging[0].contains(#""lag_events":3"#) && lagging[0].contains(#""error":"cannot_connect""#))
        #expect(lagging[0].contains(#""stream":"out""#))
        #expect(try alerts().isEmpty)
        bench.stream.isAway = false
        #expect(try alerts().isEmpty)
        // The stream has caught up, so a new lag is reported again.
        bench.stream.isAway = true
        try bench.store(1)
        #expect(try alerts().isEmpty)
        #expect(try alerts().count == 1)
        try bench.directory.streams.delete("out", of: "shop")
        turn(runner)
        _ = try bench.create(["alert_seconds": 60])
        #expect(try alerts().count == 1, "a new stream of the same name is reported again")
    }

    @Test func invalidSettingsAreRejectedWithoutSecrets() throws {
        let wrong: [JSONObject] = [
            ["servers": "nats://lee:swordfish@n.example:4222"], ["servers": "https://n.example"],
            ["servers": ""], ["stream": "a.b"], ["stream": "a*"], ["stream": ""],
            ["subject": "{user}.x"], ["replicas": 2], ["nkey": "UABC"], ["nkey_seed_file": "/seed"],
            ["ca_file": "ca.pem"], ["credentials_file": "/a", "nkey": "UABC", "nkey_seed_file": "/b"],
        ]
        for members in wrong {
            #expect {
                _ = try bench.create(members)
            } throws: { error in
                let error = error as? GatewayError
                return error?.code == .invalid && error?.reason.contains("swordfish") == false
            }
        }
        _ = try bench.create()
        #expect(throws: GatewayError.self) { try bench.create() }
        #expect {
            _ = try bench.directory.streams.create(
                "other", of: "shop", ["servers": "nats://n.example:4222", "stream": "E"], after: 0, at: 0)
        } throws: { ($0 as? GatewayError)?.code == .conflict }
    }
}
