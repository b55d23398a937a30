import CountersignCore
import CountersignTesting
import Foundation
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery

/// The engine's lease on a queue that another client shares, and `flush()` and `close()` with unwritten events.
@Suite(.closing, .timeLimit(.minutes(5)))
struct DeliveryEngineTests {
    /// Runs `whileAsked` while the engine has claimed events and reads their user's token.
    private struct WatchedStore: TokenStore {
        let whileAsked: @Sendable () throws -> Void

        func token(for userID: String) throws -> String? {
            try whileAsked()
            return "a.b.c"
        }

        func store(_ token: String, for userID: String) throws {}
        func removeToken(for userID: String) throws {}
        func removeAll() throws {}
    }

    /// Another client of the same queue.
    private struct CompetingClient: Sendable {
        let path: String
        let clock: ManualClock
        let holder = LeaseOwner()

        init(_ bench: Bench) {
            path = bench.queueFile.path
            clock = bench.clock
        }

        /// Returns nil if this client may send now, or the uptime at which another client's lease expires.
        func acquireLease() throws -> TimeInterval? {
            try EventQueue(path: path, limits: QueueLimits(), clock: clock).acquireLease(
                for: holder, uptime: clock.uptime, request: 30)
        }
    }

    @Test func noEventIsSentAfterTheLeaseIsLost() async throws {
        var bench = try Bench()
        let competitor = CompetingClient(bench)
        let lapse = Lock<TimeInterval?>(0)
        bench.configuration.tokenStore = WatchedStore {
            competitor.clock.advance(by: 61)
            let answer = try competitor.acquireLease()
            lapse.withLock { $0 = answer }
        }
        let client = try bench.makeClient()
        client.identify(userID: "ada")
        await client.flush()
        #expect(lapse.withLock { $0 } == nil)
        #expect(bench.transport.requests.isEmpty)
        bench.clock.advance(by: 61)
        #expect(await client.flush().delivered == 1)
    }

    @Test func theLeaseOutlastsTheLongestRequestSoFar() async throws {
        var bench = try Bench()
        let competitor = CompetingClient(bench)
        let lapses = Lock([TimeInterval?]())
        bench.configuration.tokenStore = WatchedStore {
            // A lease for a request of 30 s would have expired.
            competitor.clock.advance(by: 61)
            let answer = try competitor.acquireLease()
            lapses.withLock { $0.append(answer) }
        }
        let client = try CountersignClient(
            configuration: bench.configuration,
            dialect: NativeDialect(endpoint: bench.configuration.endpoint, writeKey: "wk_test", timeout: 300),
            transport: bench.transport, clock: bench.clock, random: { 1 })
        Closing.afterTest { [folder = bench.folder] in
            await client.close()
            withExtendedLifetime(folder) {}
        }
        client.track("of nobody")
        #expect(await client.flush().delivered == 1)
        client.identify(userID: "ada")
        #expect(await client.flush().delivered == 1)
        #expect(lapses.withLock { $0.count } == 1)
        #expect(lapses.withLock { $0.allSatisfy { $0 != nil } })
    }

    @Test func aClientThatIsClosedWhileItSendsLetsOthersSend() async throws {
        let bench = try Bench()
        bench.transport.setHandler { _ in
            // Never responds. The wait ends with the request's task.
            await Handshake().wait()
            throw CancellationError()
        }
        let client = try bench.makeClient()
        client.track("one")
        async let flush = client.flush()
        await bench.transport.waitForRequests(1)
        await client.close()
        #expect(await flush.ending == .closed)
        #expect(try CompetingClient(bench).acquireLease() == nil)
        // Keeps the client alive: a deallocated client holds no lease.
        withExtendedLifetime(client) {}
    }

    @Test func eventsBelongToTheSessionInWhichTheyAreRecorded() async throws {
        let (bench, client) = try Bench.open()
        var sessions: [String] = []
        for name in ["one", "two"] {
            if name == "two" { client.startSession() }
            client.track(name)
            sessions.append(await client.snapshot().sessionID)
        }
        #expect(Set(sessions).count == 2)
        #expect(await client.flush().delivered == 2)
        let body = try #require(bench.transport.requests.first).body
        let json = try #require(try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])
        let batch = try #require(json["batch"] as? [[String: Any]])
        #expect(batch.map { ($0["context"] as? [String: Any])?["sessionId"] as? String } == sessions)
    }

    // MARK: Pending writes

    /// Returns a client with one unwritten event. The client's writer is blocked until `gate` is signalled.
    private func clientThatWrites(_ bench: Bench) async throws -> (client: CountersignClient, gate: Handshake)
    {
        let client = try bench.makeClient()
        let gate = await client.pipeline.recorder.writer.hold()
        client.track("late")
        return (client, gate)
    }

    @available(macOS 15, iOS 18, *)
    @Test func aFlushSendsEventsThatAreStillBeingWritten() async throws {
        let bench = try Bench()
        let (client, gate) = try await clientThatWrites(bench)
        let executor = HeldExecutor()
        let flush = Task(executorPreference: executor) { await client.flush() }
        executor.runHeldJobs()
        // If `flush()` has notified the engine too early, the engine has now found no event.
        await client.pipeline.engine.idle()
        executor.open()
        gate.signal()
        #expect(await flush.value.delivered == 1)
        await client.close()
    }

    @available(macOS 15, iOS 18, *)
    @Test func closingStoresEventsThatAreStillBeingWritten() async throws {
        let bench = try Bench()
        let (client, gate) = try await clientThatWrites(bench)
        let snapshot = await client.snapshot()
        #expect((snapshot.queued, snapshot.unsaved) == (1, 0), "the snapshot has stored the event")
        client.track("later")
        let executor = HeldExecutor()
        let close = Task(executorPreference: executor) { await client.close() }
        executor.runHeldJobs()
        executor.open()
        gate.signal()
        await close.value
        client.pipeline.recorder.writer.sync {}
        #expect(try bench.openQueue().value(of: .rows) == 2)
        #expect(try WriteAheadLog.all(in: bench.configuration.instanceDirectory).isEmpty)
    }

    /// An app may close a client before the engine's loop has begun.
    @Test func anEngineThatWasStoppedFirstDoesNotStart() async throws {
        let (bench, client) = try Bench.open()
        let engine = DeliveryEngine(
            settings: client.pipeline.settings, storage: client.pipeline.storage,
            destination: bench.dialect, credentials: client.tokens, transport: bench.transport,
            clock: bench.clock, random: { 1 })
        await engine.stop()
        await engine.start()
        #expect(await engine.runner == nil)
    }
}

/// Holds the jobs of tasks, so that a test decides when each job runs. After `open()` all jobs run at once.
@available(macOS 15, iOS 18, *)
private final class HeldExecutor: TaskExecutor {
    private let held = Lock<[UnownedJob]?>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isHeld = held.withLock { held in
            held?.append(job)
            return held != nil
        }
        if !isHeld { DispatchQueue.global().async { self.run(job) } }
    }

    func runHeldJobs() {
        while let job = held.withLock({ $0?.isEmpty == false ? $0?.removeFirst() : nil }) { run(job) }
    }

    func open() {
        let jobs = held.withLock { held in
            defer { held = nil }
            return held ?? []
        }
        for job in jobs { DispatchQueue.global().async { self.run(job) } }
    }

    private func run(_ job: UnownedJob) { job.runSynchronously(on: asUnownedTaskExecutor()) }
}
