import CountersignCore
import Testing

@testable import CountersignDelivery

/// The states of the recorder, without threads or files.
struct RecorderStateTests {
    private func event(_ sequence: Int64) -> RenderedEvent {
        RenderedEvent(sequence: sequence, messageID: "\(sequence)", userID: nil, sessionID: "s", body: [])
    }

    private func index(_ count: Int64, maximumInMemory: Int = .max) -> LogIndex {
        var index = LogIndex()
        for sequence in 1...count {
            index.append(event(sequence), bytes: 10, maximumInMemory: maximumInMemory)
        }
        return index
    }

    @Test func eventsLeftByAPartialCheckpointStayInTheLogInOrder() {
        var index = index(3)
        #expect(index.beginCheckpoint().map(\.sequence) == [1, 2, 3])
        index.append(event(4), bytes: 10, maximumInMemory: .max)
        #expect(index.endCheckpoint(1, through: 1) == 0)
        #expect(index.count == 3 && index.bytes == 30)
        #expect(index.beginCheckpoint().map(\.sequence) == [2, 3, 4])
        #expect(index.endCheckpoint(3, through: 4) == 1, "a transaction is durable after the next one")
        #expect(index.count == 0 && index.bytes == 0)
    }

    @Test func aFailedCheckpointIsRepeatedWithNewerEvents() {
        var index = index(2)
        _ = index.beginCheckpoint()
        index.append(event(3), bytes: 10, maximumInMemory: .max)
        index.failCheckpoint()
        #expect(index.count == 3 && index.bytes == 30)
        #expect(index.beginCheckpoint().map(\.sequence) == [1, 2, 3])
    }

    @Test func aWipeDuringACheckpointLeavesNothing() {
        var index = index(2)
        _ = index.beginCheckpoint()
        index.append(event(3), bytes: 10, maximumInMemory: .max)
        #expect(index.removeAll() == 3)
        _ = index.endCheckpoint(2, through: 2)
        #expect(index.count == 0 && index.bytes == 0)
    }

    @Test func eventsOverTheMemoryLimitAreOnlyInTheLog() {
        var index = index(3, maximumInMemory: 20)
        index.remove([1])
        #expect(index.appended.map { $0.event == nil } == [false, true])
        index.append(event(4), bytes: 10, maximumInMemory: 20)
        #expect(index.beginCheckpoint().map { $0.event == nil } == [false, true, false])
    }

    /// A power failure can undo the last transaction of the queue file.
    @Test func theLastCheckpointIsNotKnownToBeDurable() {
        var index = index(2)
        _ = index.beginCheckpoint()
        #expect(index.endCheckpoint(1, through: 1) == 0)
        _ = index.beginCheckpoint()
        #expect(index.endCheckpoint(1, through: 2) == 1)
        #expect(index.durable == 1 && index.moved == 2)
    }

    @Test func aDiskErrorStaysUntilLogAndCheckpointSucceed() {
        var disk = DiskState()
        #expect(disk.failed(.log, "full") && !disk.failed(.log, "full") && disk.failed(.checkpoint, "locked"))
        #expect(disk.succeeded(.log) && disk.lastError == "locked")
        #expect(disk.succeeded(.checkpoint) && disk.lastError == nil && !disk.succeeded(.checkpoint))
    }

    @Test func anIdentityChangedDuringItsWriteIsWrittenAgain() {
        var user = CurrentUser(id: "ada")
        user.setIdentity([1])
        let first = user.unwrittenRevision
        user.setIdentity([2])
        user.wrote(first ?? 0)
        #expect(user.unwrittenRevision != nil)
        user.wrote(user.unwrittenRevision ?? 0)
        #expect(user.unwrittenRevision == nil)
        user.wipe()
        user.set("cy")
        #expect(user.wipeRevision < user.revision && !user.isUser("ada") && user.isUser("cy"))
    }
}
