import CountersignCore
import CountersignGatewayTesting
import CountersignTesting
import Foundation
import GatewayTestSupport
import Testing

@testable import CountersignGateway
@testable import GatewayModel
@testable import GatewayStorage

@Suite(
    .ownThreads, .onSQLite("backups copy its folder; PostgreSQL has its own tools"),
    .timeLimit(.minutes(5)))
struct BackupTests {
    private let temporary = TemporaryFolder()
    private var folder: String { temporary.path }

    private func send(_ count: Int, to fixture: GatewayFixture, from first: Int = 0) throws {
        let body = batch((first..<first + count).map { trackEvent("m-\($0)") }.joined(separator: ","))
        let answer = try fixture.client().post(body, headers: ["X-Write-Key": fixture.writeKey])
        #expect(answer?.json["accepted"] as? Int == count)
    }

    @Test func aBackupOfARunningGatewayCanBeRestored() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        try send(20, to: fixture)
        let backup = try Backup.create(of: fixture.dataDirectory, in: folder)
        try send(5, to: fixture, from: 20)
        #expect(backup.events == 20)
        #expect(try Backup.verify(backup.path) == backup)
        #expect(Backup.all(in: folder) == [backup])
        let mode = try FileManager.default.attributesOfItem(atPath: backup.path + "/events.sqlite")
        #expect((mode[.posixPermissions] as? NSNumber)?.intValue == 0o600)

        let data = folder + "/restored"
        #expect(try Backup.restore(backup.path, to: data).events == 20)
        var configuration = GatewayConfiguration(dataDirectory: data)
        configuration.port = 0
        let restored = try Gateway(configuration: configuration)
        try TestTransport.standard.start(restored)
        defer { restored.stop() }
        // The write key is valid, the 20 events are duplicates, and the 5 later ones are stored again.
        let body = batch((0..<25).map { trackEvent("m-\($0)") }.joined(separator: ","))
        let answer = try TestTransport.standard.client(of: restored).post(
            body, headers: ["X-Write-Key": fixture.writeKey])
        #expect(answer?.json["accepted"] as? Int == 5)
        #expect(answer?.json["duplicates"] as? Int == 20)
    }

    /// A folder of an earlier version has the progress of its streams in a file of its own.
    @Test func progressOfStreamsOfAnEarlierVersionIsBackedUp() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        let path = fixture.dataDirectory + "/" + EarlierStreams.fileName
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        _ = try EarlierStreams(path: path)
        let backup = try Backup.create(of: fixture.dataDirectory, in: folder)
        #expect(backup.files.contains { $0.name == EarlierStreams.fileName })
    }

    @Test func aDamagedOrUnfinishedCopyIsRejected() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        try send(3, to: fixture)
        let backup = try Backup.create(of: fixture.dataDirectory, in: folder)
        // A manifest with an unknown file, or the path of another folder, is invalid.
        let manifest = backup.path + "/manifest.json"
        let whole = try String(contentsOfFile: manifest, encoding: .utf8)
        for name in ["control.sqlite", "events.sqlite", "../events.sqlite"] {
            let other = whole.replacing(
                name.hasPrefix("..") ? "events.sqlite" : name, with: name.hasPrefix("..") ? name : "other")
            try other.write(toFile: manifest, atomically: true, encoding: .utf8)
            #expect(code { _ = try Backup.verify(backup.path) } == .invalid, "\(name)")
        }
        for bytes in [Int64.max, -1] {
            let other = try whole.replacing(Regex(#""bytes":\d+"#), with: #""bytes":\#(bytes)"#)
            try other.write(toFile: manifest, atomically: true, encoding: .utf8)
            #expect(Backup.all(in: folder).map(\.bytes) == [])
            #expect(code { _ = try Backup.verify(backup.path) } == .invalid)
        }
        // Equal entries are invalid: the sum of many could overflow.
        let file = #"{"bytes":1,"name":"tokens.sqlite","rows":{},"sha256":""}"#
        try #"{"created_ms":1,"files":[\#(file),\#(file)],"program":"1"}"#.write(
            toFile: manifest, atomically: true, encoding: .utf8)
        #expect(Backup.all(in: folder).map(\.bytes) == [])
        try whole.write(toFile: manifest, atomically: true, encoding: .utf8)
        #expect(try Backup.verify(backup.path) == backup)
        // Changes one byte in the text of an event, which SQLite's integrity check does not detect.
        let path = backup.path + "/events.sqlite"
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        let place = try #require(bytes.range(of: Data("m-1".utf8)))
        bytes[place.lowerBound] = UInt8(ascii: "x")
        try bytes.write(to: URL(fileURLWithPath: path))
        #expect(code { _ = try Backup.verify(backup.path) } == .invalid)
        #expect(code { _ = try Backup.restore(backup.path, to: folder + "/restored") } == .invalid)
        #expect(!FileManager.default.fileExists(atPath: folder + "/restored"))

        try FileManager.default.removeItem(atPath: backup.path + "/manifest.json")
        #expect(code { _ = try Backup.verify(backup.path) } == .notFound)
        #expect(Backup.all(in: folder).isEmpty)
    }

    /// A restore that a crash interrupts leaves this state.
    @Test(.onSQLite("backups are of its files")) func aGatewayDoesNotStartOnAnInterruptedRestore() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        let backup = try Backup.create(of: fixture.dataDirectory, in: folder)
        let target = folder + "/restored"
        try FileManager.default.createDirectory(
            atPath: target, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        for (name, content) in [
            ("unfinished-restore", ""), ("events.sqlite", ""), ("control.sqlite", "half"),
            ("events.sqlite-journal", "half"),
        ] { try Data(content.utf8).write(to: URL(fileURLWithPath: target + "/" + name)) }
        let rejection = #expect(throws: GatewayError.self) {
            try Gateway(configuration: GatewayConfiguration(dataDirectory: target))
        }
        #expect(rejection?.code == .conflict && rejection?.reason.contains("restore it again") == true)
        _ = try Backup.restore(backup.path, to: target)
        for name in ["unfinished-restore", "events.sqlite-journal"] {
            #expect(!FileManager.default.fileExists(atPath: target + "/" + name))
        }
        _ = try Gateway(configuration: GatewayConfiguration(dataDirectory: target))

        // The error for an unwritable target has the system's reason.
        let file = folder + "/file"
        try Data().write(to: URL(fileURLWithPath: file))
        let failure = #expect(throws: GatewayError.self) {
            try Backup.restore(backup.path, to: file + "/below")
        }
        #expect(failure?.reason == "\(file)/below cannot be written: Not a directory")
    }

    @Test func restoreDoesNotOverwriteADataDirectory() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        let backup = try Backup.create(of: fixture.dataDirectory, in: folder)
        #expect(code { _ = try Backup.restore(backup.path, to: fixture.dataDirectory) } == .conflict)
        #expect(code { _ = try Backup.create(of: folder, in: folder) } == .notFound)
    }

    /// The clock is `ahead` hours ahead at the first backup. The next one is due `next` hours after its true time.
    @Test(arguments: [(23.0, 0.0), (8_760, 0), (0.01, 24.01)])
    func aBackupMadeWithTheClockAheadDoesNotStopTheSchedule(ahead: Double, next: Double) throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        let start = Date(timeIntervalSince1970: 1_800_000_000)
        let now = Lock(start.addingTimeInterval(ahead * 3_600))
        let schedule = BackupSchedule(
            dataDirectory: fixture.dataDirectory, rules: BackupRules(hours: 24, keep: 1, folder: folder),
            now: { now.withLock { $0 } }, report: { _ in })
        schedule.makeIfDue()
        let first = Backup.all(in: folder)
        if next > 0 {
            now.withLock { $0 = start.addingTimeInterval((next - 0.01) * 3_600) }
            schedule.makeIfDue()
            #expect(Backup.all(in: folder).map(\.name) == first.map(\.name))
        }
        now.withLock { $0 = start.addingTimeInterval(next * 3_600) }
        schedule.makeIfDue()
        #expect(Backup.all(in: folder).count == 1)
        #expect(Backup.all(in: folder).map(\.name) != first.map(\.name))
    }

    @Test func theScheduleCountsFromTheNewestBackupAndKeepsALimitedNumber() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        let made = Lock(0)
        let start = Date(timeIntervalSince1970: 1_800_000_000)
        let now = Lock(start)
        let schedule = BackupSchedule(
            dataDirectory: fixture.dataDirectory, rules: BackupRules(hours: 6, keep: 2, folder: folder),
            now: { now.withLock { $0 } }
        ) { result in if case .success = result { made.withLock { $0 += 1 } } }
        for hours in [0.0, 1, 5.9, 6, 7, 12, 18] {
            now.withLock { $0 = start.addingTimeInterval(hours * 3_600) }
            schedule.makeIfDue()
        }
        #expect(made.withLock { $0 } == 4)
        func hours() -> [Double] {
            Backup.all(in: folder).map { (Double($0.createdMilliseconds) / 1000 - 1_800_000_000) / 3_600 }
        }
        #expect(hours() == [18, 12])
        // A clock that is a year ahead for a while.
        for hours in [8_760.0, 19, 24, 25, 30] {
            now.withLock { $0 = start.addingTimeInterval(hours * 3_600) }
            schedule.makeIfDue()
        }
        #expect(made.withLock { $0 } == 7)
        #expect(hours() == [30, 24])
    }

    @Test func backupsOnAFullDiskAreRetriedWithGrowingPauses() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        let failures = Lock<[GatewayError]>([])
        let start = DispatchTime.now()
        let uptime = Lock(start)
        let schedule = BackupSchedule(
            dataDirectory: fixture.dataDirectory, rules: BackupRules(hours: 24, keep: 2, folder: folder),
            floorBytes: 1 << 50, now: { Date() }, uptime: { uptime.withLock { $0 } }
        ) { result in if case .failure(let error) = result { failures.withLock { $0.append(error) } } }
        var tries: [Int] = []
        for minute in 0..<1_000 {
            uptime.withLock { $0 = start + Double(minute * 60) }
            let before = failures.withLock { $0.count }
            schedule.makeIfDue()
            if failures.withLock({ $0.count }) > before { tries.append(minute) }
        }
        #expect(tries == [0, 5, 15, 35, 75, 155, 315, 555, 795])
        let error = failures.withLock { $0[0] }
        #expect(error.code == .storage && error.reason.hasPrefix("no copy is made"), "\(error.reason)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
    }

    @Test func filesOfAnInterruptedCopyAreDeleted() throws {
        let fixture = try GatewayFixture(.standard, enforcement: .disabled)
        for (name, age) in [("countersign-1.partial", 7_200.0), ("countersign-2.partial", 60)] {
            let path = folder + "/" + name
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            try Data("part".utf8).write(to: URL(fileURLWithPath: path + "/events.sqlite"))
            for file in [path + "/events.sqlite", path] {
                try FileManager.default.setAttributes(
                    [.modificationDate: Date(timeIntervalSinceNow: -age)], ofItemAtPath: file)
            }
        }
        let backup = try Backup.create(of: fixture.dataDirectory, in: folder)
        // Another process may still be writing the newer copy.
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
                == ["countersign-2.partial", backup.name])
    }
}
