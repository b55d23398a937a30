import TestSupport

#if os(Linux)
    import CSQLite
    import CountersignCore
    import CountersignSQLite
    import CountersignTesting
    import Foundation
    import SDKTestSupport
    import Testing

    @testable import Countersign
    @testable import CountersignDelivery

    /// A disk without room for SQLite's files to grow, except while the reserve is empty.
    private enum FullDisk {
        typealias Write = @convention(c) (Int32, UnsafeRawPointer?, Int, Int64) -> Int

        /// The `errno` of failed writes, by directory.
        private static let full = Lock([String: Int32]())
        nonisolated(unsafe) private static var originals: [String: Write] = [:]

        /// Replaces the calls by which SQLite writes. In the directories in `full`, they fail if there is no room.
        private static let isInstalled: Bool = {
            guard let vfs = sqlite3_vfs_find(nil) else { return false }
            let writes: [(String, Write)] = [
                ("pwrite", { write("pwrite", $0, $1, $2, $3) }),
                ("pwrite64", { write("pwrite64", $0, $1, $2, $3) }),
            ]
            for (name, call) in writes {
                guard let original = vfs.pointee.xGetSystemCall(vfs, name) else { continue }
                originals[name] = unsafeBitCast(original, to: Write.self)
                _ = vfs.pointee.xSetSystemCall(vfs, name, unsafeBitCast(call, to: sqlite3_syscall_ptr.self))
            }
            return !originals.isEmpty
        }()

        private static func write(
            _ name: String, _ file: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, _ offset: Int64
        ) -> Int {
            if !full.withLock({ $0.isEmpty }), let code = failure(file, offset + Int64(count)) {
                errno = code
                return -1
            }
            return originals[name]?(file, bytes, count, offset) ?? -1
        }

        /// The `errno` of a write up to `end`; nil if there is room.
        private static func failure(_ file: Int32, _ end: Int64) -> Int32? {
            let path =
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(file)")) ?? ""
            let directory = URL(fileURLWithPath: path).deletingLastPathComponent()
            guard let code = full.withLock({ $0[directory.path] }) else { return nil }
            var status = stat()
            if fstat(file, &status) == 0, end <= status.st_size { return nil }
            let reserve = directory.appendingPathComponent("reserve").path
            return lstat(reserve, &status) == 0 && status.st_size == 0 ? nil : code
        }

        static func fill(_ directory: URL, _ code: Int32 = ENOSPC) {
            #expect(isInstalled)
            full.withLock { $0[directory.resolvingSymlinksInPath().path] = code }
        }

        static func free(_ directory: URL) {
            full.withLock { $0[directory.resolvingSymlinksInPath().path] = nil }
        }

        /// Replaces the reserve with a link to `/dev/full`, which cannot be filled.
        static func removeReserve(_ directory: URL) throws {
            let reserve = directory.appendingPathComponent("reserve")
            try? FileManager.default.removeItem(at: reserve)
            try FileManager.default.createSymbolicLink(
                at: reserve, withDestinationURL: URL(fileURLWithPath: "/dev/full"))
        }
    }

    /// A client on a full disk. Stored events are still sent.
    @Suite(.closing, .timeLimit(.minutes(5)))
    struct FullDiskTests {
        private func open() async throws -> (bench: Bench, client: CountersignClient, directory: URL) {
            let (bench, client) = try await Bench.signedIn()
            return (bench, client, bench.configuration.instanceDirectory)
        }

        private func restart(_ bench: Bench, _ client: CountersignClient) async throws -> CountersignClient {
            await client.close()
            let next = try bench.makeClient()
            next.identify(userID: "ada", token: "a.a.a")
            return next
        }

        private func reserveBytes(_ directory: URL) throws -> Int {
            try Data(contentsOf: directory.appendingPathComponent("reserve")).count
        }

        @Test(arguments: [false, true], [ENOSPC, EDQUOT])
        func eventsInTheQueueFileAreSentAndDeleted(isRestarted: Bool, failure: Int32) async throws {
            var (bench, client, directory) = try await open()
            for number in 0..<50 { try await client.record("\(number)") }
            await client.pipeline.recorder.drain()
            FullDisk.fill(directory, failure)
            defer { FullDisk.free(directory) }
            if isRestarted { client = try await restart(bench, client) }
            #expect(await client.flush().isComplete)
            #expect(bench.gateway.events == (0..<50).map { "\($0)" })
            #expect(bench.gateway.duplicates == 0)
            #expect(try await client.pipeline.storage.perform { try $0.value(of: .rows) } == 0)
            #expect(try reserveBytes(directory) == Storage.reserveBytes)
        }

        @Test(arguments: [false, true])
        func eventsInTheLogAreSentAndDeleted(isRestarted: Bool) async throws {
            var (bench, client, directory) = try await open()
            FullDisk.fill(directory)
            defer { FullDisk.free(directory) }
            let text = JSONValue.string(String(repeating: "x", count: 1_000))
            for number in 0..<300 { try await client.record("\(number)", properties: ["x": text]) }
            if isRestarted {
                await client.close()
                // Renames the logs, as if the process of the first client had ended.
                let gone = LeaseOwner().id
                for name in try FileManager.default.contentsOfDirectory(atPath: directory.path)
                where name.hasPrefix(WriteAheadLog.prefix) {
                    let number = name.dropLast(WriteAheadLog.suffix.count).last ?? "0"
                    try FileManager.default.moveItem(
                        at: directory.appendingPathComponent(name),
                        to: directory.appendingPathComponent(
                            "\(WriteAheadLog.prefix)\(gone)-1073741823-\(number)\(WriteAheadLog.suffix)"))
                }
                client = try await restart(bench, client)
            }
            #expect(await client.flush().isComplete)
            #expect(bench.gateway.events == (0..<300).map { "\($0)" })
            // The renamed log has no checkpoint, so its identify event is sent again.
            #expect(bench.gateway.duplicates == (isRestarted ? 1 : 0))
            let snapshot = await client.snapshot()
            #expect((snapshot.queued, snapshot.unsaved) == (0, 0))
            #expect(try reserveBytes(directory) == Storage.reserveBytes)
        }

        @Test func withoutAReserveEventsAreSentOnceAndDeletedWhenThereIsRoom() async throws {
            let (bench, client, directory) = try await open()
            client.pipeline.configure(.manual, batchEvents: 10)
            for number in 0..<50 { try await client.record("\(number)") }
            await client.pipeline.recorder.drain()
            try FullDisk.removeReserve(directory)
            FullDisk.fill(directory)
            defer { FullDisk.free(directory) }
            let result = await client.flush()
            #expect(result.isComplete)
            #expect(result.batches.count == 5)
            #expect(await client.flush().batches.isEmpty)
            #expect(bench.gateway.events.count == 50)
            var snapshot = await client.snapshot()
            #expect((snapshot.queued, snapshot.sent) == (0, 51), "51 includes the identify event")
            func rows() async throws -> Int {
                try await client.pipeline.storage.perform { try $0.value(of: .rows) }
            }
            #expect(try await rows() == 50)
            FullDisk.free(directory)
            #expect(await client.flush().isComplete)
            #expect(try await rows() == 0)
            snapshot = await client.snapshot()
            #expect((snapshot.queued, snapshot.sent) == (0, 51))
            #expect(bench.gateway.duplicates == 0)
        }

        @Test func aSnapshotOnAFullDiskCountsRejectedEventsAsQuarantined() async throws {
            let (bench, client, directory) = try await open()
            try await client.record("rejected")
            try await client.record("sent")
            await client.pipeline.recorder.drain()
            let rejected = #"[{"index":0,"code":"invalid_event","reason":"scripted"}]"#
            bench.gateway.respond { _ in
                .json(200, #"{"success":true,"accepted":0,"duplicates":1,"rejected":\#(rejected)}"#)
            }
            try FullDisk.removeReserve(directory)
            FullDisk.fill(directory)
            defer { FullDisk.free(directory) }
            func expectCounts() async {
                let snapshot = await client.snapshot()
                #expect((snapshot.queued, snapshot.recorded) == (0, 3))
                #expect((snapshot.sent, snapshot.quarantined) == (2, 1), "2 includes the identify event")
                #expect(snapshot.duplicates == 1)
            }
            #expect(await client.flush().isComplete)
            await expectCounts()
            FullDisk.free(directory)
            #expect(await client.flush().isComplete)
            #expect(try await client.pipeline.storage.perform { try $0.value(of: .rows) } == 0)
            await expectCounts()
        }

        @Test func anExistingQueueIsOpenedWithoutAWrite() async throws {
            let (bench, client, directory) = try await open()
            try await client.record("event")
            await client.close()
            let file = directory.appendingPathComponent("queue.sqlite")
            let before = try Data(contentsOf: file)
            try FullDisk.removeReserve(directory)
            FullDisk.fill(directory)
            defer { FullDisk.free(directory) }
            _ = try bench.openQueue()
            #expect(try Data(contentsOf: file) == before)
        }

        @Test func aDamagedQueueFileIsKeptUntilTheDiskHasSpaceToRebuildIt() async throws {
            let (bench, client, directory) = try await open()
            for number in 0..<5 { try await client.record("\(number)") }
            await client.close()
            let file = directory.appendingPathComponent("queue.sqlite")
            var bytes = try Data(contentsOf: file)
            bytes.replaceSubrange(0..<16, with: Data("no database, once".utf8.prefix(16)))
            try bytes.write(to: file)
            try FullDisk.removeReserve(directory)
            FullDisk.fill(directory)
            defer { FullDisk.free(directory) }
            let second = try bench.makeClient()
            second.identify(userID: "ada", token: "a.a.a")
            #expect(await second.flush().ending == .interrupted)
            FullDisk.free(directory)
            try FileManager.default.removeItem(at: directory.appendingPathComponent("reserve"))
            #expect(await second.flush().isComplete)
            #expect(bench.gateway.events == (0..<5).map { "\($0)" })
        }

        @Test(arguments: [false, true])
        func awaitedEventsFailOnAFullDiskBehindManyUnwrittenEvents(isClosed: Bool) async throws {
            let (bench, client, directory) = try await open()
            try FullDisk.removeReserve(directory)
            let recorder = client.pipeline.recorder
            let results = Lock([Result<String, CountersignError>]())
            func record() {
                let event = Event(.track, name: "awaited", payload: [:], dialect: bench.dialect)
                recorder.record(event) { result in results.withLock { $0.append(result) } }
            }
            record()
            await recorder.drain()
            // More events than `close()` tries to write. While the log fails, `track` does not wait for the writer.
            for _ in 0..<10 * Recorder.batchEvents { client.track("unwritten") }
            record()
            if isClosed { await client.close() } else { await recorder.drain() }
            let codes = results.withLock { $0 }.map { result in
                if case .failure(let error) = result { error.code.rawValue } else { "stored" }
            }
            #expect(codes == ["not_stored", "not_stored"])
            #expect(recorder.losses.unsaved == (isClosed ? 0 : 10 * Recorder.batchEvents))
        }

        /// Otherwise new events would take the space that deleting needs.
        @Test func recordingWaitsUntilTheReserveIsRestored() async throws {
            let (bench, client, directory) = try await open()
            try FullDisk.removeReserve(directory)
            let error = await #expect(throws: CountersignError.self) { try await client.record("rejected") }
            #expect(error?.code == .notStored)
            try FileManager.default.removeItem(at: directory.appendingPathComponent("reserve"))
            try Data().write(to: directory.appendingPathComponent("reserve"))
            async let id = client.record("stored")
            bench.clock.advance(to: await bench.clock.waitForSleeper())
            _ = try await id
            #expect(try reserveBytes(directory) == Storage.reserveBytes)
        }
    }
#endif
