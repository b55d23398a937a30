import CountersignCore
import CountersignGateway
import CountersignGatewayTesting
import CountersignSQLite
import CountersignTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import TestSupport
import Testing

@testable import GatewayStorage

@Suite(.onSQLite("its own log of events"), .ownThreads, .timeLimit(.minutes(5)))
struct SQLiteEventStoreTests {
    private let temporary = TemporaryFolder()
    private var folder: URL { temporary.url }

    init() throws {
        try FileManager.default.createDirectory(at: temporary.url, withIntermediateDirectories: true)
    }

    @Test func belowTheDiskFloorEventsAreRejectedAndTheGatewayIsUnready() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        let data = fixture.dataDirectory
        fixture.gateway.stop()
        // Free space falls below the floor. The gateway still starts, so that operators can delete data.
        var configuration = GatewayConfiguration(dataDirectory: data)
        configuration.port = 0
        configuration.diskFloorBytes = 1 << 50
        let full = try Gateway(configuration: configuration)
        defer { full.stop() }
        try TestTransport.standard.start(full)
        let client = try TestTransport.standard.client(of: full)
        let stored = client.post(batch(trackEvent("m-1")), headers: ["X-Write-Key": fixture.writeKey])
        #expect(
            stored?.status == 503 && stored?.json["code"] as? String == "storage_full",
            "\(stored?.body ?? "")")
        #expect(stored?.headers["retry-after"] == "30")
        #expect(client.get("/readyz")?.status == 503)
        #expect(client.get("/livez")?.status == 200)
    }

    @Test func belowTheDiskFloorNewEventsAreRejectedAndStoredOnesKept() throws {
        let path = folder.appendingPathComponent("events.sqlite").path
        let open = try SQLiteEventStore(path: path, pendingBytes: 1 << 20)
        #expect(try append("m-1", to: open).get() == AppendOutcome(accepted: 1, duplicates: 0))
        open.close()
        let full = try SQLiteEventStore(path: path, pendingBytes: 1 << 20, diskFloorBytes: 1 << 50)
        #expect(throws: StoreFailure.self) { try append("m-2", to: full).get() }
        full.close()
        let again = try SQLiteEventStore(path: path, pendingBytes: 1 << 20)
        #expect(try append("m-1", to: again).get() == AppendOutcome(accepted: 0, duplicates: 1))
        again.close()
        let reader = try SQLiteConnection(path: path)
        #expect(
            try reader.first("SELECT events, bytes FROM app_usage") { [$0.int(0), $0.int(1)] } == [1, 2])
    }

    /// A file is deleted or replaced by a copy. Writes to the old file would be lost with the process.
    @Test(arguments: ["events.sqlite-wal", "events.sqlite"], [true, false])
    func aDeletedOrReplacedDatabaseFileStopsStoring(name: String, isReplaced: Bool) throws {
        let path = folder.appendingPathComponent("events.sqlite").path
        let store = try SQLiteEventStore(path: path, pendingBytes: 1 << 20)
        _ = try append("m-1", to: store).get()
        let others = try SQLiteConnection(path: path)
        _ = try others.first("PRAGMA wal_checkpoint(FULL)") { $0.int(0) }
        let file = folder.appendingPathComponent(name)
        let copy = folder.appendingPathComponent("copy")
        try FileManager.default.copyItem(at: file, to: copy)
        try FileManager.default.removeItem(at: file)
        if isReplaced { try FileManager.default.copyItem(at: copy, to: file) }
        for _ in 0..<2 {
            let failure = #expect(throws: StoreFailure.self) { try append("m-2", to: store).get() }
            #expect(failure?.reason == .failed && failure?.detail.contains("until it is restarted") == true)
        }
        #expect(throws: GatewayError.self) { try store.erase(appID: "shop") }
        store.close()
        // In this process SQLite still uses the old WAL's index, so the WAL case cannot reopen the store here.
        guard file.path == path else { return }
        if !isReplaced { try FileManager.default.copyItem(at: copy, to: file) }
        let again = try SQLiteEventStore(path: path, pendingBytes: 1 << 20)
        #expect(try append("m-1", to: again).get().duplicates == 1)
        #expect(try append("m-2", to: again).get().accepted == 1)
        again.close()
    }

    /// The commit itself succeeds, but in an unlinked file.
    @Test(arguments: ["events.sqlite-wal", "events.sqlite"])
    func aDatabaseFileDeletedDuringACommitFailsTheCommit(name: String) throws {
        let store = try SQLiteEventStore(
            path: folder.appendingPathComponent("events.sqlite").path, pendingBytes: 1 << 20)
        defer { store.close() }
        _ = try append("m-1", to: store).get()
        let file = folder.appendingPathComponent(name)
        let failure = #expect(throws: StoreFailure.self) {
            try store.change { _ in try FileManager.default.removeItem(at: file) }
        }
        #expect(failure?.detail.contains("until it is restarted") == true)
    }

    /// The store must not continue in a new, empty file.
    @Test func aDatabaseFileDeletedAfterAFailureIsNotCreatedAgain() throws {
        let path = folder.appendingPathComponent("events.sqlite").path
        let store = try SQLiteEventStore(path: path, pendingBytes: 1 << 20)
        defer { store.close() }
        _ = try append("m-1", to: store).get()
        #expect(throws: StoreFailure.self) {
            try store.change { _ in throw SQLiteError(extendedCode: 10, message: "planned") }
        }
        try FileManager.default.removeItem(atPath: path)
        let failure = #expect(throws: StoreFailure.self) { try append("m-2", to: store).get() }
        #expect(failure?.detail.contains("until it is restarted") == true)
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    /// SQLite deletes the WAL by name when it closes, even if the file is another program's.
    @Test func stoppingDoesNotDeleteAnotherProgramsLog() throws {
        let path = folder.appendingPathComponent("events.sqlite").path
        let store = try SQLiteEventStore(path: path, pendingBytes: 1 << 20)
        _ = try append("m-1", to: store).get()
        try FileManager.default.removeItem(atPath: path + "-wal")
        let log = Data("of another program".utf8)
        try log.write(to: URL(fileURLWithPath: path + "-wal"))
        store.close()
        #expect(FileManager.default.contents(atPath: path + "-wal") == log)
    }

    /// The joint transaction of two batches is rolled back. Retried alone, the first batch is stored, the second fails.
    @Test func batchesRetriedAloneAreEachReportedOnce() throws {
        let path = folder.appendingPathComponent("events.sqlite").path
        let commits = CommitRecorder()
        let store = try SQLiteEventStore(path: path, pendingBytes: 1 << 20, observer: commits)
        try store.change { sqlite in
            try sqlite.execute(
                """
                CREATE TRIGGER second BEFORE INSERT ON event WHEN (SELECT count(*) FROM event) = 1
                BEGIN SELECT RAISE(ABORT, 'planned'); END
                """)
        }
        let before = commits.records.withLock { $0.count }
        store.together {
            for id in ["m-1", "m-2"] {
                let event = EventBatch.Event(
                    messageID: id, kind: .track, userID: nil, anonymousID: "d", timestampMilliseconds: 0,
                    json: 0..<2)
                store.append(
                    EventBatch(
                        appID: "shop", receivedMilliseconds: 0, body: Array("{}".utf8), events: [event])
                ) { _ in }
            }
        }
        store.close()
        let records = commits.records.withLock { $0.dropFirst(before).filter { $0.events > 0 } }
        #expect(records.map(\.events) == [1, 1])
        #expect(records.map { $0.failure == nil } == [true, false])
    }

    private final class CommitRecorder: GatewayObserver {
        let records = Lock<[CommitRecord]>([])

        func requestEnded(_ record: RequestRecord) {}

        func commitEnded(_ record: CommitRecord) { records.withLock { $0.append(record) } }
    }

    /// The file is a link to `/dev/full`, where each write reports a full disk.
    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/dev/full")))
    func aFullDiskIsReportedForIndexFiles() throws {
        let error = #expect(throws: IndexFileError.self) {
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
                "full-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let path = folder.appendingPathComponent("run").path
            try FileManager.default.createSymbolicLink(
                atPath: path + IndexFileWriter.unfinished, withDestinationPath: "/dev/full")
            let file = try IndexFileWriter(path: path)
            try file.write([UInt8](repeating: 1, count: 100)[...])
            try file.finish()
        }
        #expect(error?.isFull == true)
        let failure = StoreFailure(try #require(error))
        #expect(failure.reason == .full && failure.code == "storage_full")
        #expect(StoreFailure(IndexFileError(path: "x", reason: "damaged")).reason == .failed)
    }

    @Test func readinessListsItsChecks() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        let connection = try fixture.client()
        let lines = connection.get("/readyz?verbose")?.body.split(separator: "\n").map(String.init) ?? []
        #expect(
            lines.map { $0.prefix { $0 != ":" } } == [
                "[+] storage", "[+] disk", "[+] queue", "[+] apps", "[+] sessions", "[+] draining", "ready",
            ])
    }

    /// By the gateway's clock, an event of 1970 is either expired or new.
    @Test(arguments: [(1_800_000_000.0, 0), (60.0, 1)])
    func retentionDeletesExpiredEventsByTheGatewaysClock(now: TimeInterval, kept: Int) throws {
        let path = folder.appendingPathComponent("events.sqlite").path
        let isStored = Lock(false)
        let asked = DispatchSemaphore(value: 0)
        let store = try SQLiteEventStore(
            path: path, recent: RecentEvents(), pendingBytes: 1 << 20, diskFloorBytes: 0, observer: nil,
            retentionSeconds: 0, now: { Date(timeIntervalSince1970: now) },
            retention: {
                if isStored.withLock({ $0 }) { asked.signal() }
                return ["shop": AppRules(days: 1)]
            })
        // Received in 1970.
        _ = try append("m-1", to: store).get()
        isStored.withLock { $0 = true }
        // The closure is called again only after the previous sweep.
        try asked.waitForSignal()
        try asked.waitForSignal()
        store.close()
        let reader = try SQLiteConnection(path: path)
        #expect(try reader.first("SELECT count(*) FROM event") { $0.int(0) } == kept)
        #expect(try reader.first("SELECT events FROM app_usage") { $0.int(0) } == kept)
    }

    @Test func aForwardClockJumpDeletesNoEvents() throws {
        let path = folder.appendingPathComponent("events.sqlite").path
        let clock = Lock(60.0)
        let sweeps = Lock(0)
        let asked = DispatchSemaphore(value: 0)
        let store = try SQLiteEventStore(
            path: path, recent: RecentEvents(), pendingBytes: 1 << 20, diskFloorBytes: 0, observer: nil,
            retentionSeconds: 0, now: { Date(timeIntervalSince1970: clock.withLock { $0 }) },
            retention: {
                sweeps.withLock { $0 += 1 }
                asked.signal()
                return ["shop": AppRules(days: 1)]
            })
        _ = try append("m-1", to: store).get()
        clock.withLock { $0 = 1_800_000_000 }
        let before = sweeps.withLock { $0 }
        while sweeps.withLock({ $0 }) < before + 3 { try asked.waitForSignal() }
        store.close()
        let reader = try SQLiteConnection(path: path)
        #expect(try reader.first("SELECT count(*) FROM event") { $0.int(0) } == 1)
    }

    /// The index may still have entries of deleted events. A page that ended within them would report a gap again.
    @Test func aScanBeginsAfterDeletedEvents() throws {
        let place = try TestStorage()
        let storage = try place.open()
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        for id in ["a", "b", "c"] { _ = try append(id, to: store).get() }
        store.close()
        try place.connection(to: "events").execute("INSERT INTO event_floor VALUES ('shop', 2)")
        let range = try storage.log.follow(EventQuery(appID: "shop"), after: 0, limit: 9)
        #expect(range.events.map(\.messageID) == ["c"] && range.gap.isOpen)
    }

    private func append(
        _ id: String, user: String? = nil, device: String? = nil, isIdentifiedByContent: Bool = false,
        to store: any EventStore
    ) throws -> Result<AppendOutcome, StoreFailure> {
        let event = EventBatch.Event(
            messageID: id, kind: .track, userID: user, anonymousID: device, timestampMilliseconds: 0,
            json: 0..<2, isIdentifiedByContent: isIdentifiedByContent)
        let batch = EventBatch(
            appID: "shop", receivedMilliseconds: 0, body: Array("{}".utf8), events: [event])
        let result = Lock<Result<AppendOutcome, StoreFailure>?>(nil)
        let done = DispatchSemaphore(value: 0)
        store.append(batch) { outcome in
            result.withLock { $0 = outcome }
            done.signal()
        }
        try done.waitForSignal()
        return result.withLock { $0 } ?? .failure(StoreFailure(reason: .failed, detail: "no answer"))
    }
}
