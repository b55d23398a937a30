import CountersignTesting
import Foundation
import Testing

@testable import Countersign

@Suite(.closing)
struct IdentityTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    /// A5 of the reliability plan, small: users come and go while tokens are refused.
    @Test func noRequestMixesUsersOrTokens() async throws {
        bench.gateway.judge { $0.messages[0].userId == "user-1" ? .tokenProblem(.expired) : nil }
        let client = try bench.makeClient()
        for round in 0..<200 {
            let user = "user-\(round % 4)"
            client.identify(userID: user, token: "\(user).t.\(round)")
            client.track("event \(round)")
            if round % 10 == 0 { await client.flush() }
        }
        await client.flush()
        for batch in bench.gateway.batches {
            let users = Set(batch.messages.map(\.userId))
            #expect(users.count == 1)
            let user = try #require(users.first ?? nil)
            #expect(batch.token?.hasPrefix("\(user).t.") == true)
        }
        #expect(await client.snapshot().parked.map(\.userID) == ["user-1"])
        #expect(Set(bench.gateway.stored.map(\.userId)) == ["user-0", "user-2", "user-3"])
    }

    @Test func logOutSendsUnderTheOldTokenAndThenForgetsIt() async throws {
        let client = try bench.makeClient()
        client.identify(userID: "ada", token: "a.a.a")
        client.track("bought")
        #expect(await client.logOut().isComplete)
        #expect(bench.gateway.batches.map(\.token) == ["a.a.a"])
        #expect(client.userID == nil)
        client.track("browsing")
        client.identify(userID: "ada")
        client.track("back")
        await client.flush()
        #expect(bench.gateway.batches.map(\.token) == ["a.a.a", nil, nil])
        await client.close()

        let second = try bench.makeClient()
        second.identify(userID: "ada")
        await second.flush()
        #expect(bench.gateway.batches.last?.token == nil, "it is forgotten on disk too")
    }

    @Test func tokenIsThereAgainAfterARestartAndTheQueueNeverHasIt() async throws {
        let first = try bench.makeClient()
        first.identify(userID: "ada", token: "secret.secret.secret")
        try await first.record("one")
        bench.transport.setHandler { _ in throw HTTPTransportError(.cannotConnect, "offline") }
        await first.flush()
        await first.close()

        let file = bench.configuration.instanceDirectory.appendingPathComponent("queue.sqlite")
        let queue = try Data(contentsOf: file)
        #expect(queue.range(of: Data("secret".utf8)) == nil)

        let gateway = bench.gateway
        bench.transport.setHandler { try gateway.answer($0) }
        let second = try bench.makeClient()
        #expect(await second.flush().isComplete)
        #expect(bench.gateway.batches.last?.token == "secret.secret.secret")
    }

    @Test func sameUserWithANewTokenOnlyReplacesIt() async throws {
        let client = try bench.makeClient()
        client.identify(userID: "ada", token: "a.a.a")
        let session = await client.snapshot().sessionID
        client.identify(userID: "ada", token: "b.b.b")
        #expect(await client.snapshot().sessionID == session)
        await client.flush()
        #expect(bench.gateway.batches.map(\.token) == ["b.b.b"])
        #expect(bench.gateway.stored.count == 1)
        client.identify(userID: "bob")
        #expect(await client.snapshot().sessionID != session)
    }

    @Test func sessionSurvivesAShortTimeInTheBackground() async throws {
        let client = try bench.makeClient()
        let session = await client.snapshot().sessionID
        client.enterBackground()
        bench.clock.advance(by: 9)
        client.enterForeground()
        #expect(await client.snapshot().sessionID == session)
        client.enterBackground()
        bench.clock.advance(by: 10)
        client.enterForeground()
        #expect(await client.snapshot().sessionID != session)
    }

    @Test func wipingLeavesNothing() async throws {
        let client = try bench.makeClient()
        client.track("before")
        await client.flush()
        let device = bench.gateway.stored[0].anonymousId
        client.identify(userID: "ada", token: "a.a.a")
        try await client.record("one")
        client.track("two")
        try await client.wipeData()
        #expect(await client.flush().isComplete)
        #expect(bench.gateway.events == ["before"])
        #expect(client.userID == nil)
        let snapshot = await client.snapshot()
        #expect(snapshot.queued == 0)
        #expect(snapshot.wiped >= 2)
        client.track("after")
        await client.flush()
        #expect(bench.gateway.stored.last?.anonymousId != device)
    }
}
