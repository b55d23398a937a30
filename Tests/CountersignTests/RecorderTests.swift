import CountersignCore
import CountersignTesting
import Foundation
import Testing

@testable import Countersign

struct RecorderTests {
    /// The thread-safety row of the complaint table: 32 threads that record, identify and flush at the same time.
    @Test func thirtyTwoThreadsLoseNothing() async throws {
        var bench = try Bench()
        defer { bench.removeFiles() }
        bench.configuration.limits.maximumUnsavedEvents = 100_000
        bench.configuration.batchEvents = 1_000
        let client = try bench.makeClient()
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<32 {
                group.addTask {
                    await withCheckedContinuation { continuation in
                        Thread {
                            for number in 0..<100 {
                                if number % 25 == 0 {
                                    client.identify(userID: "user-\(thread % 4)", token: "t.t.\(thread)")
                                }
                                client.track(
                                    "\(thread)-\(number)", properties: ["n": .integer(Int64(number))])
                            }
                            continuation.resume()
                        }.start()
                    }
                    _ = await client.flush()
                    _ = await client.snapshot()
                }
            }
        }
        #expect(await client.flush().isComplete)
        #expect(Set(bench.gateway.events).count == 3_200)
        #expect(bench.gateway.duplicates == 0)
        #expect(bench.transport.overlaps == 0)
        let snapshot = await client.snapshot()
        #expect(snapshot.sent == snapshot.recorded)
        #expect(snapshot.dropped == 0)
        await client.close()
    }

    @Test func eventsOfOneThreadStayInOrder() async throws {
        let bench = try Bench()
        defer { bench.removeFiles() }
        let client = try bench.makeClient()
        for number in 0..<500 { client.track("\(number)") }
        await client.flush()
        #expect(bench.gateway.events == (0..<500).map { "\($0)" })
        let ids = bench.gateway.stored.map(\.messageId)
        #expect(ids == ids.sorted(), "message ids are in time order")
        await client.close()
    }

    @Test func tooManyInMemoryAreDroppedAndCounted() async throws {
        var bench = try Bench()
        defer { bench.removeFiles() }
        bench.configuration.limits.maximumUnsavedEvents = 10
        let client = try bench.makeClient()
        // The storage thread is busy with something else.
        let gate = DispatchSemaphore(value: 0)
        client.storage.submit { _ in gate.wait() }
        for number in 0..<25 { client.track("\(number)") }
        #expect(client.recorder.losses.dropped == 15)
        gate.signal()
        await client.flush()
        #expect(bench.gateway.events == (0..<10).map { "\($0)" })
        #expect(await client.snapshot().dropped == 15)
        await client.close()
    }

    @Test func aWaitingCallerHearsWhyItsEventWasNotStored() async throws {
        var bench = try Bench()
        defer { bench.removeFiles() }
        bench.configuration.limits.maximumEventBytes = 1_000
        let client = try bench.makeClient()
        do {
            try await client.record("big", properties: ["x": .string(String(repeating: "x", count: 2_000))])
            Issue.record("it was stored")
        } catch let error as CountersignError {
            #expect(error.code == .eventTooLarge)
        }
        #expect(try await client.quarantinedEvents().map(\.code) == ["event_too_large"])
        await client.close()
        do {
            try await client.record("late")
            Issue.record("it was stored")
        } catch let error as CountersignError {
            #expect(error.code == .closed)
        }
        #expect(await client.flush().ending == .closed)
    }

    @Test func whatWasInMemoryIsOnDiskAfterClose() async throws {
        let bench = try Bench()
        defer { bench.removeFiles() }
        let client = try bench.makeClient()
        for number in 0..<1_000 { client.track("\(number)") }
        await client.close()
        let queue = try EventQueue(
            path: bench.configuration.instanceDirectory.appendingPathComponent("queue.sqlite").path,
            limits: QueueLimits(), clock: bench.clock)
        #expect(try queue.value(of: .rows) == 1_000)
    }

    @Test func logFormatsNothingUnlessAsked() async throws {
        var bench = try Bench()
        defer { bench.removeFiles() }
        let lines = Lock([String]())
        let made = Lock(0)
        bench.configuration.log = CountersignLog(
            isEnabled: { $0 >= .warning }, write: { level, text, _ in lines.withLock { $0.append(text) } })
        let log = try #require(bench.configuration.log)
        func expensive() -> [String: String] {
            made.withLock { $0 += 1 }
            return [:]
        }
        log(.debug, "quiet", expensive())
        #expect(made.withLock { $0 } == 0)
        log(.warning, "loud", expensive())
        #expect(made.withLock { $0 } == 1)
        #expect(lines.withLock { $0 } == ["loud"])
    }
}
