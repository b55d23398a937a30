import CountersignCore
import CountersignGatewayTesting
import CountersignSQLite
import CountersignTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import TestSupport
import Testing

@testable import GatewayStorage

/// Event counts of apps and keys are exact, although they are written only once a second.
@Suite(.onSQLite("its own log of events"), .ownThreads, .timeLimit(.minutes(5)))
struct EventCountsTests {
    private let folder = TemporaryFolder()

    private func path(in place: String) throws -> String {
        let place = folder.url.appendingPathComponent(place)
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        return place.appendingPathComponent("events.sqlite").path
    }

    /// Opens a store that writes counts with its first commit and when it is closed.
    private func open(_ path: String) throws -> SQLiteEventStore {
        try SQLiteEventStore(path: path, pendingBytes: 1 << 20, countSeconds: 86_400)
    }

    private func append(
        _ ids: String..., app: String = "shop", user: String = "ada", to store: SQLiteEventStore
    ) throws {
        let events = ids.map {
            EventBatch.Event(
                messageID: $0, kind: .track, userID: user, timestampMilliseconds: 0, json: 0..<2)
        }
        let batch = EventBatch(
            appID: app, receivedMilliseconds: 5, body: Array("{}".utf8), events: events,
            proof: EventProof(
                verdict: .verified, keyID: "k", dialect: "native", requestID: "r-\(ids.joined())"))
        store.noteKeyUse(appID: app, keyID: "k", milliseconds: 5)
        let isStored = Lock(false)
        let done = DispatchSemaphore(value: 0)
        store.append(batch) { result in
            isStored.withLock { $0 = (try? result.get())?.accepted == ids.count }
            done.signal()
        }
        try done.waitForSignal()
        #expect(isStored.withLock { $0 })
    }

    private func usage(_ path: String) throws -> [String] {
        try SQLiteConnection(path: path, mode: .readOnly).all(
            "SELECT app_id || ' ' || events || ' ' || bytes FROM app_usage ORDER BY 1"
        ) { $0.text(0) }
    }

    private func log(_ path: String) -> SQLiteEventLog {
        SQLiteEventLog(readers: SQLiteReaders(path: path), runs: OpenIndexRuns())
    }

    @Test func countsAreExactBetweenTheirPeriodicWrites() throws {
        let path = try path(in: "live")
        let store = try open(path)
        try append("m-1", to: store)
        try append("m-2", "m-3", to: store)
        #expect(try usage(path) == ["shop 1 2"])
        #expect(try log(path).count() == 3)
        store.close()
        #expect(try usage(path) == ["shop 3 6"])
        #expect(try log(path).count() == 3)
    }

    /// Copies the files of a running store, as a kill would leave them.
    private func copyFiles(_ live: String, to killed: String) throws {
        for file in ["", "-wal"] {
            try FileManager.default.copyItem(atPath: live + file, toPath: killed + file)
        }
    }

    @Test func aKillBetweenTwoWritesOfCountsLosesNoCount() throws {
        let live = try path(in: "live")
        let killed = try path(in: "killed")
        let store = try open(live)
        try append("m-1", to: store)
        try append("m-2", "m-3", to: store)
        try append("m-1", app: "blog", to: store)
        try copyFiles(live, to: killed)
        store.close()
        #expect(try usage(killed) == ["shop 1 2"])
        #expect(try log(killed).count() == 4)
        let again = try open(killed)
        #expect(try usage(killed) == ["blog 1 2", "shop 3 6"])
        try append("m-4", to: again)
        again.close()
        #expect(try usage(killed) == ["blog 1 2", "shop 4 8"])
        #expect(try log(killed).count() == 5)
        #expect(try log(killed).keyUses(of: "shop").map(\.verified) == [3])
        #expect(try log(killed).keyUses(of: "blog").map(\.verified) == [1])
    }

    @Test func aKillAfterAFailedFlushLosesNoUseOfAKey() throws {
        let path = try path(in: "live")
        let store = try open(path)
        defer { store.close() }
        try append("m-1", to: store)
        try append("m-2", to: store)
        _ = try EventLogWriter(path: path, afterFailure: true)
        _ = try EventLogWriter(path: path)
        #expect(try log(path).keyUses(of: "shop").map(\.verified) == [2])
    }

    @Test func eventsDeletedBeforeTheyAreCountedAreSubtractedOnce() throws {
        let path = try path(in: "live")
        let store = try open(path)
        try append("m-1", to: store)
        try append("m-2", "m-3", to: store)
        let other = try SQLiteConnection(path: path)
        let index = try EventIndexReader(
            other, folder: IndexFolder.path(besides: path), runs: OpenIndexRuns())
        let ada = CustomerIdentifier(name: CustomerIdentifier.hardName, value: "ada")
        #expect(
            try SQLiteCustomerRecords.deletePiece(of: ada, in: "shop", after: 0, other, index).events == 3)
        try append("m-4", to: store)
        #expect(try log(path).count() == 1)
        store.close()
        #expect(try usage(path) == ["shop 1 2"])
        #expect(try log(path).keyUses(of: "shop").map(\.verified) == [3])
    }

    /// The rows of `app_user`.
    private func listedUsers(_ path: String) throws -> [String] {
        try SQLiteConnection(path: path, mode: .readOnly).all(
            "SELECT app_id || ' ' || user_id FROM app_user ORDER BY 1"
        ) { $0.text(0) }
    }

    private func users(_ path: String, after last: String = "") throws -> [String] {
        var users: [String] = []
        try log(path).users(of: "shop", after: last) { user in
            users.append(user)
            return false
        }
        return users
    }

    @Test func usersAreFoundBeforeTheirListIsWrittenWithTheCounts() throws {
        let path = try path(in: "live")
        let store = try open(path)
        try append("m-1", user: "bob", to: store)
        try append("m-2", user: "eve", to: store)
        try append("m-3", user: "ada", to: store)
        try append("m-4", user: "bob", to: store)
        try append("m-5", app: "blog", user: "cat", to: store)
        #expect(try listedUsers(path) == ["shop bob"])
        #expect(try users(path) == ["ada", "bob", "eve"])
        #expect(try users(path, after: "ada") == ["bob", "eve"])
        store.close()
        #expect(try listedUsers(path) == ["blog cat", "shop ada", "shop bob", "shop eve"])
        #expect(try users(path) == ["ada", "bob", "eve"])
    }

    @Test func usersAreListedAfterAKill() throws {
        let live = try path(in: "live")
        let killed = try path(in: "killed")
        let store = try open(live)
        try append("m-1", user: "ada", to: store)
        try append("m-2", user: "bob", to: store)
        try copyFiles(live, to: killed)
        store.close()
        #expect(try listedUsers(killed) == ["shop ada"])
        try open(killed).close()
        #expect(try listedUsers(killed) == ["shop ada", "shop bob"])
    }

    @Test func deletedUserIsNotListedLater() throws {
        let path = try path(in: "live")
        let store = try open(path)
        try append("m-1", user: "ada", to: store)
        try append("m-2", user: "bob", to: store)
        let other = try SQLiteConnection(path: path)
        let index = try EventIndexReader(
            other, folder: IndexFolder.path(besides: path), runs: OpenIndexRuns())
        let bob = CustomerIdentifier(name: CustomerIdentifier.hardName, value: "bob")
        #expect(
            try SQLiteCustomerRecords.deletePiece(of: bob, in: "shop", after: 0, other, index).events == 1)
        try append("m-3", user: "cat", to: store)
        store.close()
        #expect(try listedUsers(path) == ["shop ada", "shop cat"])
    }

    @Test func keyUsesOfADeletedAppAreNotWrittenLater() throws {
        let path = try path(in: "live")
        let store = try open(path)
        try append("m-1", to: store)
        try append("m-2", to: store)
        try append("m-3", app: "blog", to: store)
        try store.erase(appID: "shop")
        store.close()
        #expect(try log(path).keyUses(of: "shop").isEmpty)
        #expect(try log(path).keyUses(of: "blog").map(\.verified) == [1])
    }

    @Test func retentionWritesPendingCountsBeforeItDeletes() throws {
        let path = try path(in: "live")
        let log = try EventLogWriter(path: path)
        defer { log.close() }
        let events = (0..<3).map {
            EventBatch.Event(
                messageID: "m-\($0)", kind: .track, userID: "ada", timestampMilliseconds: 0, json: 0..<2)
        }
        _ = try log.store(
            [EventBatch(appID: "shop", receivedMilliseconds: 5, body: Array("{}".utf8), events: events)],
            counting: nil)
        var sweeper = RetentionSweeper()
        var uses = KeyUseTally()
        uses.add(appID: "shop", keyID: "key", milliseconds: 5)
        // No event has expired, so no count is written.
        sweeper.begin(["shop": AppRules(days: 1)], nowMilliseconds: 5)
        #expect(!sweeper.isDone)
        while !sweeper.isDone { _ = try log.sweep(&sweeper, counting: &uses) }
        #expect(!uses.isEmpty && log.hasUncounted)
        sweeper.begin(["shop": AppRules(bytes: 4)], nowMilliseconds: 5)
        while !sweeper.isDone { _ = try log.sweep(&sweeper, counting: &uses) }
        #expect(uses.isEmpty)
        #expect(try usage(path) == ["shop 2 4"])
        #expect(try listedUsers(path) == ["shop ada"])
        #expect(!log.hasUncounted)
    }
}
