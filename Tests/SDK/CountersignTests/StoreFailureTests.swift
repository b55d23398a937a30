import CountersignCore
import CountersignSQLite
import CountersignTesting
import Foundation
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery

/// Storing events in the queue file when the disk, the device lock or another client prevents it.
@Suite(.closing, .timeLimit(.minutes(5)))
struct StoreFailureTests {
    /// A recorder and its store, with a simulated disk and device lock.
    private struct Fixture {
        let bench: Bench
        let storage: Storage
        let recorder: Recorder
        let isDurable = Lock(true)
        /// Arguments of the calls that notify the sender.
        let stored = Lock([Int]())

        init(
            isUnlocked: @escaping @Sendable () -> Bool = { true },
            empty: @escaping @Sendable (_ descriptor: Int32) -> Bool = WriteAheadLog.empty,
            change: (inout QueueLimits) -> Void = { _ in }
        ) throws {
            bench = try Bench()
            var limits = QueueLimits()
            change(&limits)
            storage = bench.makeStorage(limits, canOpen: { _ in isUnlocked() })
            recorder = Recorder(
                storage: storage, limits: limits, clock: bench.clock, userID: "ada", sessionID: "s", log: nil,
                makeDurable: { [isDurable] descriptor in
                    isDurable.withLock { $0 } && WriteAheadLog.makeDurable(descriptor)
                }, empty: empty
            ) { [stored] count in stored.withLock { $0.append(count) } }
            Closing.afterTest { [self] in await close() }
        }

        func record(_ name: String, size: Int = 0) async throws {
            _ = try await withCheckedThrowingContinuation { continuation in
                recorder.record(event(name, size)) {
                    continuation.resume(with: $0)
                }
            }
        }

        func track(_ name: String, size: Int = 0) {
            recorder.record(event(name, size))
        }

        private func event(_ name: String, _ size: Int) -> Event {
            Event(
                .track, name: name,
                payload: size == 0 ? [:] : ["x": .string(String(repeating: "x", count: size))],
                dialect: bench.dialect)
        }

        /// Names of the events in the queue file.
        func names() async throws -> [String] {
            try await storage.perform { queue in try queue.bodies() }.map { body in
                try JSONDecoder().decode(Name.self, from: Data(body)).event
            }
        }

        private struct Name: Decodable { let event: String }

        var reserve: URL { bench.configuration.instanceDirectory.appendingPathComponent("reserve") }

        var reserveBytes: Int {
            get throws { try Data(contentsOf: reserve).count }
        }

        func logs() throws -> [WriteAheadLog.Found] {
            try WriteAheadLog.all(in: bench.configuration.instanceDirectory)
        }

        func close() async {
            await recorder.close()
            await storage.close()
        }
    }

    // MARK: Checkpoints

    /// Simulates a full disk, or ends it. Small changes still fit into the existing pages.
    private func fill(_ storage: Storage, _ isFull: Bool) async throws {
        try await storage.perform { queue in
            try queue.connection.execute("PRAGMA max_page_count = \(isFull ? 1 : 1_000_000)")
        }
    }

    @Test func aFlushIsIncompleteWhileEventsAreOnlyInTheLog() async throws {
        let (bench, client) = try await Bench.signedIn()
        try await fill(client.pipeline.storage, true)
        try await client.record("big", properties: ["x": .string(String(repeating: "x", count: 20_000))])
        #expect(await client.flush().ending == .interrupted)
        #expect(await client.snapshot().lastError?.contains("full") == true)
        try await fill(client.pipeline.storage, false)
        #expect(await client.flush().isComplete)
        #expect(bench.gateway.events == ["big"])
        #expect(await client.snapshot().lastError == nil)
    }

    @Test func theSenderIsNotifiedAgainWhenACheckpointSucceedsAfterAFailure() async throws {
        let fixture = try Fixture()
        try await fixture.record("small")
        await fixture.recorder.drain()
        try await fill(fixture.storage, true)
        try await fixture.record("big", size: 20_000)
        await fixture.recorder.drain()
        #expect(fixture.recorder.losses.logged == 1)
        #expect(fixture.recorder.losses.lastError?.contains("full") == true)
        #expect(fixture.stored.withLock { $0 } == [1, 1])
        try await fill(fixture.storage, false)
        await fixture.recorder.drain()
        #expect(fixture.recorder.losses.logged == 0)
        #expect(fixture.recorder.losses.lastError == nil)
        #expect(fixture.stored.withLock { $0 } == [1, 1, 1])
    }

    @Test func anUnopenableQueueFileIsRetriedWithoutACall() async throws {
        let fixture = try Fixture(change: { $0.maximumUnsavedEvents = 20 })
        let file = fixture.bench.queueFile
        // A directory blocks the queue file's path.
        try FileManager.default.createDirectory(at: file, withIntermediateDirectories: true)
        for number in 0..<12 { try await fixture.record("\(number)") }
        let instant = await fixture.bench.clock.waitForSleeper()
        #expect(fixture.recorder.losses.logged == 12)
        try FileManager.default.removeItem(at: file)
        fixture.bench.clock.advance(to: instant)
        try await fixture.record("one more")
        #expect(try await fixture.names().count == 13)
        for number in 0..<12 { try await fixture.record("later \(number)") }
        try await fixture.storage.run { _ in }
        #expect(fixture.recorder.losses.logged < 12, "a checkpoint runs again once the log has grown")
    }

    /// Emptying a file can be slow on a busy disk.
    @Test func eventsAreWrittenWhileAFileOfTheLogIsEmptied() async throws {
        let (isEmptying, gate) = (Handshake(), Handshake())
        let fixture = try Fixture(empty: { descriptor in
            isEmptying.signal()
            gate.block()
            return ftruncate(descriptor, 0) == 0
        })
        try await fixture.record("first")
        await fixture.recorder.drain()
        try await fixture.record("second")
        async let drained: Void = fixture.recorder.drain()
        // The second transaction makes the first one durable.
        await isEmptying.wait()
        for number in 0..<64 { fixture.track("\(number)") }
        try await fixture.record("last")
        #expect(try fixture.logs().flatMap { try $0.events(after: 2).events }.count == 65)
        gate.signal()
        await drained
        #expect(try await fixture.names() == ["first", "second"] + (0..<64).map { "\($0)" } + ["last"])
    }

    @Test func idleLogsOfOtherClientsAreSearchedForOnceAMinute() async throws {
        let fixture = try Fixture()
        try await fixture.record("own")
        #expect(try await fixture.names() == ["own"])
        let directory = fixture.bench.configuration.instanceDirectory
        let gone = LeaseOwner()
        let event = RenderedEvent(
            messageID: "m", userID: "ada", sessionID: "s", body: Array(#"{"event":"other"}"#.utf8))
        let log = WriteAheadLog(directory: directory, holder: gone)
        try log.append([event])
        let name = try #require(
            try FileManager.default.contentsOfDirectory(atPath: directory.path).first {
                $0.contains(gone.id)
            })
        // The process of this log is alive and has just written to the log.
        fixture.bench.clock.advance(by: 61)
        #expect(try await fixture.names() == ["own"])
        let quietSince = Date(timeIntervalSinceNow: -700)
        for file in try FileManager.default.contentsOfDirectory(atPath: directory.path)
        where file.contains(gone.id) {
            try FileManager.default.setAttributes(
                [.modificationDate: quietSince], ofItemAtPath: directory.appendingPathComponent(file).path)
        }
        fixture.bench.clock.advance(by: 59)
        #expect(try await fixture.names() == ["own"])
        fixture.bench.clock.advance(by: 2)
        #expect(try await fixture.names() == ["own", "other"])
        #expect(FileManager.default.fileExists(atPath: directory.appendingPathComponent(name).path))
        log.remove()
    }

    // MARK: Disk failures

    @Test func theQueueFileStoresEventsThatTheLogCannotFlush() async throws {
        let fixture = try Fixture()
        try await fixture.record("before")
        fixture.isDurable.withLock { $0 = false }
        try await fixture.record("during")
        #expect(fixture.recorder.losses.logged == 0)
        fixture.isDurable.withLock { $0 = true }
        try await fixture.record("after")
        #expect(try await fixture.names() == ["before", "during", "after"])
    }

    @Test func onlyEventsThatCannotBeFlushedAreRejected() async throws {
        let fixture = try Fixture()
        let file = fixture.bench.queueFile
        try FileManager.default.createDirectory(at: file, withIntermediateDirectories: true)
        fixture.isDurable.withLock { $0 = false }
        fixture.track("tracked")
        let error = await #expect(throws: CountersignError.self) { try await fixture.record("rejected") }
        #expect(error?.code == .notStored)
        try FileManager.default.removeItem(at: file)
        fixture.isDurable.withLock { $0 = true }
        try await fixture.record("after")
        #expect(try await fixture.names() == ["tracked", "after"])
    }

    /// After a failed fsync the system drops the dirty pages, and the next fsync succeeds.
    @Test func aLogWhoseFlushFailedIsNotUsedAgain() throws {
        let bench = try Bench()
        let answers = Lock([false, true, true])
        let log = WriteAheadLog(
            directory: bench.configuration.instanceDirectory, holder: LeaseOwner(),
            makeDurable: { _ in answers.withLock { $0.removeFirst() } })
        let event = RenderedEvent(messageID: "m", userID: nil, sessionID: "s", body: [])
        try log.append([event])
        #expect(throws: CountersignError.self) { try log.synchronize() }
        try log.append([event])
        #expect(throws: CountersignError.self) { try log.synchronize() }
        log.restart()
        try log.append([event])
        try log.synchronize()
        log.remove()
    }

    /// If the log moves to a new file during a flush, the new file must be flushed too.
    @Test func eventsMovedToANewLogDuringAFlushAreFlushedThere() throws {
        let bench = try Bench()
        let flushed = Lock(Set<Int32>())
        let meanwhile = Lock<[@Sendable () -> Void]>([])
        let log = WriteAheadLog(
            directory: bench.configuration.instanceDirectory, holder: LeaseOwner(),
            makeDurable: { descriptor in
                meanwhile.withLock { $0.popLast() }?()
                return flushed.withLock { $0.insert(descriptor).inserted }
            })
        let event = RenderedEvent(messageID: "m", userID: nil, sessionID: "s", body: [])
        try log.append([event])
        meanwhile.withLock { $0 = [{ log.restart(keeping: [event.numbered(1)]) }] }
        try log.synchronize()
        #expect(flushed.withLock { $0.count } == 2, "the new file is flushed too")
        log.remove()
    }

    /// A kill or a power failure during a restart must not lose an event.
    @Test(arguments: [true, false]) func aRestartDeletesFilesOnlyOnceTheirEventsAreDurableElsewhere(
        isDurable: Bool
    ) throws {
        let bench = try Bench()
        let directory = bench.configuration.instanceDirectory
        @Sendable func events() throws -> [[String]] {
            try WriteAheadLog.all(in: directory).flatMap(\.paths).sorted().map { path in
                try WriteAheadLog.Frame.read(contentsOf: path).events.map(\.messageID)
            }.filter { !$0.isEmpty }
        }
        let seen = Lock([[String]]())
        let log = WriteAheadLog(
            directory: directory, holder: LeaseOwner(),
            makeDurable: { _ in
                seen.withLock { $0 = (try? events()) ?? [] }
                return isDurable
            })
        let event = RenderedEvent(messageID: "m", userID: nil, sessionID: "s", body: [])
        let appended = try log.append([event])
        #expect(log.restart(keeping: appended) == isDurable)
        #expect(seen.withLock { $0 } == [["m"], ["m"]])
        #expect(try events() == [["m"]])
        log.remove()
        #expect(try events().isEmpty)
    }

    /// A power failure can undo the last transaction of the queue file, so the log must still have its events.
    @Test func aLogThatCannotBeFlushedKeepsEventsThatTheQueueFileMayLose() async throws {
        let fixture = try Fixture()
        try await fixture.record("moved")
        await fixture.recorder.drain()
        try await fill(fixture.storage, true)
        fixture.isDurable.withLock { $0 = false }
        await #expect(throws: CountersignError.self) { try await fixture.record("big", size: 20_000) }
        #expect(try fixture.logs().flatMap { try $0.events(after: 0).events }.first?.sequence == 1)
        fixture.isDurable.withLock { $0 = true }
        try await fixture.record("also big", size: 20_000)
        #expect(try fixture.logs().flatMap { try $0.events(after: 0).events }.map(\.sequence) == [1, 3])
        try await fill(fixture.storage, false)
        #expect(try await fixture.names() == ["moved", "also big"])
    }

    @Test func aLogThatFailedToRestartConfirmsNoEvent() throws {
        let bench = try Bench()
        let directory = bench.configuration.instanceDirectory
        let log = WriteAheadLog(directory: directory, holder: LeaseOwner())
        let event = RenderedEvent(messageID: "m", userID: nil, sessionID: "s", body: [])
        try log.append([event])
        try FileManager.default.removeItem(at: directory)
        try Data().write(to: directory)
        log.restart(keeping: [event.numbered(1)])
        #expect(throws: CountersignError.self) { try log.synchronize() }
    }

    @Test func onlyWorkThatFreesSpaceMayUseTheDiskReserve() async throws {
        let fixture = try Fixture()
        try await fixture.record("small")
        await fixture.recorder.drain()
        #expect(try fixture.reserveBytes == Storage.reserveBytes)
        try await fill(fixture.storage, true)
        try await fixture.record("big", size: 20_000)
        let calls = try await fixture.storage.run { storage in
            var calls: [Int] = []
            try storage.withQueue(usesReserve: true) { queue in
                calls.append(try fixture.reserveBytes)
                guard calls.count > 1 else {
                    try queue.connection.execute("PRAGMA max_page_count = 1000000")
                    throw SQLiteError(extendedCode: 13, message: "database or disk is full")
                }
                // The second attempt has the reserve's space.
                #expect(try queue.value(of: .rows) == 1)
            }
            return calls
        }
        #expect(calls == [Storage.reserveBytes, 0])
        #expect(try fixture.reserveBytes == Storage.reserveBytes, "the reserve is restored")
        #expect(try await fixture.names() == ["small", "big"])
    }

    @Test func aFullDiskWithoutAReserveIsReported() async throws {
        let fixture = try Fixture()
        try await fixture.record("small")
        #expect(try await fixture.names() == ["small"])
        let reserve = fixture.bench.configuration.instanceDirectory.appendingPathComponent("reserve")
        try FileManager.default.removeItem(at: reserve)
        let calls = Lock(0)
        let error = await #expect(throws: SQLiteError.self) {
            try await fixture.storage.perform(usesReserve: true) { _ in
                calls.withLock { $0 += 1 }
                throw SQLiteError(extendedCode: 13, message: "database or disk is full")
            }
        }
        #expect(error?.isFull == true)
        #expect(calls.withLock { $0 } == 1)
    }

    @Test func aStoreThatIsClosedOpensNothing() async throws {
        let bench = try Bench()
        let storage = bench.makeStorage()
        await storage.close()
        let error = await #expect(throws: CountersignError.self) { try await storage.perform { _ in } }
        #expect(error?.code == .closed)
        #expect(!FileManager.default.fileExists(atPath: bench.configuration.instanceDirectory.path))
    }

    // MARK: Wiping and opting out

    /// Two clients of one user. The other client's events stay in its log until the gate opens.
    private func clientsOfOneQueue(_ bench: Bench) async throws -> (
        one: CountersignClient, other: CountersignClient, gate: Handshake
    ) {
        let (one, other) = (try bench.makeClient(), try bench.makeClient())
        for client in [one, other] {
            client.identify(userID: "ada", token: "a.a.a")
            await client.flush()
        }
        return (one, other, await other.pipeline.storage.hold())
    }

    @Test func aWipeDeletesEventsInLogsOfOtherClients() async throws {
        let bench = try Bench()
        let (one, other, gate) = try await clientsOfOneQueue(bench)
        for number in 0..<5 { try await other.record("before \(number)") }
        try await one.wipeData()
        try await other.record("after")
        gate.signal()
        await other.flush()
        #expect(bench.gateway.events == ["after"])
        let snapshot = await other.snapshot()
        #expect(snapshot.wiped == 5)
        #expect(snapshot.recorded == snapshot.sent + snapshot.wiped)
    }

    @Test(arguments: [false, true])
    func anOptOutReachesOtherClients(isInTheLog: Bool) async throws {
        let bench = try Bench()
        let (one, other, gate) = try await clientsOfOneQueue(bench)
        if isInTheLog {
            try await other.record("before")
        } else {
            other.pipeline.recorder.writer.suspend()
            for number in 0..<64 { other.track("before \(number)") }
        }
        try await one.optOut()
        if !isInTheLog { other.pipeline.recorder.writer.resume() }
        gate.signal()
        await other.flush()
        #expect(bench.gateway.events.isEmpty)
        let snapshot = await other.snapshot()
        #expect((snapshot.queued, snapshot.unsaved) == (0, 0))
        let error = await #expect(throws: CountersignError.self) { try await other.record("late") }
        #expect(error?.code == .optedOut)
    }

    @Test func eventsInTheLogStayWhileRecordingIsDisabled() async throws {
        let (bench, client) = try await Bench.signedIn()
        client.track("kept")
        client.pipeline.setEnabled(false)
        client.track("unwanted")
        #expect(await client.flush().batches.isEmpty)
        client.pipeline.setEnabled(true)
        #expect(await client.flush().isComplete)
        #expect(bench.gateway.events == ["kept"])
    }

    /// The opt-out may come after the write to the log and before the write to the queue file.
    @Test func nothingEntersTheQueueFileAfterAnOptOut() async throws {
        let fixture = try Fixture()
        let directory = fixture.bench.configuration.instanceDirectory
        let event = RenderedEvent(messageID: "m", userID: "ada", sessionID: "s", body: [])
        let log = WriteAheadLog(directory: directory, holder: LeaseOwner())
        let (before, after) = try await fixture.storage.perform { queue in
            try queue.append([event.numbered(1)], from: "log")
            let before = try queue.value(of: .rows)
            try Data().write(to: directory.appendingPathComponent(DataFolder.optOutName))
            try queue.append([event.numbered(2)], from: "log")
            try log.append([event])
            for found in try WriteAheadLog.all(in: directory) {
                try queue.adopt(found, isOver: true)
            }
            return (before, try queue.value(of: .rows))
        }
        #expect((before, after) == (1, 1))
        log.remove()
    }

    @Test func nothingIsWrittenOrSentOnceAnotherProcessHasOptedOut() async throws {
        let (bench, client) = try Bench.open()
        client.identify(userID: "ada", token: "a.a.a")
        try await client.record("in the queue")
        await client.pipeline.recorder.drain()
        // The client has not wiped its data yet.
        let directory = bench.configuration.instanceDirectory
        try Data().write(to: directory.appendingPathComponent(DataFolder.optOutName))
        client.pipeline.recorder.writer.suspend()
        for number in 0..<40 { client.track("\(number)") }
        client.pipeline.recorder.writer.resume()
        #expect(await client.flush().batches.isEmpty)
        #expect(bench.gateway.events.isEmpty)
        #expect(client.pipeline.recorder.losses.unsaved + client.pipeline.recorder.losses.logged == 0)
        #expect(try WriteAheadLog.all(in: directory).flatMap { try $0.events(after: 0).events }.isEmpty)
    }

    @Test func eventsRecordedDuringAWipeAreDeletedOrHaveTheNewID() async throws {
        let (bench, client) = try Bench.open()
        for round in 0..<20 {
            try await client.record("before \(round)")
            async let wipe: Void = client.wipeData()
            for number in 0..<50 { client.track("during \(round) \(number)") }
            try await wipe
            try await client.record("after \(round)")
            let id = try await client.pipeline.storage.perform { queue in try queue.anonymousID() }
            await client.flush()
            let batch = bench.gateway.batches.last?.messages ?? []
            #expect(batch.contains { $0.event == "after \(round)" })
            #expect(batch.allSatisfy { $0.anonymousId == id })
        }
    }

    @Test func removingQueuedRecordsKeepsTheAnonymousID() async throws {
        let (_, client) = try Bench.open()
        try await client.record("before")
        let id = try await client.pipeline.storage.perform { queue in try queue.anonymousID() }
        try await client.pipeline.removeAllWaiting()
        #expect(try await client.pipeline.waitingCount() == 0)
        #expect(try await client.pipeline.storage.perform { queue in try queue.anonymousID() } == id)
    }

    // MARK: Before the first unlock

    @Test func beforeTheFirstUnlockCallsWaitAndNothingIsTouched() async throws {
        let isUnlocked = Lock(false)
        let fixture = try Fixture(isUnlocked: { isUnlocked.withLock { $0 } })
        let directory = fixture.bench.configuration.instanceDirectory
        let isEarly = Lock(false)
        fixture.recorder.writer.async { if !isUnlocked.withLock({ $0 }) { isEarly.withLock { $0 = true } } }
        let first = Task { try await fixture.record("first") }
        for round in 1...5 {
            let instant = await fixture.bench.clock.waitForSleeper()
            for _ in 0..<20 { fixture.track("early") }
            #expect(!FileManager.default.fileExists(atPath: directory.path))
            if round == 5 { isUnlocked.withLock { $0 = true } }
            fixture.bench.clock.advance(to: instant)
        }
        try await first.value
        #expect(!isEarly.withLock { $0 }, "the writer thread waits too")
        await fixture.recorder.drain()
        #expect(try await fixture.names().count == 101)
    }

    #if os(Linux)
        /// Closing a file releases all locks of the process on it (POSIX, `fcntl`).
        @Test func openingAStoreKeepsTheFileLocksOfItsProcess() async throws {
            let bench = try Bench()
            let first = try bench.makeClient()
            try await first.record("A")
            await first.pipeline.recorder.drain()
            let file = bench.queueFile.path
            let connection = try SQLiteConnection(path: file)
            try connection.execute("BEGIN EXCLUSIVE")
            // Open until the end, because closing this descriptor would release the locks too.
            let descriptor = open(file, O_RDWR | O_CLOEXEC)
            defer { close(descriptor) }
            // Locks of an open file description conflict with locks of its own process (`man 2 F_GETLK`).
            func isLocked() -> Bool {
                let getLock: Int32 = 36  // F_OFD_GETLK, which Swift does not import.
                var lock = flock()
                lock.l_type = Int16(F_WRLCK)
                lock.l_whence = Int16(SEEK_SET)
                #expect(fcntl(descriptor, getLock, &lock) == 0)
                return lock.l_type == Int16(F_WRLCK)
            }
            #expect(isLocked())
            let storage = bench.makeStorage(canOpen: { FirstUnlock.canOpen($0) })
            try await storage.run { _ in }
            #expect(isLocked())
            try connection.execute("ROLLBACK")
            await storage.close()
            await first.close()
        }
    #endif
}
