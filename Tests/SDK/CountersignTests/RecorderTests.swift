import CountersignCore
import CountersignSQLite
import CountersignTesting
import Foundation
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery

@Suite(.closing)
struct RecorderTests {
    @Test func thirtyTwoThreadsLoseNothing() async throws {
        let (bench, client) = try Bench.open {
            $0.limits.maximumUnsavedEvents = 100_000
            $0.batchEvents = 1_000
        }
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
    }

    enum StoreFault: Sendable, CaseIterable {
        case away, replaced, full, locked
    }

    private struct Named: RecordContent {
        let name: String
        var estimatedBytes: Int { name.utf8.count }

        func rendered(for record: EventRecord, anonymousID: String) -> [UInt8] {
            JSONValue.object([
                "type": "track", "messageId": .string(record.messageID), "event": .string(name),
                "anonymousId": .string(anonymousID), "timestamp": "2026-01-31T23:59:59.999Z",
            ]).bytes
        }
    }

    /// Returns the result of recording an event. The test's time limit ends the wait for a missing result.
    private func result(
        of name: String, by client: CountersignClient
    ) async throws -> Result<String, CountersignError> {
        try await completion { complete in
            client.pipeline.recorder.record(Named(name: name), completion: complete)
        }
    }

    /// Every call gets a result while the store fails.
    @Test(.timeLimit(.minutes(5)), arguments: StoreFault.allCases)
    func recordingResumesWithinASecondAfterAStoreFailure(fault: StoreFault) async throws {
        let (bench, client) = try Bench.open { $0.limits.maximumUnsavedEvents = 50 }
        client.identify(userID: "ada", token: "a.a.a")
        try await client.record("before")
        let directory = bench.configuration.instanceDirectory
        let aside = directory.deletingLastPathComponent().appendingPathComponent("aside")
        var other: SQLiteConnection?
        switch fault {
        case .away, .replaced:
            // Empties the queue first, so that the next batch has only the event of one caller.
            await client.flush()
            try await client.pipeline.whileNothingIsWritten {
                try FileManager.default.moveItem(at: directory, to: aside)
                if fault == .replaced { try Data().write(to: directory) }
            }
        case .full:
            try await client.pipeline.storage.perform { queue in
                try queue.connection.execute("PRAGMA max_page_count = 1")
            }
        case .locked:
            other = try SQLiteConnection(path: directory.appendingPathComponent("queue.sqlite").path)
            try other?.execute("BEGIN EXCLUSIVE")
        }
        var stored: [String] = []
        for number in 0..<5 {
            async let result = self.result(of: "lone \(number)", by: client)
            // Later events wait for the next attempt.
            if number > 0, fault == .replaced {
                bench.clock.advance(to: await bench.clock.waitForSleeper())
            }
            switch try await result {
            case .success: stored.append("lone \(number)")
            case .failure(let error): #expect(error.code == .notStored)
            }
        }
        #expect(stored.count == (fault == .replaced ? 0 : 5))
        for number in 0..<100 { client.track("tracked \(number)") }
        await client.pipeline.recorder.drain()
        let losses = client.pipeline.recorder.losses
        #expect(losses.unsaved <= 50)
        // Events are dropped only if they cannot be written to the log.
        #expect((await client.snapshot().dropped > 0) == (fault == .replaced))

        switch fault {
        case .away: break
        case .replaced: try FileManager.default.removeItem(at: directory)
        case .full:
            try await client.pipeline.storage.perform { queue in
                try queue.connection.execute("PRAGMA max_page_count = 1000000")
            }
        case .locked: try other?.execute("ROLLBACK")
        }
        if fault == .replaced {
            let start = bench.clock.uptime
            let next = await bench.clock.waitForSleeper()
            #expect(next - start <= 1)
            bench.clock.advance(to: next)
        }
        await client.pipeline.recorder.drain()
        _ = try await result(of: "after", by: client).get()
        #expect(await client.flush().isComplete)
        let events = bench.gateway.events
        #expect(Set(events).count == events.count)
        #expect(Set(events).isSuperset(of: stored + ["before", "after", "tracked 0"]))
        let snapshot = await client.snapshot()
        #expect(snapshot.unsaved == 0)
        #expect(events.count + snapshot.dropped >= 100)
    }

    // MARK: Write-ahead log

    /// Returns a copy of the files as after a kill, with `count` events that are only in the log.
    private func killed(
        _ client: CountersignClient, of bench: Bench, afterEvents count: Int
    ) async throws -> Bench {
        try await client.pipeline.whileStorageIsBusy {
            for number in 0..<count { try await client.record("event \(number)") }
            #expect(client.pipeline.recorder.losses.logged == count)
            return try bench.killedCopy()
        }
    }

    @Test func eventsOnlyInTheLogSurviveAKillAndArriveOnce() async throws {
        let (bench, client) = try Bench.open()
        client.identify(userID: "caf\u{E9}", token: "a.a.a")
        _ = try await client.record("taken over")
        _ = await client.snapshot()
        let copy = try await client.pipeline.whileStorageIsBusy {
            for number in 0..<20 { try await client.record("event \(number)") }
            #expect(client.pipeline.recorder.losses.logged == 20)
            return try bench.killedCopy()
        }
        for _ in 0..<3 {
            let next = try copy.makeClient()
            _ = await next.snapshot()
            await next.close()
        }
        let names = try FileManager.default.contentsOfDirectory(
            atPath: copy.configuration.instanceDirectory.path)
        #expect(!names.contains { $0.hasPrefix(WriteAheadLog.prefix) })
        let last = try copy.makeClient()
        _ = last.setUser("caf\u{E9}", token: "a.a.a")
        #expect(await last.flush().isComplete)
        #expect(copy.gateway.events == ["taken over"] + (0..<20).map { "event \($0)" })
        #expect(copy.gateway.duplicates == 0)
        #expect(copy.gateway.stored.allSatisfy { $0.userId == "caf\u{E9}" })
    }

    /// Another process may hold the queue file from the first start, so that the device id cannot be read.
    @Test func eventsWithoutAUserSurviveAKillWhileTheQueueFileIsBusy() async throws {
        let (bench, client) = try Bench.open()
        let copy = try await killed(client, of: bench, afterEvents: 20)
        let next = try copy.makeClient()
        #expect(await next.flush().isComplete)
        #expect(copy.gateway.events == (0..<20).map { "event \($0)" })
        let deviceID = try await next.pipeline.storage.perform { queue in try queue.anonymousID() }
        #expect(copy.gateway.stored.allSatisfy { $0.anonymousId == deviceID })
        // The process that was not killed uses the device id of its own queue file.
        try await client.record("later")
        #expect(await client.flush().isComplete)
        let ownID = try await client.pipeline.storage.perform { queue in try queue.anonymousID() }
        #expect(bench.gateway.stored.count == 21)
        #expect(bench.gateway.stored.allSatisfy { $0.anonymousId == ownID })
    }

    @Test func anEventIsNotWrittenBeforeItsUser() async throws {
        let (bench, client) = try Bench.open()
        let recorder = client.pipeline.recorder
        // Holding `writing` keeps the user unwritten, so no event may be taken.
        recorder.writing.withLock {
            client.identify(userID: "ada")
            #expect(recorder.nextBatch() == nil)
        }
        await client.flush()
        #expect(bench.gateway.stored.map(\.userId) == ["ada"])
    }

    @Test(.timeLimit(.minutes(1))) func eventsAreWrittenBeforeTheStorageThreadHasStarted() async throws {
        let bench = try Bench()
        let storage = bench.makeStorage()
        let gate = Handshake()
        storage.submit { _ in gate.block() }
        let recorder = Recorder(
            storage: storage, limits: QueueLimits(), clock: bench.clock, sessionID: "s", log: nil
        ) { _ in }
        let event = Event(.track, name: "first", payload: [:], dialect: bench.dialect)
        let result = await withCheckedContinuation { continuation in
            recorder.record(event) { continuation.resume(returning: $0) }
        }
        _ = try result.get()
        #expect(recorder.losses.logged == 1)
        gate.signal()
        await recorder.close()
        await storage.close()
    }

    @Test func aDeviceKeepsItsIDOverAStartWithABusyQueueFile() async throws {
        let (bench, first) = try Bench.open()
        try await first.record("before")
        #expect(await first.flush().isComplete)
        await first.close()
        let second = try bench.makeClient()
        _ = try await second.pipeline.whileStorageIsBusy { try await second.record("after") }
        #expect(await second.flush().isComplete)
        #expect(bench.gateway.events == ["before", "after"])
        #expect(Set(bench.gateway.stored.map(\.anonymousId)).count == 1)
    }

    @Test func aBurstWaitsForTheWriterAndLosesNothing() async throws {
        // The default limit has space for the whole burst, however slow the writer is.
        let (bench, client) = try Bench.open { $0.batchEvents = 1_000 }
        let recorder = client.pipeline.recorder
        try await client.pipeline.whileStorageIsBusy {
            let writerGate = await recorder.writer.hold()
            for number in 0..<64 { client.track("\(number)") }
            let start = ProcessInfo.processInfo.systemUptime
            for number in 64..<84 { client.track("\(number)") }
            // Each of these 20 calls waits for the held writer, for 5 ms. Load only makes the waits longer.
            #expect(ProcessInfo.processInfo.systemUptime - start >= 0.05)
            writerGate.signal()
            for number in 84..<3_000 { client.track("\(number)") }
            recorder.writer.sync {}
            #expect(recorder.losses.logged == 3_000)
        }
        #expect(await client.flush().isComplete)
        #expect(bench.gateway.events == (0..<3_000).map { "\($0)" })
    }

    /// The events exceed the memory limit, so they are read back from the log.
    @Test func eventsOnlyInTheLogReachTheQueueInOrder() async throws {
        let (bench, client) = try Bench.open {
            $0.limits.maximumUnsavedBytes = 2_000
            $0.batchEvents = 1_000
        }
        try await client.pipeline.whileStorageIsBusy {
            for number in 0..<100 {
                try await client.record(
                    "\(number)", properties: ["x": .string(String(repeating: "x", count: 100))])
            }
        }
        #expect(await client.flush().isComplete)
        #expect(bench.gateway.events == (0..<100).map { "\($0)" })
        #expect(await client.snapshot().dropped == 0)
    }

    /// A power failure may undo the removal of the log more than once.
    @Test func aRestoredLogIsNotCheckpointedTwice() async throws {
        let (bench, client) = try Bench.open()
        client.identify(userID: "ada", token: "a.a.a")
        _ = await client.snapshot()
        let copy = try await killed(client, of: bench, afterEvents: 20)
        let directory = copy.configuration.instanceDirectory
        let logs = try FileManager.default.contentsOfDirectory(atPath: directory.path).filter {
            $0.hasPrefix(WriteAheadLog.prefix)
        }.map { directory.appendingPathComponent($0) }.map { ($0, try Data(contentsOf: $0)) }
        let queue = try copy.openQueue()
        for round in 0..<3 {
            // Adopts the restored logs, as after a crash before their removal.
            for (file, data) in logs { try data.write(to: file) }
            for log in try WriteAheadLog.all(in: directory) {
                try queue.adopt(log, isOver: true)
            }
            if round > 0 { try FileManager.default.removeItem(at: logs[0].0) }
            try queue.deleteStaleCheckpoints(of: directory, except: "another")
        }
        let next = try copy.makeClient()
        _ = next.setUser("ada", token: "a.a.a")
        #expect(await next.flush().isComplete)
        #expect(copy.gateway.events.filter { $0.hasPrefix("event") } == (0..<20).map { "event \($0)" })
        #expect(copy.gateway.duplicates == 0)
        #expect(try WriteAheadLog.all(in: directory).isEmpty)
    }

    @Test func clientsThatOpenAQueueTogetherCheckpointALogOnce() async throws {
        let (bench, client) = try Bench.open()
        client.identify(userID: "ada", token: "a.a.a")
        _ = await client.snapshot()
        let copy = try await killed(client, of: bench, afterEvents: 200)
        let others = try (0..<4).map { _ in try copy.makeClient() }
        await withTaskGroup(of: Void.self) { group in
            for other in others { group.addTask { await other.pipeline.recorder.drain() } }
        }
        for other in others { await other.close() }
        let queue = try copy.openQueue()
        #expect(try queue.value(of: .rows) == 201)
        #expect(try queue.value(of: .recorded) == 201)
    }

    @Test func repeatedEntriesOfTheLogAreReadOnce() throws {
        let bench = try Bench()
        let directory = bench.configuration.instanceDirectory
        let log = WriteAheadLog(directory: directory, holder: LeaseOwner())
        func event(_ name: String) -> RenderedEvent {
            RenderedEvent(messageID: name, userID: nil, sessionID: "s", body: Array("{}".utf8))
        }
        #expect(try log.append([event("1"), event("2"), event("3")]).last?.sequence == 3)
        try log.append(numbered: [event("2").numbered(2), event("3").numbered(3)])
        log.rotate()
        try log.append(numbered: [event("3").numbered(3)])
        #expect(try log.append([event("4")]).last?.sequence == 4)
        let found = try #require(try WriteAheadLog.all(in: directory).first)
        #expect(found.id == log.id)
        #expect(try found.events(after: 0).events.map(\.messageID) == ["1", "2", "3", "4"])
        #expect(try found.events(after: 3).events.map(\.sequence) == [4])
        log.remove()
    }

    @Test func allIntactEventsOfADamagedLogAreRead() async throws {
        let (bench, client) = try Bench.open()
        client.identify(userID: "ada", token: "a.a.a")
        _ = await client.snapshot()
        let copies = try await client.pipeline.whileStorageIsBusy {
            for number in 0..<10 { try await client.record("event \(number)") }
            return try (0..<4).map { _ in try bench.killedCopy() }
        }
        for (damage, copy) in copies.enumerated() {
            let directory = copy.configuration.instanceDirectory
            let name = try #require(
                FileManager.default.contentsOfDirectory(atPath: directory.path).first {
                    $0.hasPrefix(WriteAheadLog.prefix)
                        && (try? Data(contentsOf: directory.appendingPathComponent($0)))?.range(
                            of: Data("event 9".utf8)) != nil
                })
            let file = directory.appendingPathComponent(name)
            var bytes = try Data(contentsOf: file)
            switch damage {
            case 0: bytes = bytes.prefix(bytes.count - 7)
            case 1: bytes[bytes.count - 100] ^= 1
            case 2: bytes[try #require(bytes.range(of: Data("event 4".utf8))).lowerBound] ^= 1
            default: bytes.append(contentsOf: Array(repeating: 0, count: 4_096))
            }
            try bytes.write(to: file)
            let next = try copy.makeClient()
            _ = next.setUser("ada", token: "a.a.a")
            #expect(await next.flush().isComplete)
            let lost = [0: 9, 1: 9, 2: 4][damage]
            #expect(
                copy.gateway.events.filter { $0.hasPrefix("event") }
                    == (0..<10).filter { $0 != lost }.map { "event \($0)" }, "\(damage)")
            // An event that was not written completely was never acknowledged.
            let snapshot = await next.snapshot()
            #expect(snapshot.unreadable == ([1, 2].contains(damage) ? 1 : 0), "\(damage)")
            #expect(snapshot.recorded == snapshot.sent + snapshot.unreadable, "\(damage)")
            await next.close()
        }
    }

    @Test func wipedEventsAreNotReadBackFromTheLog() async throws {
        let (bench, client) = try Bench.open()
        // Creates the device id.
        _ = try await client.record("first")
        await client.flush()
        // A power failure may undo the deletion of the log, so the files from before are restored.
        let before = try await killed(client, of: bench, afterEvents: 10)
        try await client.wipeData()
        try await client.record("after")
        let copy = try await client.pipeline.whileStorageIsBusy { try bench.killedCopy() }
        let old = before.configuration.instanceDirectory
        for name in try FileManager.default.contentsOfDirectory(atPath: old.path)
        where name.hasPrefix(WriteAheadLog.prefix) {
            let target = copy.configuration.instanceDirectory.appendingPathComponent(name)
            let data = try Data(contentsOf: old.appendingPathComponent(name))
            let isGone = (try? Data(contentsOf: target))?.isEmpty ?? true
            #expect(data.isEmpty || isGone)
            if !data.isEmpty, isGone { try data.write(to: target) }
        }
        let next = try copy.makeClient()
        #expect(await next.flush().isComplete)
        #expect(copy.gateway.events == ["after"])
    }

    @Test func theLogStaysShortWhileEventsAreRecorded() async throws {
        let (bench, client) = try Bench.open()
        client.identify(userID: "ada", token: "a.a.a")
        for number in 0..<20_000 {
            client.track("event \(number)")
            guard number % 500 == 0 else { continue }
            try await client.record("step")
            // Lets the storage thread run, also on a slow machine.
            try await client.pipeline.storage.run { _ in }
        }
        _ = await client.snapshot()
        try await client.record("one more")
        _ = await client.snapshot()
        let directory = bench.configuration.instanceDirectory
        let sizes = try FileManager.default.contentsOfDirectory(atPath: directory.path).filter {
            $0.hasPrefix(WriteAheadLog.prefix)
        }.map { try Data(contentsOf: directory.appendingPathComponent($0)).count }
        #expect(sizes.count == 3)
        #expect(sizes.reduce(0, +) < 4 << 20)
        await client.close()
        #expect(
            try !FileManager.default.contentsOfDirectory(atPath: directory.path).contains {
                $0.hasPrefix(WriteAheadLog.prefix)
            })
    }

    @Test func eventsOfOneThreadStayInOrder() async throws {
        let (bench, client) = try Bench.open()
        for number in 0..<500 { client.track("\(number)") }
        await client.flush()
        #expect(bench.gateway.events == (0..<500).map { "\($0)" })
        let ids = bench.gateway.stored.map(\.messageId)
        #expect(ids == ids.sorted(), "message ids are in time order")
    }

    @Test func eventsOverTheMemoryLimitAreDroppedAndCounted() async throws {
        let (bench, client) = try Bench.open { $0.limits.maximumUnsavedEvents = 10 }
        // Both threads that write to the log are blocked.
        let gate = await client.pipeline.storage.hold()
        let writerGate = await client.pipeline.recorder.writer.hold()
        for number in 0..<25 { client.track("\(number)") }
        #expect(client.pipeline.recorder.losses.dropped == 15)
        writerGate.signal()
        gate.signal()
        await client.flush()
        #expect(bench.gateway.events == (0..<10).map { "\($0)" })
        #expect(await client.snapshot().dropped == 15)
    }

    @Test func aTimedOutCallLeavesNoSignalForALaterCall() async throws {
        let (_, client) = try Bench.open()
        let recorder = client.pipeline.recorder
        let writerGate = await recorder.writer.hold()
        for number in 0..<70 { client.track("\(number)") }
        #expect(recorder.state.withLock { $0.waitingCallers } == 0)
        writerGate.signal()
        await recorder.drain()
        #expect(recorder.hasWritten.wait(timeout: .now()) == .timedOut)
    }

    @Test func recordThrowsTheReasonWhyAnEventWasNotStored() async throws {
        let (_, client) = try Bench.open { $0.limits.maximumEventBytes = 1_000 }
        do {
            try await client.record("big", properties: ["x": .string(String(repeating: "x", count: 2_000))])
            Issue.record("it was stored")
        } catch {
            #expect(error.code == .eventTooLarge)
        }
        #expect(try await client.quarantinedEvents().map(\.code) == ["event_too_large"])
        await client.close()
        do {
            try await client.record("late")
            Issue.record("it was stored")
        } catch {
            #expect(error.code == .closed)
        }
        #expect(await client.flush().ending == .closed)
    }

    @Test func closingWritesEventsInMemoryToDisk() async throws {
        let (bench, client) = try Bench.open()
        for number in 0..<1_000 { client.track("\(number)") }
        await client.close()
        let queue = try bench.openQueue()
        #expect(try queue.value(of: .rows) == 1_000)
    }
}
