import CountersignCore
import CountersignTesting
import Foundation
import Testing

@testable import CountersignDelivery

/// The write-ahead log alone, with full disks, damaged files and unusual directories.
struct WriteAheadLogTests {
    private let folder = TemporaryFolder()
    private let holder = LeaseOwner()

    init() throws {
        try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
    }

    private func event(_ name: String) -> RenderedEvent {
        RenderedEvent(messageID: name, userID: nil, sessionID: "s", body: Array("{}".utf8))
    }

    private func file(_ number: Int) -> URL {
        folder.url.appendingPathComponent(
            "\(WriteAheadLog.prefix)\(holder.id)-\(getpid())-\(number)\(WriteAheadLog.suffix)")
    }

    /// A Linux device on which each write fails with `ENOSPC`.
    private static let fullDisk = "/dev/full"
    private static let hasFullDisk = FileManager.default.fileExists(atPath: fullDisk)

    @Test(.enabled(if: hasFullDisk)) func eventsRejectedByAFullDiskGetNoSequenceNumber() throws {
        try FileManager.default.createSymbolicLink(atPath: file(0).path, withDestinationPath: Self.fullDisk)
        let log = WriteAheadLog(directory: folder.url, holder: holder)
        #expect(throws: CountersignError.self) { try log.append([event("1"), event("2")]) }
        #expect(log.last == 0)
        try FileManager.default.removeItem(at: file(0))
        #expect(try log.append([event("3")]).last?.sequence == 1)
        #expect(
            try WriteAheadLog.all(in: folder.url).flatMap { try $0.events(after: 0).events }.map(\.messageID)
                == ["3"])
    }

    @Test(.enabled(if: hasFullDisk)) func aWriteThatFailsWhileFilesAreTruncatedLosesNoEvent() throws {
        try FileManager.default.createSymbolicLink(atPath: file(1).path, withDestinationPath: Self.fullDisk)
        let calls = Lock<[() -> Void]>([])
        let log = WriteAheadLog(
            directory: folder.url, holder: holder,
            empty: { descriptor in
                calls.withLock { $0.popLast() }?()
                return WriteAheadLog.empty(descriptor)
            })
        #expect(try log.append([event("1")]).last?.sequence == 1)
        log.rotate()
        calls.withLock { calls in
            calls = [{ #expect(throws: CountersignError.self) { try log.append([event("2")]) } }]
        }
        log.reclaim(through: 1)
        #expect(calls.withLock { $0.isEmpty })
        try FileManager.default.removeItem(at: file(1))
        #expect(try log.append([event("3")]).last?.sequence == 2)
    }

    @Test(arguments: ["", "1", "7-0", "a-b-c", "a-x-0", "a-99999999999-0"])
    func aFileOfAnotherNameIsNotALog(name: String) throws {
        let path = folder.url.appendingPathComponent("\(WriteAheadLog.prefix)\(name)\(WriteAheadLog.suffix)")
        try Data().write(to: path)
        #expect(try WriteAheadLog.all(in: folder.url).isEmpty)
    }

    /// The length of the message id, the session or the body exceeds the event. The checksum is correct.
    @Test(arguments: [0, 1, 2]) func aFieldLengthBeyondItsEventIsDamage(field: Int) throws {
        let log = WriteAheadLog(directory: folder.url, holder: holder)
        try log.append([event("m1")])
        var bytes = [UInt8](try Data(contentsOf: file(0)))
        // The fields' offsets: 16 bytes of length, checksum and number, then message id, user, session and body.
        let position = [16, 16 + 4 + 2 + 4, 16 + 4 + 2 + 4 + 4 + 1][field]
        bytes.replaceSubrange(position..<position + 4, with: [0xFE, 0xFF, 0xFF, 0xFF])
        let checksum = CRC32.of(bytes[8...])
        for index in 0..<4 { bytes[4 + index] = UInt8(truncatingIfNeeded: checksum >> (8 * UInt32(index))) }
        try Data(bytes).write(to: file(0))
        let next = WriteAheadLog(directory: folder.url, holder: holder)
        try next.append(numbered: [event("m2").numbered(2)])
        let found = try #require(try WriteAheadLog.all(in: folder.url).first).events(after: 0)
        #expect(found.events.map(\.messageID) == ["m2"])
    }

    /// A power failure may leave zeros where the end of a file should be.
    @Test func trailingZerosOfALogAreNotEvents() throws {
        let log = WriteAheadLog(directory: folder.url, holder: holder)
        try log.append([event("1")])
        var bytes = try Data(contentsOf: file(0))
        bytes.append(Data(count: 4_096))
        try bytes.write(to: file(0))
        let found = try #require(try WriteAheadLog.all(in: folder.url).first).events(after: 0)
        #expect(found.events.map(\.messageID) == ["1"])
        #expect(found.unreadable == 0)
    }

    @Test func aLogWithExtremeSequenceNumbersIsRead() throws {
        let log = WriteAheadLog(directory: folder.url, holder: holder)
        try log.append(numbered: [
            event("m0").numbered(.min), event("m1").numbered(1), event("m2").numbered(.max),
        ])
        let found = try #require(try WriteAheadLog.all(in: folder.url).first).events(after: 0)
        #expect(found.events.map(\.messageID) == ["m1", "m2"])
        #expect(found.unreadable == 0)
    }

    /// Flips each bit of a log, including the last event's length and checksum.
    @Test(arguments: [1, 3]) func aFlippedBitCostsAtMostOneEventAndIsReported(events: Int) throws {
        let log = WriteAheadLog(directory: folder.url, holder: holder)
        try log.append((1...events).map { event("\($0)") })
        let saved = try Data(contentsOf: file(0))
        for bit in 0..<saved.count * 8 {
            var bytes = saved
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            try bytes.write(to: file(0))
            let found = try #require(try WriteAheadLog.all(in: folder.url).first).events(after: 0)
            #expect(found.events.count >= events - 1, "bit \(bit)")
            #expect(found.events.count + found.unreadable == events, "bit \(bit)")
            #expect(found.damagedPaths == [file(0).path], "bit \(bit)")
        }
    }

    /// An event that was not written completely was never acknowledged, so it does not count as lost.
    @Test func aTruncatedLastEventIsNotCountedAsDamage() throws {
        let log = WriteAheadLog(directory: folder.url, holder: holder)
        try log.append([event("1"), event("2")])
        let saved = try Data(contentsOf: file(0))
        for count in saved.count / 2..<saved.count {
            try saved.prefix(count).write(to: file(0))
            let found = try #require(try WriteAheadLog.all(in: folder.url).first).events(after: 0)
            #expect(found.events.count == 1 && found.unreadable == 0 && found.damagedPaths.isEmpty)
        }
    }

    /// The second of three events is damaged.
    @Test(arguments: [(true, false, 1), (false, false, 0), (true, true, 0)])
    func damagedEventsAreCountedWhenTheirLogEnds(isOver: Bool, hasOptedOut: Bool, expected: Int) throws {
        let clock = ManualClock()
        let log = WriteAheadLog(directory: folder.url, holder: holder)
        try log.append([event("1"), event("2"), event("3")])
        var bytes = try Data(contentsOf: file(0))
        // The message id: 20 bytes of length, checksum, number and the id's length precede it.
        bytes[bytes.count / 3 + 20] = UInt8(ascii: "x")
        try bytes.write(to: file(0))
        let queue = try EventQueue(
            path: folder.url.appendingPathComponent("queue.sqlite").path, limits: QueueLimits(), clock: clock)
        if hasOptedOut {
            try Data().write(to: folder.url.appendingPathComponent(DataFolder.optOutName))
        }
        let found = try #require(try WriteAheadLog.all(in: folder.url).first)
        try queue.adopt(found, isOver: isOver)
        #expect(try queue.value(of: .rows) == (hasOptedOut ? 0 : 2))
        #expect(try queue.value(of: .unreadable) == expected)
        #expect(try queue.value(of: .recorded) == (hasOptedOut ? 0 : 2 + expected))
    }

    @Test func anUnreadableLogIsReportedAsIncomplete() throws {
        // A directory cannot be read as a file.
        try FileManager.default.createDirectory(at: file(0), withIntermediateDirectories: true)
        let path = folder.url.appendingPathComponent("queue.sqlite").path
        let queue = try EventQueue(path: path, limits: QueueLimits(), clock: ManualClock())
        let found = try #require(try WriteAheadLog.all(in: folder.url).first)
        #expect(try !queue.adopt(found, isOver: true).isComplete)
    }
}
