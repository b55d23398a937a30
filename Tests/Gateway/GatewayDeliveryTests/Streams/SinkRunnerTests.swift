import CountersignCore
import CountersignGatewayTesting
import CountersignSQLite
import GatewayDelivery
import GatewayModel
import GatewayTestSupport
import Testing

@testable import GatewayStorage

/// Leases, pauses, failures and alerts of sinks, with manual clocks and without threads.
@Suite(.ownThreads, .timeLimit(.minutes(2)))
struct SinkRunnerTests {
    let bench: StreamBench

    init() throws { bench = try StreamBench() }

    /// Turns until there is nothing to do for a while.
    private func turn(_ runner: SinkRunner, _ times: Int = 200) {
        for _ in 0..<times where runner.turn("shop/out").map({ $0 > 0 }) ?? true { return }
    }

    private func state() throws -> SinkState? { try bench.storage.sinks.states()["shop/out"] }

    private func consumer() throws -> EventConsumer {
        try bench.storage.openConsumers(with: nil, now: { 0 }).find(
            EventConsumerID(appID: "shop", kind: .sink, name: "out"))
    }

    @Test func oneOfTwoGatewaysHasASinkAndTheOtherTakesItOver() throws {
        _ = try bench.sink(["hold_days": 3])
        let (one, two) = (try bench.runner("one"), try bench.runner("two"))
        one.look()
        two.look()
        try bench.store(20)
        turn(one)
        #expect(bench.stream.positions == bench.stored)
        try bench.store(20)
        for _ in 0..<3 {
            bench.pass(1_000)
            turn(two)
            #expect(bench.stream.messages.count == 20)
        }
        // Simulates that the first runner was killed: its lease expires without a renewal.
        bench.pass(SinkStateStore.leaseMilliseconds)
        turn(two)
        #expect(bench.stream.positions == bench.stored)
        #expect(bench.stream.connections == 2)
        #expect(try bench.isAtEnd(consumer().partitions[0].committed))
        #expect(try consumer().settings.holdDays == 3)
        // The first runner returns without a lease and publishes nothing.
        try bench.store(5)
        turn(one)
        #expect(bench.stream.messages.count == 40)
        // A gateway that stops releases its leases.
        two.stop()
        bench.pass(1_000)
        turn(one)
        #expect(bench.stream.positions == bench.stored)
    }

    @Test func aFailureIsShownTriedAgainAndOver() throws {
        let sink = try bench.sink()
        try bench.store(10)
        let runner = try bench.runner("one")
        runner.look()
        bench.stream.isAway = true
        turn(runner)
        // An error of another epoch would not be shown.
        #expect(try state()?.error?.code == .cannotConnect && state()?.epoch == sink.epoch)
        #expect(try state()?.failingSinceMilliseconds == bench.now.withLock { $0 })
        #expect(runner.counts.map(\.isFailing) == [true])
        // No connection before the back-off ends.
        bench.stream.isAway = false
        turn(runner)
        #expect(bench.stream.connections == 0)
        for _ in 0..<3 {
            bench.pass(500)
            turn(runner)
        }
        #expect(bench.stream.positions == bench.stored)
        #expect(try state()?.error == nil && state()?.streamSequence == 10)
        #expect(runner.counts.map(\.isFailing) == [false] && runner.counts.map(\.published) == [10])
    }

    @Test func aPauseADeletionAndAMoveAreTakenOver() throws {
        _ = try bench.sink()
        try bench.store(4)
        let runner = try bench.runner("one")
        runner.look()
        try bench.directory.sinks.setPause(.init(by: "lee"), of: "out", of: "shop", at: 0)
        runner.look()
        turn(runner)
        #expect(bench.stream.messages.isEmpty)
        try bench.directory.sinks.setPause(nil, of: "out", of: "shop", at: 0)
        runner.look()
        turn(runner)
        #expect(bench.stream.positions == bench.stored)
        try bench.directory.sinks.seek("out", of: "shop", after: 0, at: 0)
        runner.look()
        turn(runner)
        #expect(bench.stream.positions == bench.stored + bench.stored)
        try bench.directory.sinks.delete("out", of: "shop")
        runner.look()
        #expect(runner.turn("shop/out") == nil)
        #expect(throws: ConsumerFailure.self) { try consumer() }
        #expect(try bench.storage.sinks.states().isEmpty)
    }

    /// Seeks like the admin API.
    private func seek(_ sequence: Int64) throws {
        try bench.directory.sinks.seek("out", of: "shop", after: sequence, at: bench.now.withLock { $0 })
        try bench.storage.openConsumers(with: nil, now: { 0 }).place(
            EventConsumerID(appID: "shop", kind: .sink, name: "out"), after: sequence)
    }

    private func position() throws -> Int64 { try consumer().partitions[0].committed }

    @Test func whatIsSentAgainIsHeldUntilItIsInTheStreamAgain() throws {
        _ = try bench.sink(["hold_days": 3])
        try bench.store(4)
        let runner = try bench.runner("one")
        runner.look()
        turn(runner)
        #expect(try bench.isAtEnd(position()))
        // A short backlog is sent again within a second, without a renewal of the lease in between.
        try seek(0)
        runner.look()
        turn(runner)
        #expect(bench.stream.positions == bench.stored + bench.stored)
        #expect(try bench.isAtEnd(position()))
        // The checkpoint has advanced and is not saved yet, the lease renewal is due, and the stream is
        // unreachable. Events that are to be sent again must stay held.
        for stop in [false, true] {
            bench.stream.isAway = false
            bench.pass(60_000)
            turn(runner)
            try bench.store(600)
            #expect(runner.turn("shop/out") == 0)
            try seek(0)
            runner.look()
            bench.pass(1_000)
            bench.stream.isAway = true
            if stop { runner.stop() } else { turn(runner) }
            #expect(try position() == 0)
        }
    }

    /// Runs a body while the table of the sinks' states is missing.
    private func withoutStates(_ body: () throws -> Void) throws {
        let file = try SQLiteConnection(path: bench.place.folder + "/" + SinkStateStore.fileName)
        try file.execute("ALTER TABLE sink_state RENAME TO away")
        try body()
        try file.execute("ALTER TABLE away RENAME TO sink_state")
    }

    @Test(.onSQLite("its file is broken")) func aStorageThatFailsIsAskedAgainAfterAWhile() throws {
        _ = try bench.sink()
        try bench.store(1)
        let runner = try bench.runner("one")
        runner.look()
        try withoutStates {
            for _ in 0..<3 { #expect((runner.turn("shop/out") ?? 0) > 0) }
            #expect(runner.counts.map(\.isFailing) == [true])
        }
        bench.pass(60_000)
        turn(runner)
        #expect(bench.stream.positions == bench.stored)
    }

    @Test(.onSQLite("its file is broken")) func whatCouldNotBeTakenOverIsTakenOverLater() throws {
        _ = try bench.sink()
        let states = try bench.storage.openSinks()
        #expect(try states.lease("shop/deleted", by: "one", at: 0))
        let runner = try bench.runner("one")
        try withoutStates { runner.look() }
        #expect(try bench.storage.sinks.states()["shop/deleted"] != nil)
        runner.look()
        #expect(try bench.storage.sinks.states()["shop/deleted"] == nil)
        #expect(runner.turn("shop/out") != nil)
    }

    @Test func aPausedSinkDoesNotFail() throws {
        _ = try bench.sink()
        try bench.store(1)
        let runner = try bench.runner("one")
        runner.look()
        bench.stream.isAway = true
        turn(runner)
        #expect(runner.counts.map(\.isFailing) == [true])
        try bench.directory.sinks.setPause(.init(by: "lee"), of: "out", of: "shop", at: 0)
        runner.look()
        turn(runner)
        #expect(runner.counts.map(\.isFailing) == [false])
    }

    @Test func whoIsBehindIsToldOfOnce() throws {
        _ = try bench.directory.setAlertWebhook(
            url: "https://alerts.example/in", secret: nil, for: "shop")
        _ = try bench.sink(["alert_seconds": 60])
        try bench.store(3)
        bench.stream.isAway = true
        let runner = try bench.runner("one")
        func alerts() throws -> [String] {
            bench.pass(60_000)
            turn(runner)
            runner.look()
            return try bench.directory.alerts.takeDue(at: bench.now.withLock { $0 })
                .filter { $0.attempt == 1 }.map { String(decoding: $0.body, as: UTF8.self) }
        }
        runner.look()
        #expect(try alerts().isEmpty)
        let told = try alerts()
        #expect(told.count == 1 && told[0].contains(#""type":"sink.lagging""#))
        #expect(told[0].contains(#""lag_events":3"#) && told[0].contains(#""error":"cannot_connect""#))
        #expect(try alerts().isEmpty)
        bench.stream.isAway = false
        #expect(try alerts().isEmpty)
        // It has caught up, so the next time is another one.
        bench.stream.isAway = true
        try bench.store(1)
        #expect(try alerts().isEmpty)
        #expect(try alerts().count == 1)
    }

    @Test func whatCannotBeIsRefusedAndNothingSecretIsSaid() throws {
        let wrong: [JSONObject] = [
            ["servers": "nats://lee:swordfish@n.example:4222"], ["servers": "https://n.example"],
            ["servers": ""], ["stream": "a.b"], ["stream": "a*"], ["stream": ""],
            ["subject": "{user}.x"], ["replicas": 2], ["nkey": "UABC"], ["nkey_seed_file": "/seed"],
            ["ca_file": "ca.pem"], ["credentials_file": "/a", "nkey": "UABC", "nkey_seed_file": "/b"],
        ]
        for members in wrong {
            #expect {
                _ = try bench.sink(members)
            } throws: { error in
                let error = error as? GatewayError
                return error?.code == .invalid && error?.reason.contains("swordfish") == false
            }
        }
        _ = try bench.sink()
        #expect(throws: GatewayError.self) { try bench.sink() }
        #expect {
            _ = try bench.directory.sinks.create(
                "other", of: "shop", ["servers": "nats://n.example:4222", "stream": "E"], after: 0, at: 0)
        } throws: { ($0 as? GatewayError)?.code == .conflict }
    }
}
