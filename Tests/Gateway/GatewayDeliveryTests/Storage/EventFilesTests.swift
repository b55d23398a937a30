import CountersignCore
import CountersignCrypto
import CountersignGatewayTesting
import CountersignTesting
import Foundation
import GatewayObservability
import GatewayTestSupport
import TestSupport
import Testing

@testable import GatewayDelivery
@testable import GatewayModel
@testable import GatewayStorage

/// Hourly event files: each event is in exactly one listed file, also after a crash.
@Suite(.ownThreads, .timeLimit(.minutes(5)))
struct EventFilesTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    /// 2026-11-22T19:00:00Z.
    private static let start: Int64 = 1_795_374_000_000

    private final class Bench {
        let home: TestStorage
        let storage: any Storage
        let directory: AppDirectory
        private(set) var store: any EventStore
        let clock = ManualClock(now: Date(timeIntervalSince1970: Double(EventFilesTests.start) / 1_000))
        let reports = Lock<[EventFileReport]>([])

        init() throws {
            home = try TestStorage()
            storage = try home.open()
            directory = try storage.openControl(as: .account)
            _ = try directory.createApp(id: "shop")
            store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        }

        deinit { store.close() }

        var folder: String { home.folder }

        /// Makes retention delete all events of the app.
        func deleteAll() throws {
            store.close()
            // Retention deletes only events that readers can see.
            try home.waitForTransactions()
            store = try storage.openEvents(
                EventStoreOptions(pendingBytes: 1 << 20, retention: { ["shop": AppRules(bytes: 1)] }))
            // The store sweeps before it completes the batch.
            self.store(1...1, of: "kiosk", minute: 0)
            store.close()
            store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        }

        var place: String { folder + "/files/shop" }

        /// A runner of the files that the test drives.
        struct Files {
            let runner: DeliveryRunner
            let pool: ManualPool

            /// Writes the files of all hours that have ended.
            func finish() {
                runner.wake()
                runner.check()
                pool.drain()
                // Stores the position.
                runner.check()
            }
        }

        func files(longestFile: Int = EventFiles.longestFile, freeBytes: Int = 0) throws -> Files {
            try home.waitForTransactions()
            let pool = ManualPool()
            let now: @Sendable () -> Date = { [clock] in clock.now }
            let kind = EventFiles(
                directory, folder: folder + "/files", longestFile: longestFile, freeBytes: freeBytes,
                now: now, run: { $0() },
                report: { [reports] report in reports.withLock { $0.append(report) } })
            let consumers = storage.openConsumers(with: store, now: { Milliseconds(now()).count })
            let runner = DeliveryRunner(
                [kind], directory: try storage.openControl(as: .schedule), events: storage.log,
                consumers: consumers, arrivals: store.arrivals, log: GatewayLog(level: .off),
                pool: { work in pool.add(work) }, now: now, fraction: { 1 })
            return Files(runner: runner, pool: pool)
        }

        /// Stores events received at `minute`, counted from the beginning of the first hour.
        func store(
            _ ids: ClosedRange<Int>, of app: String = "shop", minute: Int64, proof: EventProof? = nil
        ) {
            let body = Array(#"{"price": 1.10}"#.utf8)
            let batch = EventBatch(
                appID: app, receivedMilliseconds: EventFilesTests.start + minute * 60_000, body: body,
                events: ids.map {
                    EventBatch.Event(
                        messageID: "m\($0)", kind: .track, userID: "u", timestampMilliseconds: 1,
                        json: body.indices)
                }, proof: proof)
            let done = DispatchSemaphore(value: 0)
            store.append(batch) { _ in done.signal() }
            done.wait()
        }

        func write() throws { try files().finish() }

        private static func object(_ line: Data) -> [String: Any]? {
            (try? JSONSerialization.jsonObject(with: line)) as? [String: Any]
        }

        /// The entries of the manifest.
        func entries() throws -> [[String: Any]] {
            let text = FileManager.default.contents(atPath: place + "/manifest.ndjson") ?? Data()
            return text.split(separator: 0x0A).compactMap { Self.object(Data($0)) }
        }

        /// The lines of the listed files, decompressed by the `zstd` tool.
        func lines() throws -> [String] {
            try entries().flatMap { entry in
                let path = place + "/" + (entry["file"] as? String ?? "")
                let data = FileManager.default.contents(atPath: path) ?? Data()
                #expect(SHA256.digest(Array(data)).hexadecimal == entry["sha256"] as? String)
                #expect(data.count == entry["bytes"] as? Int)
                let text = String(decoding: try runProgram(["zstd", "-dqc", path]).output, as: UTF8.self)
                let lines = text.split(separator: "\n").map(String.init)
                #expect(lines.count == entry["events"] as? Int)
                return lines
            }
        }

        func ids() throws -> [String] {
            try lines().map { Self.object(Data($0.utf8))?["message_id"] as? String ?? "?" }
        }

        func names() throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: place).sorted()
        }
    }

    @Test func eachFinishedHourIsAFile() throws {
        bench.store(1...3, minute: 5)
        bench.store(4...5, minute: 59)
        try bench.write()
        #expect(try bench.entries().isEmpty)
        bench.store(6...6, minute: 60)
        bench.clock.advance(by: 3_600)
        try bench.write()
        #expect(try bench.ids() == (1...5).map { "m\($0)" })
        #expect(try bench.names() == ["2026-11-22T19-000001.ndjson.zst", "manifest.ndjson"])
        // The body is written byte for byte.
        #expect(try bench.lines()[0].contains(#""body":{"price": 1.10}"#))
        #expect(try bench.lines()[0].contains(#""position":""#))
        // An event of an hour that is already written is in the next file, in the order of arrival.
        bench.store(7...7, minute: 59)
        try bench.write()
        bench.clock.advance(by: 7_200)
        try bench.write()
        // An even later one is in a second file of the last file's hour.
        bench.store(8...8, minute: 59)
        try bench.write()
        #expect(try bench.ids() == (1...8).map { "m\($0)" })
        #expect(
            try bench.entries().map { $0["file"] as? String } == [
                "2026-11-22T19-000001.ndjson.zst", "2026-11-22T20-000001.ndjson.zst",
                "2026-11-22T20-000002.ndjson.zst",
            ])
        #expect(bench.reports.withLock { $0 }.isEmpty)
    }

    @Test func keptClaimsAreInTheFileWithTheirTypes() throws {
        let claims = #"{"plan":"pro é","seats":3,"trial":false}"#
        let proof = EventProof(verdict: .verified, dialect: "native", requestID: "r", claims: claims)
        bench.store(1...1, minute: 5, proof: proof)
        bench.clock.advance(by: 3_600)
        try bench.write()
        #expect(try bench.lines().map { $0.contains(#","claims":"# + claims) } == [true])
    }

    @Test func aCorrectedClockDoesNotDelayFiles() throws {
        bench.store(1...2, minute: 5)
        let files = try bench.files()
        // The clock is a year ahead for a while.
        let before = bench.clock.now
        bench.clock.advance(by: 365 * 86_400)
        bench.store(3...4, minute: 365 * 1_440)
        files.finish()
        bench.clock.setNow(before)
        bench.store(5...6, minute: 10)
        bench.clock.advance(by: 3_600)
        bench.store(7...7, minute: 65)
        #expect(throws: Never.self) { try bench.home.waitForTransactions() }
        files.finish()
        #expect(try bench.ids() == (1...6).map { "m\($0)" })
        #expect(
            try bench.entries().map { $0["file"] as? String } == [
                "2026-11-22T19-000001.ndjson.zst", "2027-11-22T19-000001.ndjson.zst",
            ])
    }

    @Test func aCorrectedClockDoesNotEndAnHourEarly() throws {
        bench.store(1...1, minute: 5)
        let files = try bench.files()
        let before = bench.clock.now
        bench.clock.advance(by: 3_600)
        files.finish()
        bench.store(2...2, minute: 60)
        bench.clock.setNow(before.addingTimeInterval(3_590))
        #expect(throws: Never.self) { try bench.home.waitForTransactions() }
        files.finish()
        #expect(try bench.ids() == ["m1"])
    }

    @Test func anHourOverTheSizeLimitIsSplitIntoFiles() throws {
        bench.store(1...9, minute: 5)
        bench.clock.advance(by: 3_600)
        try bench.files(longestFile: 1_000).finish()
        #expect(try bench.ids() == (1...9).map { "m\($0)" })
        #expect(try bench.entries().count > 1)
    }

    /// The state after a crash at each step.
    @Test(arguments: ["tmp", "file", "another hour's file", "half a line", "half a first line"])
    func filesLeftByACrashAreRepaired(_ step: String) throws {
        let manifest = bench.place + "/manifest.ndjson"
        bench.store(1...3, minute: 5)
        if step == "half a first line" {
            try FileManager.default.createDirectory(atPath: bench.place, withIntermediateDirectories: true)
            try Data(#"{"file":"2026"#.utf8).write(to: URL(fileURLWithPath: manifest))
        }
        bench.clock.advance(by: 3_600)
        try bench.write()
        bench.store(4...6, minute: 65)
        bench.clock.advance(by: 3_600)
        let next = bench.place + "/2026-11-22T20-000001.ndjson.zst"
        if step == "tmp" {
            try Data("x".utf8).write(to: URL(fileURLWithPath: next + ".tmp"))
        } else if step == "another hour's file" {
            // This file's events were deleted before the restart.
            try Data("x".utf8).write(
                to: URL(fileURLWithPath: bench.place + "/2026-11-22T17-000009.ndjson.zst"))
        } else {
            // A complete or partial file that is not listed.
            try Data("x".utf8).write(to: URL(fileURLWithPath: next))
        }
        if step == "half a line" {
            let handle = try #require(FileHandle(forWritingAtPath: manifest))
            handle.seekToEndOfFile()
            handle.write(Data(#"{"bytes":1,"events":3,"file":"2026-11-22T20-000001.ndjson.zst""#.utf8))
            try handle.close()
        }
        bench.store(7...7, minute: 119)
        try bench.write()
        #expect(try bench.ids() == (1...7).map { "m\($0)" })
        #expect(try bench.names().allSatisfy { !$0.hasSuffix(".tmp") })
        #expect(try bench.names().count == 3)
    }

    /// Stores events, and a file at the path of the folder.
    private func blockedFiles() throws -> (Bench.Files, folder: String) {
        bench.store(1...3, minute: 5)
        bench.clock.advance(by: 3_600)
        let folder = bench.folder + "/files"
        try Data().write(to: URL(fileURLWithPath: folder))
        return (try bench.files(), folder)
    }

    @Test func failedWritesAreReportedAndRetried() throws {
        let (files, folder) = try blockedFiles()
        files.finish()
        files.finish()
        let reports = bench.reports.withLock { $0 }
        guard case .failed = reports.first, reports.count == 1 else {
            Issue.record("\(reports)")
            return
        }
        try FileManager.default.removeItem(atPath: folder)
        files.finish()
        bench.clock.advance(by: 10)
        files.finish()
        #expect(try bench.ids() == ["m1", "m2", "m3"])
        #expect(bench.reports.withLock { $0.last } == .recovered)
    }

    @Test(arguments: [false, true])
    func failureOfAnIdleAppEndsWithItsProbeOrItsDeletion(isDeleted: Bool) throws {
        _ = try bench.directory.createApp(id: "kiosk")
        let (files, folder) = try blockedFiles()
        files.finish()
        #expect(files.runner.counts.map(\.isFailing) == [true, true])
        if isDeleted {
            _ = try bench.directory.deleteApp(id: "kiosk")
            files.finish()
        }
        try FileManager.default.removeItem(atPath: folder)
        bench.clock.advance(by: 10)
        files.finish()
        #expect(try bench.ids() == ["m1", "m2", "m3"])
        let reports = bench.reports.withLock { $0 }
        #expect(reports.count == 2 && reports.last == .recovered, "\(reports)")
    }

    @Test func closingWhileEventsAreReadLeavesNoFile() throws {
        bench.store(1...1, minute: 5)
        bench.clock.advance(by: 3_600)
        try bench.home.waitForTransactions()
        let way = EventFileWay(
            of: "shop",
            FileOutput(
                folder: bench.folder + "/files", longestFile: EventFiles.longestFile, freeBytes: 0,
                now: { [clock = bench.clock] in clock.now }, run: { $0() }, report: { _ in }))
        let route = DeliveryRoute(FileSettings.consumer(of: "shop"))
        var batch = DeliveryBatch(route, DeliveryProgress(committed: 0)) { _, _ in "" }
        var export = EventQuery(appID: "shop")
        export.isExport = true
        batch.events = try bench.storage.log.follow(export, after: 0, limit: 1).events
        batch.positions = try bench.storage.log.positions()
        batch.hasMore = true
        batch.follow = {
            way.close()
            return EventRange(scannedThrough: $0)
        }
        let answer = Lock<DeliveryAnswer?>(nil)
        way.accept(batch) { given in answer.withLock { $0 = given } }
        guard case .notTried = answer.withLock({ $0 }) else {
            Issue.record("\(String(describing: answer.withLock { $0 }))")
            return
        }
        #expect(try bench.entries().isEmpty && bench.names().isEmpty)
    }

    /// An earlier version stored no position outside the manifest.
    @Test(arguments: ["no position", "an old position"])
    func theManifestDecidesWhereFilesContinue(_ row: String) throws {
        bench.store(1...3, minute: 5)
        bench.clock.advance(by: 3_600)
        try bench.write()
        let id = FileSettings.consumer(of: "shop")
        let consumers = bench.storage.openConsumers(with: bench.store, now: { 0 })
        try consumers.delete(id)
        if row == "an old position" {
            try consumers.follow(id, holdDays: nil, from: DeliveryProgress(committed: 1))
        }
        bench.store(4...6, minute: 65)
        bench.clock.advance(by: 3_600)
        try bench.write()
        #expect(try bench.ids() == (1...6).map { "m\($0)" })
        #expect(try consumers.progress(.file)[id]?.committed ?? 0 >= 6)
        try FileManager.default.removeItem(atPath: bench.folder + "/files")
        try bench.write()
        #expect(try bench.ids() == (1...6).map { "m\($0)" })
    }

    @Test func theCurrentHourIsNotWrittenBeforeItsEnd() throws {
        bench.store(1...1, minute: 5)
        try bench.write()
        let consumers = bench.storage.openConsumers(with: bench.store, now: { 0 })
        let progress = try #require(try consumers.progress(.file)[FileSettings.consumer(of: "shop")])
        #expect(progress.failures == 0 && progress.committed == 0)
        #expect(progress.nextMilliseconds == Self.start + 3_600_000)
    }

    @Test func eventsDeletedBeforeTheyWereWrittenAreReported() throws {
        bench.store(1...2, minute: 5)
        bench.clock.advance(by: 3_600)
        try bench.write()
        bench.store(3...4, minute: 65)
        try bench.deleteAll()
        bench.store(5...6, minute: 66)
        bench.clock.advance(by: 3_600)
        try bench.write()
        #expect(try bench.ids() == ["m1", "m2", "m5", "m6"])
        #expect(try bench.entries().map { $0["events_missed"] as? Bool } == [false, true])
        #expect(bench.reports.withLock { $0 }.isEmpty)
    }

    @Test func noFileIsWrittenBelowTheFreeDiskLimit() throws {
        bench.store(1...3, minute: 5)
        bench.clock.advance(by: 3_600)
        try bench.files(freeBytes: .max).finish()
        #expect(try bench.entries().isEmpty)
        #expect(try bench.names().isEmpty)
        bench.clock.advance(by: 10)
        try bench.write()
        #expect(try bench.ids() == ["m1", "m2", "m3"])
    }

    /// A log restored to an earlier state assigns the same positions to other events.
    @Test func filesOfAnotherLogAreNotContinued() throws {
        bench.store(1...3, minute: 5)
        bench.clock.advance(by: 3_600)
        try bench.write()
        let other = try Bench()
        other.store(4...9, minute: 65)
        other.clock.advance(by: 7_200)
        try FileManager.default.copyItem(atPath: bench.folder + "/files", toPath: other.folder + "/files")
        try other.write()
        #expect(try other.ids() == ["m1", "m2", "m3"])
        guard case .failed(let detail) = other.reports.withLock({ $0.last }) else {
            Issue.record("no failure was reported")
            return
        }
        #expect(detail.contains("another event log"))
    }
}
