import CountersignConsumer
import CountersignGateway
import CountersignGatewayTesting
import Foundation
import GatewayModel
import GatewayStorage
import GatewayTestSupport
import Testing

/// `CountersignConsumer`, the library for backends, against a gateway over HTTP.
@Suite(.timeLimit(.minutes(5)))
struct ConsumerLibraryTests {
    private let fixture: GatewayFixture
    private let token: String
    private let endpoint: URL
    private let consumers: any EventConsumers
    private let id = EventConsumerID(appID: "shop", name: "billing")

    init() throws {
        fixture = try GatewayFixture(.live, enforcement: .disabled)
        token = try fixture.apps.apiTokens.create(name: "backend", scopes: [AdminToken.reader], appID: "shop")
            .text
        endpoint = try #require(URL(string: "http://127.0.0.1:\(fixture.gateway.port)"))
        consumers = try fixture.place.open().openConsumers(with: nil, now: { 0 })
    }

    private func store(_ ids: String...) throws {
        let events = ids.map { trackEvent($0, extra: #","properties":{"z":1.10,"a":"é"}"#) }
        let answer = try fixture.client().post(
            #"{"batch":[\#(events.joined(separator: ","))]}"#, headers: ["X-Write-Key": fixture.writeKey])
        #expect(answer?.status == 200)
        try fixture.place.waitForTransactions()
    }

    @Test func aConsumerAcknowledgesContinuesAndWaits() async throws {
        try store("m-1", "m-2", "m-3")
        _ = try consumers.create(id, EventConsumerSettings(), from: .start)
        let consumer = try CountersignConsumer.EventConsumer(
            endpoint: endpoint, app: "shop", token: token, name: id.name, limit: 2)
        var worker = consumer.makeAsyncIterator()
        let first = try #require(try await worker.next())
        #expect(first.events.map(\.messageID) == ["m-1", "m-2"])
        #expect(try await first.acknowledge())
        #expect(try await first.acknowledge(), "a repeated acknowledgement succeeds")
        let second = try #require(try await worker.next())
        #expect(second.events.map(\.messageID) == ["m-3"])
        #expect(
            String(decoding: second.events[0].body, as: UTF8.self)
                == trackEvent("m-3", extra: #","properties":{"z":1.10,"a":"é"}"#))
        #expect(try await second.acknowledge())
        #expect(try consumers.find(id).lag == 0)
        // The poll returns the event, whether it is stored before or after the request.
        let storing = Task.detached { try store("m-4") }
        let third = try #require(try await worker.next())
        try await storing.value
        #expect(third.events.map(\.messageID) == ["m-4"])
        _ = try consumers.seek(id, to: .start)
        #expect(try await !third.acknowledge(), "the consumer's position has moved")
        #expect(try consumers.find(id).lag == 4)
    }

    @Test func aReaderContinuesFromAPosition() async throws {
        try store("m-1", "m-2")
        var pages = try CountersignConsumer.EventReader(
            endpoint: endpoint, app: "shop", token: token, limit: 1
        ).makeAsyncIterator()
        let first = try #require(try await pages.next())
        #expect(first.events.map(\.messageID) == ["m-1"])
        var later = try CountersignConsumer.EventReader(
            endpoint: endpoint, app: "shop", token: token, after: first.next
        ).makeAsyncIterator()
        #expect(try await later.next()?.events.map(\.messageID) == ["m-2"])
        let other = try fixture.apps.createApp(id: "kiosk")
        withExtendedLifetime(other) {}
        var rejected = try CountersignConsumer.EventReader(endpoint: endpoint, app: "kiosk", token: token)
            .makeAsyncIterator()
        do throws(ConsumerError) {
            _ = try await rejected.next()
            Issue.record("a token of another app is accepted")
        } catch {
            #expect(error.code == .forbidden)
        }
    }
}
