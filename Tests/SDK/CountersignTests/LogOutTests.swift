import CountersignCore
import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery
@testable import CountersignTransport

/// The effects of a log-out. The scenarios of `Conformance` cover the externally visible effects too.
@Suite(.closing, .timeLimit(.minutes(5)))
struct LogOutTests {
    /// A gateway that stores nothing and answers 503.
    @Sendable private func offline(_: FakeGateway.Received) -> TransportResponse? { .json(503, "{}") }

    private func token(_ bench: Bench) throws -> String? {
        let directory = bench.configuration.instanceDirectory.appendingPathComponent("tokens")
        return try FileTokenStore(directory: directory).token(for: "ada")
    }

    private func tokens(_ bench: Bench) -> [String?] { bench.gateway.batches.map(\.token) }

    private func parked(_ client: CountersignClient) async -> [String] {
        await client.snapshot().parked.map { "\($0.userID ?? "") \($0.reason) \($0.isPaused)" }
    }

    private func file(_ bench: Bench) -> URL {
        bench.configuration.instanceDirectory.appendingPathComponent("user.json")
    }

    /// Restarts the client unless `damage` is nil. Text in `damage` replaces the file of log-outs before the restart.
    @Test(arguments: [nil, "", "{"])
    func eventsOfASignedOutUserAreNotSentWithoutAToken(damage: String?) async throws {
        let (bench, first) = try Bench.open()
        var client = first
        client.setUser("ada", token: "a.a.a")
        client.track("hers")
        bench.gateway.respond(offline)
        #expect(await client.logOut().queued == 1)
        #expect(try token(bench) == nil)
        bench.gateway.respond { _ in nil }
        if let damage {
            await client.close()
            if !damage.isEmpty { try Data(damage.utf8).write(to: file(bench)) }
            client = try bench.makeClient()
        }
        let before = bench.gateway.batches.count
        client.setUser("bob", token: "b.b.b")
        client.track("his")
        let result = await client.flush()
        #expect(Set(result.batches.map { "\($0.userID ?? "") \($0.code)" }) == ["ada logged_out", "bob "])
        bench.clock.advance(by: 3_600)
        client.startSession()
        await client.flush()
        #expect(tokens(bench).dropFirst(before) == ["b.b.b"])
        #expect(await parked(client) == ["ada logged_out true"])
        let inspection = "\(await CountersignInspector(client).inspect())"
        #expect(inspection.contains("ada: logged_out, 0 failures, paused"))
        client.setUser("ada", token: nil)
        await client.flush()
        #expect(bench.gateway.events == ["his"], "signed in again, but without a token")
        client.setToken("c.c.c")
        #expect(await client.flush().isComplete)
        #expect(bench.gateway.events == ["his", "hers"])
        #expect(tokens(bench).last == "c.c.c")
        await client.logOut()
        client.setUser("ada", token: nil)
        client.track("later")
        #expect(await client.flush().isComplete, "no events waited at the second log-out")
    }

    @Test func signingOutTwiceWithoutATokenStaysSignedOut() async throws {
        let (bench, client) = try Bench.open()
        bench.gateway.respond(offline)
        client.setUser("ada", token: "a.a.a")
        client.track("hers")
        await client.logOut()
        client.setUser("ada", token: nil)
        await client.logOut()
        bench.gateway.respond { _ in nil }
        await client.flush()
        #expect(bench.gateway.events == [])
    }

    @Test func requeuedEventsOfASignedOutUserWaitToo() async throws {
        let (bench, client) = try Bench.open()
        bench.gateway.respond { received in
            let rejected = #"[{"index":0,"code":"invalid_event","reason":"scripted"}]"#
            return received.messages.contains { $0.event == "bad" }
                ? .json(200, #"{"success":true,"accepted":1,"duplicates":0,"rejected":\#(rejected)}"#) : nil
        }
        client.setUser("ada", token: "a.a.a")
        client.track("bad")
        client.track("good")
        #expect(await client.logOut().isComplete)
        bench.gateway.respond { _ in nil }
        #expect(try await client.requeueQuarantinedEvents() == 1)
        await client.flush()
        #expect(tokens(bench) == ["a.a.a"])
    }

    /// The app or the client may end before the log-out completes.
    @Test(arguments: [false, true])
    func anUnfinishedLogOutIsFinishedByTheNextRun(isSignedInAgain: Bool) async throws {
        let store = UnreliableStore()
        let (bench, client) = try Bench.open { $0.tokenStore = store }
        client.setUser("ada", token: "a.a.a")
        client.track("hers")
        let forever = Handshake()
        bench.transport.setHandler { _ in
            await forever.wait()
            throw CancellationError()
        }
        let over = Task { await client.logOut() }
        await bench.transport.waitForRequests(1)
        if isSignedInAgain { client.setUser("ada", token: "b.b.b") }
        await client.close()
        #expect(await over.value.ending == .closed)
        bench.transport.setHandler { [gateway = bench.gateway] request in try gateway.answer(request) }
        let next = try bench.makeClient()
        #expect(next.userID == (isSignedInAgain ? "ada" : nil))
        if isSignedInAgain { await next.flush() } else { await store.hasForgotten.wait() }
        #expect(bench.gateway.events == ["hers"])
        #expect(tokens(bench) == [isSignedInAgain ? "b.b.b" : "a.a.a"])
        #expect(try store.token(for: "ada") == (isSignedInAgain ? "b.b.b" : nil))
    }

    @Test(arguments: ["a.a.a", "b.b.b"])
    func signingInAgainDuringTheSignOutKeepsTheToken(token: String) async throws {
        let (bench, client) = try Bench.open()
        client.setUser("ada", token: "a.a.a")
        client.track("one")
        let gate = Handshake()
        bench.transport.setHandler { [gateway = bench.gateway] request in
            await gate.wait()
            return try gateway.answer(request)
        }
        let over = Task { await client.logOut() }
        await bench.transport.waitForRequests(1)
        client.setUser("ada", token: token)
        client.setUser("bob", token: "o.o.o")
        gate.signal()
        #expect(await over.value.isComplete)
        client.setUser("ada", token: nil)
        client.track("two")
        await client.flush()
        #expect(tokens(bench) == ["a.a.a", token])
        #expect(try self.token(bench) == token)
    }

    @Test func aWipeDuringALogOutDeletesItsEventsAndToken() async throws {
        let (bench, client) = try Bench.open()
        client.setUser("ada", token: "a.a.a")
        client.track("hers")
        let gate = Handshake()
        bench.transport.setHandler { _ in
            await gate.wait()
            return .json(503, "{}")
        }
        let over = Task { await client.logOut() }
        await bench.transport.waitForRequests(1)
        let wipe = Task { try await client.wipeData() }
        gate.signal()
        try await wipe.value
        _ = await over.value
        bench.transport.setHandler { [gateway = bench.gateway] request in try gateway.answer(request) }
        await client.close()
        #expect(try token(bench) == nil)
        let content = FileManager.default.contents(atPath: file(bench).path) ?? Data()
        #expect(String(decoding: content, as: UTF8.self).contains(#""ada""#) == false)
        let directory = bench.configuration.instanceDirectory
        #expect(StoredUser(directory: directory, writeKey: "wk_test").file.content == .missing)
    }

    @Test func failuresOfARemovedTokenAreNotReported() async throws {
        let (bench, client) = try Bench.open()
        bench.gateway.respond { _ in .tokenProblem(.expired) }
        client.setUser("ada", token: "a.a.a")
        client.track("hers")
        await client.logOut()
        var failures = client.authenticationFailures.makeAsyncIterator()
        client.setUser("bob", token: "b.b.b")
        client.track("his")
        await client.flush()
        #expect(await failures.next()?.userID == "bob")
    }

    // MARK: Two processes

    @Test func aSignOutInOneProcessParksEventsInTheOther() async throws {
        let (bench, one) = try Bench.open()
        let two = try bench.makeClient()
        // The second client has already looked for a token.
        two.setUser("ada", token: nil)
        two.track("first")
        #expect(await two.flush().isComplete)
        bench.gateway.respond(offline)
        one.setUser("ada", token: "a.a.a")
        one.track("hers")
        await one.logOut()
        bench.gateway.respond { _ in nil }
        let before = bench.gateway.batches.count
        await two.flush()
        #expect(bench.gateway.batches.count == before)
        one.setUser("ada", token: "c.c.c")
        await one.pipeline.engine.perform { [] }
        #expect(await two.flush().isComplete)
        #expect(tokens(bench).last == "c.c.c", "the token of the other process")
    }

    @Test func signingInAgainInAnotherProcessKeepsItsToken() async throws {
        let (bench, one) = try Bench.open()
        let two = try bench.makeClient()
        one.setUser("ada", token: "a.a.a")
        one.track("one")
        let gate = Handshake()
        bench.transport.setHandler { [gateway = bench.gateway] request in
            await gate.wait()
            return try gateway.answer(request)
        }
        let over = Task { await one.logOut() }
        await bench.transport.waitForRequests(1)
        two.setUser("ada", token: "a.a.a")
        await two.pipeline.engine.perform { [] }
        gate.signal()
        #expect(await over.value.isComplete)
        #expect(try token(bench) == "a.a.a")
    }

    @Test func aLogOutIsKeptWhileTheLogOfAnotherClientMayHaveEvents() async throws {
        let (bench, one) = try Bench.open()
        let two = try bench.makeClient()
        try await two.record("in its own log")
        one.setUser("ada", token: "a.a.a")
        one.track("hers")
        #expect(await one.logOut().isComplete)
        #expect(try String(contentsOf: file(bench), encoding: .utf8).contains(#""ada""#))
        await two.close()
    }

    // MARK: A store that fails

    @Test func noEventIsSentWhileTheTokenStoreIsUnreadable() async throws {
        let store = UnreliableStore()
        let (bench, client) = try Bench.open { $0.tokenStore = store }
        client.setUser("ada", token: "a.a.a")
        #expect(await client.flush().isComplete)
        await client.close()
        store.isReadable.withLock { $0 = false }
        let next = try bench.makeClient()
        next.track("hers")
        await next.flush()
        #expect(bench.gateway.events == [])
        #expect(await parked(next) == ["ada store_unreadable false"])
        store.isReadable.withLock { $0 = true }
        #expect(await next.flush().isComplete)
        #expect(tokens(bench) == ["a.a.a"])
    }

    @Test func noEventIsSentWhileTheLogOutsAreUnreadable() async throws {
        let (bench, client) = try Bench.open()
        client.setUser("ada", token: "a.a.a")
        client.track("hers")
        bench.gateway.respond(offline)
        await client.logOut()
        await client.close()
        bench.gateway.respond { _ in nil }
        let (file, old, files) = (file(bench), file(bench).appendingPathExtension("old"), FileManager.default)
        try files.moveItem(at: file, to: old)
        try files.createDirectory(at: file, withIntermediateDirectories: false)
        let next = try bench.makeClient()
        await next.flush()
        #expect(await parked(next) == ["ada store_unreadable false"])
        try files.removeItem(at: file)
        try files.moveItem(at: old, to: file)
        await next.flush()
        #expect(await parked(next) == ["ada logged_out true"])
        #expect(bench.gateway.events == [])
    }

    @Test func tokensThatCannotBeDeletedAreNotUsedAgain() async throws {
        let store = UnreliableStore()
        let (bench, client) = try Bench.open { $0.tokenStore = store }
        client.setUser("ada", token: "a.a.a")
        client.track("hers")
        await client.flush()
        store.mayForget.withLock { $0 = false }
        await client.logOut()
        client.setUser("ada", token: nil)
        client.track("later")
        await client.flush()
        await client.close()
        let next = try bench.makeClient()
        await next.flush()
        #expect(tokens(bench) == ["a.a.a"])
    }
}

/// A token store with failures on demand.
private final class UnreliableStore: TokenStore {
    private let tokens = Lock([String: String]())
    let isReadable = Lock(true)
    let mayForget = Lock(true)
    let hasForgotten = Handshake()

    func token(for userID: String) throws -> String? {
        guard isReadable.withLock({ $0 }) else { throw CocoaError(.fileReadNoPermission) }
        return tokens.withLock { $0[userID] }
    }

    func store(_ token: String, for userID: String) throws { tokens.withLock { $0[userID] = token } }

    func removeToken(for userID: String) throws {
        guard mayForget.withLock({ $0 }) else { throw CocoaError(.fileWriteNoPermission) }
        tokens.withLock { $0[userID] = nil }
        hasForgotten.signal()
    }

    func removeAll() throws { tokens.withLock { $0 = [:] } }
}
