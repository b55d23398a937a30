import CountersignCore
import CountersignTesting
import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import Countersign
@testable import CountersignDelivery
@testable import CountersignTransport

@Suite(.closing)
struct UnreliableServerTests {
    /// Parts of batches are rejected, answers are cut or lost after the server has stored the events.
    @Test func partialAndLostResponsesLoseNoEvent() async throws {
        var bench = try Bench()
        bench.configuration.batchEvents = 10
        bench.configuration.limits.maximumQuarantinedEvents = 10_000
        let gateway = bench.gateway
        let random = Lock(SeededGenerator(seed: 7))
        let rejected = Lock(Set<String>())
        bench.transport.setHandler { request in
            let dice = random.withLock { Int.random(in: 0..<6, using: &$0) }
            if dice == 0 { throw HTTPTransportError(.connectionLost, "before the server had it") }
            if dice == 1 { return .json(503, "{}", headers: [("Retry-After", "1")]) }
            if dice == 2 {
                // A subset is rejected, always the same events.
                gateway.respond { received in
                    let bad = received.messages.enumerated().filter {
                        $0.element.event?.hasSuffix("7") == true
                    }
                    let good = received.messages.filter { $0.event?.hasSuffix("7") != true }
                    rejected.withLock { set in bad.forEach { set.insert($0.element.messageId) } }
                    _ = gateway.store(.init(messages: good, token: nil))
                    let list = bad.map { #"{"index":\#($0.offset),"code":"invalid_event"}"# }.joined(
                        separator: ",")
                    return .json(
                        200,
                        #"{"success":true,"accepted":\#(good.count),"duplicates":0,"rejected":[\#(list)]}"#)
                }
            } else {
                gateway.respond { _ in nil }
            }
            let answer = try gateway.answer(request)
            if dice == 3 { throw HTTPTransportError(.timedOut, "after the server had stored it") }
            if dice == 4 {
                return TransportResponse(
                    status: 200, headers: answer.headers,
                    body: Array(answer.body.prefix(answer.body.count / 2)))
            }
            return answer
        }
        let client = try bench.makeClient()
        for number in 0..<1_000 { client.track("event \(number)") }
        var flushes = 0
        while await client.flush().isComplete == false, flushes < 2_000 { flushes += 1 }
        let quarantined = Set(try await client.quarantinedEvents().map(\.messageID))
        let stored = Set(gateway.stored.map(\.messageId))
        #expect(stored.union(quarantined).count == 1_000)
        #expect(quarantined.isSubset(of: rejected.withLock { $0 }))
        #expect(gateway.duplicates > 0, "lost answers lead to events that are sent twice")
        let snapshot = await client.snapshot()
        #expect(snapshot.sent + snapshot.quarantined == 1_000)
    }
}
