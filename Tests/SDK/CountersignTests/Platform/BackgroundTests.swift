import CountersignCore
import CountersignTesting
import Foundation
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery

/// Delivery and sessions when the app enters the background. The tests replace the operating system.
@Suite(.closing, .timeLimit(.minutes(5)))
struct BackgroundTests {
    /// Stands in for `ProcessInfo.performExpiringActivity`.
    private final class System: Sendable {
        private struct State {
            var body: (@Sendable (Bool) -> Void)?
            var isHeld = false
        }

        private let state = Lock(State())
        private let isReleased = Handshake()

        var isHeld: Bool { state.withLock { $0.isHeld } }

        func perform(_ reason: String, _ body: @escaping @Sendable (Bool) -> Void) {
            state.withLock { state in
                state.body = body
                state.isHeld = true
            }
            Thread.detachNewThread { [self] in
                body(false)
                state.withLock { $0.isHeld = false }
                isReleased.signal()
            }
        }

        func expire() { state.withLock { $0.body }?(true) }

        func released() async {
            await isReleased.wait()
            #expect(!isHeld, "the background task has not ended")
        }
    }

    @Test func theBackgroundTaskEndsAfterWaitingEventsAreSent() async throws {
        var bench = try Bench()
        bench.configuration.flushPolicy = FlushPolicy(eventCount: nil, interval: nil, onBackground: true)
        let answer = Handshake()
        let gateway = bench.gateway
        bench.transport.setHandler { request in
            await answer.wait()
            return try gateway.answer(request)
        }
        let client = try bench.makeClient()
        try await client.record("A")
        // The writer is suspended, so B is not in the log yet.
        client.pipeline.recorder.writer.suspend()
        client.track("B")
        let system = System()
        client.pipeline.enterBackground(holding: { system.perform($0, $1) })
        await bench.transport.waitForRequests(1)
        #expect(system.isHeld)
        client.pipeline.recorder.writer.resume()
        answer.signal()
        await system.released()
        #expect(await client.snapshot().sent == 2)
        #expect(bench.transport.requests.count == 1, "both events are in one request")
    }

    @Test func withTheManualPolicyTheBackgroundTaskLastsUntilEventsAreStored() async throws {
        let (_, client) = try Bench.open()
        // The engine's start and a snapshot store the event too. The start must be over.
        await client.pipeline.engine.idle()
        client.track("A")
        let system = System()
        client.pipeline.enterBackground(holding: { system.perform($0, $1) })
        await system.released()
        let losses = client.pipeline.recorder.losses
        #expect((losses.unsaved, losses.logged) == (0, 0))
        #expect(await client.snapshot().queued == 1)
    }

    @Test func whenBackgroundTimeExpiresTheRequestIsCancelledAndItsEventKept() async throws {
        var bench = try Bench()
        bench.configuration.flushPolicy = FlushPolicy(eventCount: nil, interval: nil, onBackground: true)
        let isBrokenOff = Handshake()
        bench.transport.setHandler { _ in
            // This handshake is never signalled, so the wait ends when the request's task is cancelled.
            await Handshake().wait()
            isBrokenOff.signal()
            throw CancellationError()
        }
        let client = try bench.makeClient()
        try await client.record("A")
        let system = System()
        client.pipeline.enterBackground(holding: { system.perform($0, $1) })
        await bench.transport.waitForRequests(1)
        system.expire()
        await system.released()
        await isBrokenOff.wait()
        try Task.checkCancellation()
        await client.pipeline.engine.idle()
        let snapshot = await client.snapshot()
        #expect(snapshot.queued == 1)
        #expect(snapshot.lastError?.hasPrefix("cancelled") == true)
        #expect(snapshot.nextAttemptIn != nil, "the request is retried when the process runs")
    }

    @Test func theBackgroundTaskLastsWhileTheTokenProviderRuns() async throws {
        var bench = try Bench()
        bench.configuration.flushPolicy = FlushPolicy(eventCount: nil, interval: nil, onBackground: true)
        let isAsked = Handshake()
        let gate = Handshake()
        bench.configuration.tokenProvider = { _ in
            isAsked.signal()
            await gate.wait()
            return "p.p.p"
        }
        let system = System()
        let gateway = bench.gateway
        let wasHeld = Lock(false)
        bench.transport.setHandler { request in
            wasHeld.withLock { $0 = system.isHeld }
            return try gateway.answer(request)
        }
        let client = try bench.makeClient()
        client.setUser("ada", token: nil)
        try await client.record("A")
        client.pipeline.enterBackground(holding: { system.perform($0, $1) })
        await isAsked.wait()
        // After these turns the engine waits for the provider.
        for _ in 1...10 { await client.pipeline.engine.perform { [] } }
        #expect(system.isHeld)
        gate.signal()
        await system.released()
        #expect(wasHeld.withLock { $0 })
        #expect(await client.snapshot().sent == 1)
    }

    /// Returns a client in the background with one event, after the system has expired its activity.
    private func clientWhoseTimeIsUp(_ bench: Bench) async throws -> CountersignClient {
        let client = try bench.makeClient()
        try await client.record("A")
        let system = System()
        client.pipeline.enterBackground(holding: { system.perform($0, $1) })
        await system.released()
        system.expire()
        return client
    }

    @Test func afterTheBackgroundTimeNothingIsSentUntilTheForeground() async throws {
        let bench = try Bench()
        let client = try await clientWhoseTimeIsUp(bench)
        let result = await client.flush()
        #expect(result.batches.map(\.code) == ["cancelled"])
        #expect(bench.transport.requests.isEmpty)
        client.enterForeground()
        #expect(await client.flush().delivered == 1)
    }

    /// The system may resume a process, for example for a location update, and does not notify the process.
    @Test func aProcessThatRunsAMinuteLaterSendsAgain() async throws {
        let bench = try Bench()
        let client = try await clientWhoseTimeIsUp(bench)
        bench.clock.advance(by: 59)
        #expect(await client.flush().delivered == 0)
        bench.clock.advance(by: 1)
        #expect(await client.flush().delivered == 1)
    }

    @Test func theBackgroundTaskOfAClosedClientEndsAtOnce() async throws {
        let (bench, client) = try Bench.open { $0.flushPolicy = .automatic }
        client.track("A")
        await client.close()
        let system = System()
        client.pipeline.enterBackground(holding: { system.perform($0, $1) })
        await system.released()
        #expect(bench.transport.requests.isEmpty, "a closed client sends nothing")
    }

    @Test(arguments: ["UIApplication", "NSExtensionHost"])
    func lifecycleNotificationsOfAppsAndExtensionsAreObserved(prefix: String) {
        let center = NotificationCenter()
        let heard = Lock([String]())
        let observer = Observation.lifecycle(
            center: center, background: { heard.withLock { $0.append("background") } },
            foreground: { heard.withLock { $0.append("foreground") } })
        center.post(name: Notification.Name("\(prefix)DidEnterBackgroundNotification"), object: nil)
        center.post(name: Notification.Name("\(prefix)WillEnterForegroundNotification"), object: nil)
        withExtendedLifetime(observer) {}
        #expect(heard.withLock { $0 } == ["background", "foreground"])
    }

    @Test func notificationsAreNotObservedAfterTheEnd() {
        let center = NotificationCenter()
        let count = Lock(0)
        let name = Notification.Name("N")
        Observation(of: [name: { count.withLock { $0 += 1 } }], center: center).end()
        center.post(name: name, object: nil)
        #expect(count.withLock { $0 } == 0)
    }

    // MARK: Sessions

    private func tracker() -> SessionTracker {
        SessionTracker(timeout: 10, now: Date(timeIntervalSince1970: 1), uptime: 100)
    }

    private func foreground(_ tracker: inout SessionTracker, _ uptime: TimeInterval) -> Bool {
        tracker.enterForeground(uptime: uptime, now: Date(timeIntervalSince1970: uptime)).isNew
    }

    @Test func aBackgroundLaunchIsNotTheForegroundSession() {
        var tracker = tracker()
        let id = tracker.id
        #expect(foreground(&tracker, 3_700))
        #expect(tracker.id != id)
    }

    @Test func aForegroundLaunchIsOneSession() {
        var tracker = tracker()
        let id = tracker.id
        #expect(!foreground(&tracker, 101))
        #expect(!foreground(&tracker, 9_999))
        #expect(tracker.id == id)
    }

    @Test func afterAnEndedSessionTheForegroundAlwaysStartsANewOne() {
        var tracker = tracker()
        let id = tracker.id
        #expect(!foreground(&tracker, 101))
        #expect(tracker.end(uptime: 130) == 30)
        #expect(tracker.end(uptime: 140) == nil)
        #expect(tracker.id == id)
        #expect(foreground(&tracker, 141))
        #expect(tracker.id != id)
        // Time in the background does not count towards the session's duration.
        tracker.enterBackground(uptime: 161)
        let change = tracker.enterForeground(uptime: 999, now: Date(timeIntervalSince1970: 999))
        #expect(change.isNew && change.ended == 20)
    }

    @Test func backgroundTimeIsCountedFromTheFirstNotification() {
        var tracker = tracker()
        // The foreground was never reported before this call.
        tracker.enterBackground(uptime: 500)
        tracker.enterBackground(uptime: 505)
        #expect(!foreground(&tracker, 509))
        tracker.enterBackground(uptime: 600)
        #expect(foreground(&tracker, 610))
    }
}
