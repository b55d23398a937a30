import CountersignCore
import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery

/// Events are delivered even if the token provider fails or the clock is wrong.
@Suite(.closing, .timeLimit(.minutes(5)))
struct ProviderOutageTests {
    private static let now = 1_750_000_000

    // MARK: Clocks

    @Test func aClockJumpInvalidatesTheKnownOffset() async throws {
        let bench = try Bench()
        bench.gateway.respond { received in
            .json(
                200, #"{"success":true,"accepted":\#(received.messages.count)}"#,
                headers: [(name: "Date", value: "Mon, 16 Jun 2025 15:06:40 GMT")])
        }
        let client = try bench.makeClient()
        client.track("one")
        #expect(await client.flush().isComplete)
        #expect(await client.snapshot().clockOffset == 86_400)
        bench.clock.advance(by: 3_600)
        #expect(await client.snapshot().clockOffset == 86_400, "elapsed time is not a jump")
        bench.clock.setNow(bench.clock.now + 86_400)
        #expect(await client.snapshot().clockOffset == 0)
    }

    // MARK: Outages

    @Test(arguments: [nil, "throw", "not a token"])
    func ifTheProviderReturnsNoTokenEventsAreSentWithoutOne(answer: String?) async throws {
        var bench = try Bench()
        let calls = Lock(0)
        bench.configuration.tokenProvider = { _ in
            calls.withLock { $0 += 1 }
            if answer == "throw" { throw CocoaError(.fileNoSuchFile) }
            return answer
        }
        bench.configuration.batchEvents = 2
        let client = try bench.makeClient()
        client.identify(userID: "ada")
        for number in 0..<6 { client.track("\(number)") }
        #expect(await client.flush().isComplete)
        #expect(bench.gateway.events.count == 6)
        #expect(bench.gateway.batches.count == 4)
        #expect(calls.withLock { $0 } == 1, "the provider is not called again soon")
    }

    @Test func ifTheProviderFailsTheLastKnownTokenIsSent() async throws {
        let (bench, client) = try Bench.open { $0.tokenProvider = { _ in nil } }
        let old = SignedToken.fake(subject: "ada", expiresAt: Self.now - 10)
        client.identify(userID: "ada", token: old)
        #expect(await client.flush().isComplete)
        #expect(bench.gateway.batches.map(\.token) == [old])
    }

    // MARK: Threads

    @Test func blockedProvidersDelayNeitherOtherUsersNorTheProcess() async throws {
        var bench = try Bench()
        let release = Handshake()
        let asked = Lock([String]())
        let isAsked = Handshake()
        bench.configuration.tokenProvider = { request in
            let count = asked.withLock { asked -> Int in
                asked.append(request.userID)
                return asked.count
            }
            if count == 4 { isAsked.signal() }
            release.block()
            return "\(request.userID).t.t"
        }
        let bobArrived = Handshake()
        bench.gateway.respond { received in
            if received.token == "b.b.b" { bobArrived.signal() }
            return nil
        }
        let client = try bench.makeClient()
        for user in ["u1", "u2", "u3", "u4"] { client.identify(userID: user) }
        client.identify(userID: "bob", token: "b.b.b")
        async let flush = client.flush()
        await isAsked.wait()
        await bobArrived.wait()
        // More tasks than a small machine has shared threads. All of them must finish.
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<16 { group.addTask { await Task.detached {}.value } }
        }
        release.signal()
        #expect(await flush.isComplete)
        #expect(asked.withLock { $0.sorted() } == ["u1", "u2", "u3", "u4"])
        #expect(
            bench.gateway.batches.compactMap(\.token).sorted() == [
                "b.b.b", "u1.t.t", "u2.t.t", "u3.t.t", "u4.t.t",
            ])
    }

    @Test func atMostFourProviderCallsRunAtATime() async throws {
        var bench = try Bench()
        let running = Lock((now: 0, most: 0))
        let gate = Handshake()
        let isFull = Handshake()
        bench.configuration.tokenProvider = { _ in
            let now = running.withLock { running -> Int in
                running.now += 1
                running.most = max(running.most, running.now)
                return running.now
            }
            if now == 4 { isFull.signal() }
            await gate.wait()
            running.withLock { $0.now -= 1 }
            return "t.t.t"
        }
        let client = try bench.makeClient()
        for number in 0..<10 { client.identify(userID: "u\(number)") }
        async let flush = client.flush()
        await isFull.wait()
        gate.signal()
        #expect(await flush.isComplete)
        #expect(running.withLock { $0.most } == 4)
        #expect(bench.gateway.batches.count == 10)
        #expect(bench.gateway.batches.allSatisfy { $0.token == "t.t.t" }, "other users wait for a free call")
    }

    enum InsideCall: CaseIterable { case logOut, wipeData, detachedFlush }

    @Test(arguments: InsideCall.allCases)
    func callsFromInsideTheProviderDoNotWaitForItsTimeLimit(call: InsideCall) async throws {
        var bench = try Bench()
        let client = Lock<CountersignClient?>(nil)
        let returned = Handshake()
        let isInside = Handshake()
        bench.configuration.tokenProvider = { _ in
            guard let client = client.withLock({ $0 }) else { return nil }
            isInside.signal()
            switch call {
            case .logOut: await client.logOut()
            case .wipeData: try await client.wipeData()
            case .detachedFlush: _ = await Task.detached { await client.flush() }.value
            }
            returned.signal()
            return "p.p.p"
        }
        let made = try bench.makeClient()
        client.withLock { $0 = made }
        let start = bench.clock.uptime
        made.identify(userID: "ada")
        async let flush = made.flush()
        await isInside.wait()
        if call == .detachedFlush {
            // Without the task-local TokenProviderCall.isInside, the flush waits at most DeliverySettings.patience.
            let limit = await bench.clock.waitForSleeper(count: 2)
            #expect(limit - start <= 5)
            bench.clock.advance(to: limit)
        }
        await returned.wait()
        _ = await flush
        await made.close()
        client.withLock { $0 = nil }
    }

    @Test func tokensRemovedDuringAProviderCallStayRemoved() async throws {
        var bench = try Bench()
        let store = FileTokenStore(directory: bench.directory.appendingPathComponent("tokens"))
        bench.configuration.tokenStore = store
        let gate = Handshake()
        let isAsked = Handshake()
        let tokens = Lock(["q.q.q", "p.p.p"])
        bench.configuration.tokenProvider = { _ in
            let token = tokens.withLock { $0.popLast() }
            isAsked.signal()
            await gate.wait()
            return token
        }
        let client = try bench.makeClient()
        client.identify(userID: "ada")
        async let flush = client.flush()
        await isAsked.wait()
        try await client.wipeData()
        // The same user signs in again. New events wait until the first call returns.
        client.identify(userID: "ada")
        client.track("after")
        gate.signal()
        _ = await flush
        #expect(await client.flush().isComplete)
        #expect(bench.gateway.batches.map(\.token) == ["q.q.q"])
        #expect(try store.token(for: "ada") == "q.q.q")
    }
}
