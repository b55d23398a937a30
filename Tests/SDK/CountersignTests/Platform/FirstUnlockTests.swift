import CountersignCore
import CountersignTesting
import Foundation
import Testing

@testable import Countersign
@testable import CountersignBloomreach
@testable import CountersignDelivery

/// A device that has not been unlocked since its start.
@Suite(.timeLimit(.minutes(5)))
struct FirstUnlockTests {
    @Test func workWaitsForTheFirstUnlock() async throws {
        let bench = try Bench()
        let isOpen = Lock(false)
        let asked = Lock([String]())
        let storage = Storage(
            directory: bench.configuration.instanceDirectory, limits: QueueLimits(), clock: bench.clock,
            log: nil,
            canOpen: { path in
                asked.withLock { $0.append(path) }
                return isOpen.withLock { $0 }
            })
        let order = Lock([Int]())
        for number in 1...3 { storage.submit { _ in order.withLock { $0.append(number) } } }
        let stored = Task { try await storage.perform { queue in try queue.anonymousID() } }
        var pauses: [TimeInterval] = []
        for _ in 1...8 {
            let instant = await bench.clock.waitForSleeper()
            pauses.append(instant - bench.clock.uptime)
            #expect(order.withLock { $0 }.isEmpty)
            if pauses.count == 8 { isOpen.withLock { $0 = true } }
            bench.clock.advance(to: instant)
        }
        #expect(try await !stored.value.isEmpty)
        #expect(order.withLock { $0 } == [1, 2, 3])
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60])
        #expect(
            Set(asked.withLock { $0 }.map { ($0 as NSString).lastPathComponent }) == ["reserve"],
            "opening and closing the queue file would release SQLite's locks")
        await storage.close()
    }

    private func makePipeline(_ bench: Bench, _ isOpen: Lock<Bool>) throws -> DeliveryPipeline {
        let settings = bench.configuration.deliverySettings
        let storage = Storage(
            directory: settings.directory, limits: settings.limits, clock: bench.clock, log: nil,
            canOpen: { _ in isOpen.withLock { $0 } })
        return try DeliveryPipeline(
            settings: settings, storage: storage,
            destination: bench.dialect,
            credentials: ProjectCredentialSource(
                stored: StoredTokens(
                    store: FileTokenStore(directory: bench.directory), storage: storage, log: nil),
                clock: bench.clock),
            transport: bench.transport, clock: bench.clock, random: { 1 })
    }

    /// Only the thread that removes the data waits for the first unlock. The app does not wait.
    @Test func aWipeBeforeTheFirstUnlockDoesNotBlock() async throws {
        let bench = try Bench()
        let isOpen = Lock(false)
        let pipeline = try makePipeline(bench, isOpen)
        let (returned, wiped) = (Handshake(), Lock(false))
        Thread {
            try? pipeline.wipeAndStop(isLasting: true) { wiped.withLock { $0 = true } }
            returned.signal()
        }.start()
        await returned.wait()
        #expect(!wiped.withLock { $0 })
        let instant = await bench.clock.waitForSleeper()
        isOpen.withLock { $0 = true }
        bench.clock.advance(to: instant)
        #expect(try await pipeline.storage.run { $0.hasOptedOut })
        #expect(wiped.withLock { $0 })
        await pipeline.close()
    }

    @Test func disablingBeforeTheFirstUnlockDoesNotBlock() async throws {
        let bench = try Bench()
        let isOpen = Lock(false)
        let pipeline = try makePipeline(bench, isOpen)
        let event = Event(.track, name: "event", payload: [:], dialect: bench.dialect)
        pipeline.recorder.record(event)
        let returned = Handshake()
        Thread {
            pipeline.setEnabled(false)
            returned.signal()
        }.start()
        await returned.wait()
        #expect(!pipeline.isEnabled)
        let error = await #expect(throws: CountersignError.self) { try await pipeline.store(event) }
        #expect(error?.code == .optedOut)
        let instant = await bench.clock.waitForSleeper()
        isOpen.withLock { $0 = true }
        bench.clock.advance(to: instant)
        #expect(try await pipeline.waitingBodies().count == 1, "the event before the call is kept")
        #expect(pipeline.storage.hasOptedOut)
        await pipeline.close()
    }

    /// The writer discards events that were recorded while an earlier opt-out was in effect.
    @Test func resumingBeforeTheFirstUnlockKeepsLaterEvents() async throws {
        let bench = try Bench()
        let isOpen = Lock(false)
        let directory = bench.configuration.deliverySettings.directory
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try Data().write(to: directory.appendingPathComponent(DataFolder.optOutName))
        let pipeline = try makePipeline(bench, isOpen)
        let event = Event(.track, name: "event", payload: [:], dialect: bench.dialect)
        pipeline.recorder.record(event)
        let (begun, recorded) = (Handshake(), Handshake())
        Thread {
            begun.signal()
            pipeline.setEnabled(true)
            pipeline.recorder.record(event)
            recorded.signal()
        }.start()
        await begun.wait()
        let instant = await bench.clock.waitForSleeper()
        isOpen.withLock { $0 = true }
        bench.clock.advance(to: instant)
        await recorded.wait()
        #expect(try await pipeline.waitingBodies().count == 1, "the event after the call")
        #expect(!pipeline.storage.hasOptedOut)
        await pipeline.close()
    }

    @Test func theFirstUnlockNotificationEndsTheWait() async {
        let clock = ManualClock()
        let center = NotificationCenter()
        let isOpen = Lock(false)
        let start = clock.uptime
        let waiting = Task { await FirstUnlock.wait(clock: clock, center: center) { isOpen.withLock { $0 } } }
        await clock.waitForSleeper()
        isOpen.withLock { $0 = true }
        center.post(name: FirstUnlock.notification, object: nil)
        await waiting.value
        #expect(clock.uptime == start)
    }

    @Test func aWaitThatIsCancelledEnds() async {
        let clock = ManualClock()
        let waiting = Task { await FirstUnlock.wait(clock: clock, center: NotificationCenter()) { false } }
        await clock.waitForSleeper()
        waiting.cancel()
        await waiting.value
    }

    @Test func missingOrReadableFilesDoNotWaitForTheFirstUnlock() throws {
        let folder = TemporaryFolder()
        #expect(FirstUnlock.canOpen(folder.path))
        try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
        #expect(FirstUnlock.canOpen(folder.path))
    }

    @Test(arguments: [(EPERM, true), (EACCES, false), (ENOENT, false), (EMFILE, false)])
    func onlyAFileLockedUntilFirstUnlockIsWaitedFor(error: Int32, mustWait: Bool) {
        #expect(FirstUnlock.mustWait(after: error) == mustWait)
    }
}
