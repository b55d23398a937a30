import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignCore
@testable import CountersignDelivery
@testable import CountersignTransport

@Suite(.closing)
struct IdentityTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    /// The user changes often, and the server rejects the tokens of one user.
    @Test func noRequestMixesUsersOrTokens() async throws {
        bench.gateway.respond { $0.messages[0].userId == "user-1" ? .tokenProblem(.expired) : nil }
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

    @Test func theQueueFileDoesNotContainTheToken() async throws {
        let client = try bench.makeClient()
        client.identify(userID: "ada", token: "secret.secret.secret")
        try await client.record("one")
        bench.transport.setHandler { _ in throw HTTPTransportError(.cannotConnect, "offline") }
        await client.flush()
        await client.close()

        let file = bench.queueFile
        let queue = try Data(contentsOf: file)
        #expect(queue.range(of: Data(#""one""#.utf8)) != nil, "the file has the event")
        #expect(queue.range(of: Data("secret".utf8)) == nil)
    }

    @Test func identifyingTheSameUserAgainOnlyReplacesTheToken() async throws {
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
}
