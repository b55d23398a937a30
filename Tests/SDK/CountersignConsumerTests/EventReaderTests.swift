import CountersignConsumer
import CountersignCore
import CountersignTesting
import CountersignTransport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(5)))
struct EventReaderTests {
    private let clock = ManualClock()

    private func reader(
        _ transport: any HTTPTransport, after position: String? = nil, filter: EventFilter = EventFilter()
    ) throws -> EventReader {
        try EventReader(
            endpoint: GatewayScript.endpoint, app: "shop", token: GatewayScript.token, after: position,
            filter: filter, limit: 7, transport: transport, clock: clock)
    }

    @Test func eachPageStartsAtTheNextPositionOfTheLast() async throws {
        let transport = GatewayScript.transport(
            polls: GatewayScript.page(GatewayScript.event(1), next: "p1"),
            GatewayScript.page(next: "p5"), GatewayScript.page(GatewayScript.event(6), next: "p6"),
            clock: clock)
        var pages = try reader(transport).makeAsyncIterator()
        #expect(try await pages.next()?.next == "p1")
        let second = try #require(try await pages.next())
        #expect(second.events.map(\.sequence) == [6])
        #expect(second.next == "p6")
        #expect(
            transport.requests.map { $0.url.query ?? "" } == [
                "limit=7&wait=30", "after=p1&limit=7&wait=30", "after=p5&limit=7&wait=30",
            ], "the position of an answer without events counts too")
        #expect(transport.requests.allSatisfy { $0.method == "GET" && $0.body.isEmpty })
    }

    @Test func filtersWithSpecialCharactersAreSent() async throws {
        let transport = GatewayScript.transport(
            polls: GatewayScript.page(
                GatewayScript.event(1, claims: #"{"b":true,"n":3,"r":1.5,"t":"é"}"#), next: "p1"),
            clock: clock)
        let filter = EventFilter(
            verdict: .verified, type: "track", name: "a+b & c=é", userID: "u.1", claim: "plan=pro")
        var pages = try reader(transport, after: "p0", filter: filter).makeAsyncIterator()
        let event = try await pages.next()?.events.first
        #expect(event?.claims == ["b": true, "n": 3, "r": 1.5, "t": "é"])
        #expect(
            transport.requests.first?.url.absoluteString
                == "https://gateway.example/base/v1/apps/shop/events?after=p0&limit=7&wait=30&verdict=verified"
                + "&type=track&name=a%2Bb%20%26%20c%3D%C3%A9&user=u.1&claim=plan%3Dpro")
    }

    @Test func deletedEventsAreReportedAsMissed() async throws {
        let transport = GatewayScript.transport(
            polls: GatewayScript.ok(#"{"events":[],"next":"p5","has_more":false,"events_missed":true}"#),
            clock: clock)
        var pages = try reader(transport, after: "p1").makeAsyncIterator()
        let page = try #require(try await pages.next())
        #expect(page.eventsMissed)
        #expect(page.events.isEmpty)
        #expect(page.next == "p5")
    }

    @Test func aPositionOfAnotherLogThrows() async throws {
        let transport = GatewayScript.transport(
            polls: GatewayScript.rejection(422, "position_of_another_log"), clock: clock)
        var pages = try reader(transport, after: "p1").makeAsyncIterator()
        do throws(ConsumerError) {
            _ = try await pages.next()
            Issue.record("nothing was thrown")
        } catch {
            #expect(error.code == .positionOfAnotherLog)
            #expect(error.status == 422 && !"\(error)".contains(GatewayScript.token))
        }
    }

    @Test func aTaskThatIsCancelledEndsTheSequence() async throws {
        let transport = GatewayScript.transport(clock: clock)
        let reader = try reader(transport)
        let reading = Task {
            var pages = reader.makeAsyncIterator()
            return try await pages.next()
        }
        await transport.waitForRequests(1)
        reading.cancel()
        #expect(try await reading.value == nil)
    }

    @Test(arguments: [0, -1, 1_001])
    func aLimitOutsideOneToAThousandIsRejected(limit: Int) {
        let error = #expect(throws: ConsumerError.self) {
            try EventReader(
                endpoint: GatewayScript.endpoint, app: "shop", token: GatewayScript.token, limit: limit)
        }
        #expect(error?.code == .invalidConfiguration)
    }
}
