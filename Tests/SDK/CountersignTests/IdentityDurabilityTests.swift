import CountersignCore
import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignBloomreach
@testable import CountersignDelivery

/// The user, the customer and their tokens are as durable as the events recorded for them.
@Suite(.closing, .timeLimit(.minutes(5)))
struct IdentityDurabilityTests {
    @Test func aKillAfterAnAcknowledgedEventKeepsTheUserAndTheToken() async throws {
        let (bench, client) = try await Bench.signedIn()
        let copy = try await client.pipeline.whileStorageIsBusy {
            client.identify(userID: "bob", token: "b.b.b")
            try await client.record("his")
            return try bench.killedCopy()
        }
        let next = try copy.makeClient()
        #expect(next.userID == "bob")
        next.track("later")
        #expect(await next.flush().isComplete)
        #expect(copy.gateway.batches.map(\.token).allSatisfy { $0 == "b.b.b" })
        #expect(copy.gateway.events == ["his", "later"])
    }

    @Test func aLogOutIsNotStoredBeforeTheChangeOfTheUser() async throws {
        let (bench, client) = try await Bench.signedIn()
        let gate = Handshake()
        client.pipeline.recorder.writer.async { gate.block() }
        let copy = try await client.pipeline.whileStorageIsBusy {
            client.logOut { _ in }
            await client.stored.tokens.perform("the log-out is stored") { _, _ in }
            return try bench.killedCopy()
        }
        gate.signal()
        #expect(try copy.makeClient().userID == nil)
    }

    @Test func afterAKillDuringALogOutTheNextRunIsAnonymous() async throws {
        let (bench, client) = try await Bench.signedIn()
        let copy = try await client.pipeline.whileStorageIsBusy {
            let hasBegun = Handshake()
            client.pipeline.onSessionEvent { if case .began = $0 { hasBegun.signal() } }
            Task { await client.logOut() }
            await hasBegun.wait()
            try await client.record("anonymous")
            return try bench.killedCopy()
        }
        let next = try copy.makeClient()
        #expect(next.userID == nil)
        next.track("later")
        #expect(await next.flush().isComplete)
        await next.pipeline.engine.idle()
        #expect(Set(copy.gateway.batches.map(\.token)) == [nil])
    }

    @Test func aKillAfterANewTokenKeepsTheToken() async throws {
        let (bench, client) = try await Bench.signedIn()
        let copy = try await client.pipeline.whileStorageIsBusy {
            client.setToken("b.b.b")
            try await client.record("hers")
            return try bench.killedCopy()
        }
        let next = try copy.makeClient()
        #expect(await next.flush().isComplete)
        #expect(copy.gateway.batches.map(\.token) == ["b.b.b"])
    }

    @Test(arguments: [false, true])
    func aKillKeepsTheCustomerOfTheLastEvent(anonymizes: Bool) async throws {
        let folder = TemporaryFolder()
        let copy = TemporaryFolder()
        let device = try BloomreachDevice(directory: folder.url)
        device.client.identifyCustomer(["registered": "ada@example.com"])
        await device.client.flush()
        let ids = try await device.client.pipeline.whileStorageIsBusy {
            if anonymizes {
                device.client.anonymize()
            } else {
                device.client.identifyCustomer(["registered": "bob@example.com"])
            }
            device.client.trackEvent("last")
            _ = try await device.client.pipeline.store(
                BloomreachRecord(url: try #require(URL(string: "https://api.example.com/")), body: [:]))
            try copyAsKilled(
                folder.url.appendingPathComponent("bloomreach"),
                leaving: copy.url.appendingPathComponent("bloomreach"))
            return device.client.customerIDs
        }
        let next = try BloomreachDevice(directory: copy.url)
        #expect(next.client.customerIDs == ids)
    }

    // MARK: Full disks

    #if os(Linux)
        /// Simulates a full disk by a path so long that the names of temporary files do not fit. Existing
        /// files can be overwritten.
        private func fullDisk(_ folder: TemporaryFolder, instance: String) throws -> URL {
            let limit = Int(PATH_MAX) - ".new-\(UUID().uuidString)".utf8.count - instance.utf8.count
            var path = folder.url.path
            while path.utf8.count < limit {
                let rest = limit - path.utf8.count
                path += "/" + String(repeating: "x", count: rest < 250 ? max(1, rest - 1) : 200)
            }
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            return URL(fileURLWithPath: path, isDirectory: true)
        }

        /// Moves the client's files to a full disk while a client runs there.
        private func onFullDisk(
            _ bench: Bench, _ body: (CountersignClient) async throws -> Void
        ) async throws {
            var full = bench
            full.configuration.dataDirectory = try fullDisk(bench.folder, instance: "default")
            let (place, moved) = (
                bench.configuration.instanceDirectory, full.configuration.instanceDirectory
            )
            try FileManager.default.moveItem(at: place, to: moved)
            let client = try full.makeClient()
            try await body(client)
            await client.close()
            try FileManager.default.moveItem(at: moved, to: place)
        }

        @Test func aLogOutOnAFullDiskIsStoredAndItsTokenDeleted() async throws {
            let (bench, first) = try await Bench.signedIn()
            await first.close()
            let place = bench.configuration.instanceDirectory
            try await onFullDisk(bench) { client in
                #expect(client.userID == "ada")
                await client.logOut()
            }
            let store = ObservedStore(
                store: FileTokenStore(directory: place.appendingPathComponent("tokens")))
            var last = bench
            last.configuration.tokenStore = store
            let next = try last.makeClient()
            #expect(next.userID == nil)
            next.track("anonymous")
            await next.flush()
            #expect(bench.gateway.batches.last?.token == nil)
            // The next client ends the log-out.
            await store.hasRemoved.wait()
            #expect(try store.token(for: "ada") == nil)
        }

        @Test func aChangeOfUserOnAFullDiskIsStored() async throws {
            let (bench, first) = try Bench.open()
            first.identify(userID: "ada", token: "a.a.a")
            await first.close()
            try await onFullDisk(bench) { client in client.identify(userID: "bob") }
            #expect(try bench.makeClient().userID == "bob")
        }

        @Test func anAnonymizedCustomerStaysAnonymousOnAFullDisk() async throws {
            let folder = TemporaryFolder()
            let first = try BloomreachDevice(directory: folder.url.appendingPathComponent("disk"))
            first.client.identifyCustomer(["registered": "ada@example.com"])
            await first.client.close()
            let disk = try fullDisk(folder, instance: "bloomreach")
            try FileManager.default.removeItem(at: disk)
            try FileManager.default.moveItem(at: folder.url.appendingPathComponent("disk"), to: disk)
            let second = try BloomreachDevice(directory: disk)
            #expect(second.client.customerIDs["registered"] == "ada@example.com")
            second.client.anonymize()
            await second.client.close()
            let third = try BloomreachDevice(directory: disk)
            #expect(third.client.customerIDs["registered"] == nil)
            #expect(third.client.customerIDs["cookie"] == second.client.customerIDs["cookie"])
        }

        @Test func tokensAreRemovedOnAFullDisk() throws {
            let folder = TemporaryFolder()
            let directory = folder.url.appendingPathComponent("tokens")
            let store = FileTokenStore(directory: directory)
            for user in ["ada", "bob"] { try store.store("\(user).a.a", for: user) }
            let disk = try fullDisk(folder, instance: "x").appendingPathComponent("x")
            try FileManager.default.moveItem(at: directory, to: disk)
            let full = FileTokenStore(directory: disk)
            #expect(throws: (any Error).self) { try full.store("c.a.a", for: "cy") }
            try full.removeToken(for: "ada")
            #expect(try full.token(for: "ada") == nil)
            #expect(try full.token(for: "bob") == "bob.a.a")
            try full.removeAll()
            #expect(try full.token(for: "bob") == nil)
        }
    #endif

    @Test func aUserWhoseTokenFileIsMissingSendsNothing() async throws {
        let (bench, client) = try await Bench.signedIn()
        await client.close()
        try FileManager.default.removeItem(
            at: bench.configuration.instanceDirectory.appendingPathComponent("tokens"))
        let next = try bench.makeClient()
        next.track("hers")
        let before = bench.gateway.batches.count
        await next.flush()
        #expect(bench.gateway.batches.count == before)
        #expect(await next.snapshot().parked.map(\.reason) == ["no_token"])
        next.setToken("b.b.b")
        #expect(await next.flush().isComplete)
        #expect(bench.gateway.batches.last?.token == "b.b.b")
    }

    // MARK: Suspended processes

    @Test func aSuspendedProcessWithLocksDoesNotBlockAnother() async throws {
        let (bench, client) = try await Bench.signedIn()
        let directory = bench.configuration.instanceDirectory
        let locks = ["user.lock", "tokens/.tokens.lock"].map { name in
            open(directory.appendingPathComponent(name).path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        }
        for lock in locks { #expect(flock(lock, LOCK_EX | LOCK_NB) == 0) }
        defer { for lock in locks { close(lock) } }
        client.identify(userID: "bob", token: "b.b.b")
        client.track("his")
        #expect(await client.flush().isComplete)
        _ = await client.snapshot()
        await client.logOut()
        await client.close()
        let next = try bench.makeClient()
        #expect(next.userID == nil)
        let tokens = FileTokenStore(directory: directory.appendingPathComponent("tokens"))
        #expect(try tokens.token(for: "bob") == nil)
    }

    @Test func aResumedProcessDoesNotOverwriteNewerChanges() throws {
        let folder = TemporaryFolder()
        let file = folder.url.appendingPathComponent("file").path
        let lock = folder.url.appendingPathComponent("lock").path
        func add(_ text: String, limit: TimeInterval, meanwhile: () throws -> Void = {}) throws {
            try FileLock.withLock(at: lock, limit: limit) { held in
                let before = FileManager.default.contents(atPath: file) ?? Data()
                try meanwhile()
                try DurableFile.write(before + Data(text.utf8), to: file, check: held.check)
            }
        }
        var isStopped = true
        try add("a", limit: 3) {
            guard isStopped else { return }
            isStopped = false
            try add("b", limit: 0.01)
        }
        #expect(FileManager.default.contents(atPath: file) == Data("ba".utf8))
    }

    // MARK: Two processes

    @Test func anotherProcessStopsUsingTheTokenOfASignedOutUser() async throws {
        let (bench, one) = try Bench.open()
        let two = try bench.makeClient()
        for client in [one, two] {
            client.identify(userID: "ada", token: "a.a.a")
            #expect(await client.flush().isComplete)
        }
        #expect(await one.logOut().isComplete)
        two.track("hers")
        let before = bench.gateway.batches.count
        await two.flush()
        #expect(bench.gateway.batches.count == before)
        #expect(await two.snapshot().parked.map(\.userID) == ["ada"])
        two.setToken("b.b.b")
        #expect(await two.flush().isComplete)
        #expect(bench.gateway.batches.last?.token == "b.b.b")
    }

    @Test func theEntryOfASignedOutUserIsRemovedOnceNoEventsWait() async throws {
        let (bench, client) = try Bench.open()
        client.identify(userID: "ada", token: "a.a.a")
        client.track("hers")
        bench.gateway.respond { _ in .json(503, "{}") }
        await client.logOut()
        let users = StoredUser(directory: bench.configuration.instanceDirectory, writeKey: "wk_test")
        #expect(try users.load().loggedOut == ["ada"])
        try await client.pipeline.removeAllWaiting()
        client.identify(userID: "bob", token: "b.b.b")
        bench.gateway.respond { _ in nil }
        await client.logOut()
        #expect(try users.load().loggedOut == [])
    }

    // MARK: The file

    private func makeFile() -> (folder: TemporaryFolder, file: SlotFile) {
        let folder = TemporaryFolder()
        return (folder, SlotFile(path: folder.url.appendingPathComponent("file").path))
    }

    private func change(_ file: SlotFile, _ body: (inout [UInt8]) -> Void) throws {
        let url = URL(fileURLWithPath: file.path)
        var bytes = [UInt8](try Data(contentsOf: url))
        body(&bytes)
        let handle = try FileHandle(forWritingTo: url)
        try handle.write(contentsOf: Data(bytes))
        try handle.close()
    }

    @Test func theLastOfTwoWritersWinsAndEarlierBytesAreErased() throws {
        let (folder, file) = makeFile()
        let other = SlotFile(path: file.path)
        #expect(file.content == .missing)
        try file.write(nil)
        #expect(file.content == .missing)
        for serial in 0..<5 {
            try file.write(Array("secret \(serial)".utf8))
            try other.write(Array("other \(serial)".utf8))
            #expect(file.content == .value(Array("other \(serial)".utf8)))
        }
        try file.write(nil)
        #expect(other.content == .value([]))
        try file.synchronize { _ in true }
        let content = String(decoding: try Data(contentsOf: URL(fileURLWithPath: file.path)), as: UTF8.self)
        #expect(!content.contains("other") && !content.contains("secret"))
        let large = [UInt8](repeating: 7, count: 50_000)
        try file.write(large)
        #expect(other.content == .value(large))
        try other.write([1])
        #expect(file.content == .value([1]))
        try file.remove()
        #expect(other.content == .missing)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
    }

    @Test func aTornWriteMakesTheValueUnreadable() throws {
        let (folder, file) = makeFile()
        try file.write(Array("ada".utf8))
        try file.write(Array("nobody".utf8))
        try change(file) { $0[4_096 + 26] ^= 1 }
        #expect(file.content == .unreadable)
        try file.write(Array("bob".utf8))
        #expect(file.content == .value(Array("bob".utf8)))
        try Data("{".utf8).write(to: URL(fileURLWithPath: file.path))
        #expect(file.content == .unreadable)
        withExtendedLifetime(folder) {}
    }

    @Test func dataLostByAFailedFlushIsWrittenAgain() throws {
        let (folder, file) = makeFile()
        try file.write(Array("ada".utf8))
        #expect(throws: CountersignError.self) { try file.synchronize { _ in false } }
        // Simulates a system that drops pages it could not write.
        try change(file) { $0 = [UInt8](repeating: 0, count: $0.count) }
        var flushes = 0
        try file.synchronize { _ in
            flushes += 1
            return true
        }
        #expect(flushes == 1)
        #expect(file.content == .value(Array("ada".utf8)))
        withExtendedLifetime(folder) {}
    }

    @Test func theNewestValueIsWrittenAgainAfterAFailedFlush() throws {
        let (folder, file) = makeFile()
        let other = SlotFile(path: file.path)
        try file.write(Array("ada".utf8))
        #expect(throws: CountersignError.self) { try file.synchronize { _ in false } }
        try file.write(Array("bob".utf8))
        try file.synchronize { _ in true }
        #expect(file.content == .value(Array("bob".utf8)))
        try file.write(Array("eve".utf8))
        #expect(throws: CountersignError.self) { try file.synchronize { _ in false } }
        try other.write(Array("of another process".utf8))
        try file.synchronize { _ in true }
        #expect(file.content == .value(Array("of another process".utf8)))
        withExtendedLifetime(folder) {}
    }

    /// The system reports a failed flush to one caller. A concurrent flush succeeds without the lost data.
    @Test func aFlushFailsIfAConcurrentFlushFails() throws {
        let (folder, file) = makeFile()
        try file.write(Array("ada".utf8))
        func failingFlush(_: Int32) -> Bool { (try? file.synchronize { _ in false }) == nil }
        #expect(throws: CountersignError.self) { try file.synchronize(by: failingFlush) }
        try file.synchronize { _ in true }
        #expect(file.content == .value(Array("ada".utf8)))
        withExtendedLifetime(folder) {}
    }
}

/// A store that signals when a token was removed.
private struct ObservedStore: TokenStore {
    let store: FileTokenStore
    let hasRemoved = Handshake()

    func token(for userID: String) throws -> String? { try store.token(for: userID) }
    func store(_ token: String, for userID: String) throws { try store.store(token, for: userID) }
    func removeToken(for userID: String) throws {
        try store.removeToken(for: userID)
        hasRemoved.signal()
    }
    func removeAll() throws { try store.removeAll() }
}
