import CountersignCore
import CountersignTesting
import Foundation
import Testing

@testable import Countersign

@Suite(.closing)
struct CountersignClientTests {
    @Test func eventsArriveOnceInOrderUnderTheirUsersToken() async throws {
        let (bench, client) = try Bench.open()
        client.track("before")
        client.identify(userID: "ada", token: "a.a.a")
        client.track("one", properties: ["price": 1.5, "tags": ["x", nil]])
        client.track("two")
        client.identify(userID: "bob", token: "b.b.b")
        client.track("three")
        let result = await client.flush()

        #expect(result.isComplete)
        #expect(result.delivered == 6)
        #expect(bench.gateway.events == ["before", "one", "two", "three"])
        #expect(bench.gateway.batches.map(\.token) == [nil, "a.a.a", "b.b.b"])
        #expect(bench.gateway.batches.map { Set($0.messages.map(\.userId)) } == [[nil], ["ada"], ["bob"]])
        #expect(bench.gateway.batches[0].messages[0].anonymousId != nil)
        #expect(bench.transport.overlaps == 0)
    }

    @Test func expiredTokenIsReplacedOnceAndTheSameEventsGoOutAgain() async throws {
        var bench = try Bench()
        let requests = Lock([TokenRequest]())
        bench.configuration.tokenProvider = { request in
            requests.withLock { $0.append(request) }
            return "fresh.fresh.fresh"
        }
        bench.gateway.judge { $0.token == "old.old.old" ? .tokenProblem(.expired) : nil }
        let client = try bench.makeClient()
        client.identify(userID: "ada", token: "old.old.old")
        client.track("one")
        let result = await client.flush()

        #expect(result.isComplete)
        #expect(result.batches.map(\.outcome) == [.tokenProblem, .delivered])
        #expect(requests.withLock { $0 } == [TokenRequest(userID: "ada", reason: .rejected, code: .expired)])
        #expect(bench.gateway.batches.map(\.token) == ["old.old.old", "fresh.fresh.fresh"])
        #expect(
            bench.gateway.batches[0].messages.map(\.messageId)
                == bench.gateway.batches[1].messages.map(\.messageId))
        #expect(bench.gateway.duplicates == 0)
    }

    @Test func whatWasNotSentIsSentByTheNextClient() async throws {
        let bench = try Bench()
        let first = try bench.makeClient()
        first.identify(userID: "ada", token: "a.a.a")
        for number in 0..<10 { first.track("event \(number)") }
        await first.close()

        let second = try bench.makeClient()
        let result = await second.flush()
        #expect(result.delivered == 11)
        #expect(bench.gateway.events.count == 10)
    }

    @Test func aQueueThatCannotBeReadIsAnErrorThatAnAppCanName() async throws {
        let bench = try Bench()
        try FileManager.default.createDirectory(
            at: bench.configuration.instanceDirectory.appendingPathComponent("queue.sqlite"),
            withIntermediateDirectories: true)
        let client = try bench.makeClient()
        do throws(CountersignError) {
            _ = try await client.quarantinedEvents()
            Issue.record("there is no queue")
        } catch {
            #expect(error.code == .storageFailed)
            #expect(error.isWorthRetrying)
        }
        do throws(CountersignError) {
            try await client.wipeData()
            Issue.record("there is no queue")
        } catch {
            #expect(error.code == .storageFailed)
        }
    }
}
