import CountersignTransport
import Foundation
import TestSupport
import Testing

@testable import CountersignDelivery

/// A long outage and a network that loses half of the requests, in simulated time.
struct UnreliableNetworkTests {
    @Test func afterALongOutageTheMedianWaitIsAtMostAMinute() {
        let outage: TimeInterval = 6 * 3_600
        var random = SeededGenerator(seed: 11)
        var waits: [TimeInterval] = []
        for round in 0..<101 {
            // Each round recovers at another second.
            let end = outage + Double(round)
            var simulation = Simulation(settings: Sender.Settings(batchEvents: 10)) {
                $0.time < end ? .error(.cannotConnect) : .accepted
            }
            simulation.fraction = { Double.random(in: 0...1, using: &random) }
            simulation.record(30, user: "ada")
            simulation.run(until: end + 3_600)
            #expect(simulation.queue.isEmpty)
            #expect(simulation.delivered.map(\.sequence) == Array(1...30))
            if let first = simulation.requests.first(where: { $0.time >= end }) {
                waits.append(first.time - end)
            }
        }
        let median = waits.sorted()[waits.count / 2]
        #expect(waits.count == 101)
        #expect(median <= 60, "\(median)")
        #expect((waits.max() ?? .infinity) <= 180)
    }

    @Test func aFlappingNetworkCausesFewRequests() {
        var random = SeededGenerator(seed: 12)
        var coin = SeededGenerator(seed: 13)
        var simulation = Simulation { _ in Bool.random(using: &coin) ? .accepted : .error(.connectionLost) }
        simulation.fraction = { Double.random(in: 0...1, using: &random) }
        for _ in 0..<360 {
            simulation.record(2, user: "ada")
            simulation.run(until: simulation.now + 10)
        }
        simulation.run(until: simulation.now + 3_600)
        #expect(simulation.queue.isEmpty)
        #expect(simulation.delivered.count == 720)
        #expect(simulation.requests.count <= 3 * 720)
    }
}
