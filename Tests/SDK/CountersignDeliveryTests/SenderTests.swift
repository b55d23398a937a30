import Foundation
import SDKTestSupport
import TestSupport
import Testing

@testable import CountersignDelivery

/// The sender's decisions against simulated servers in simulated time.
struct SenderTests {
    private static let hour: TimeInterval = 3_600

    // MARK: Batches

    @Test func aSenderWithAnEmptyQueueMakesNoRequests() {
        var simulation = Simulation { _ in .accepted }
        simulation.record(1)
        simulation.run(until: 24 * Self.hour)
        #expect(simulation.requests.count == 1)
        #expect(simulation.claims == 2)
        #expect(simulation.sender.next(now: simulation.now) == .wait(until: nil))
    }

    // MARK: Limits with every server

    /// Half of the requests fail with 500, at random.
    @Test(arguments: [1, 100])
    func aServerThatFailsAtRandomCausesAlmostNoQuarantine(batchEvents: Int) {
        var costs: [Int] = []
        for seed in 1...4 {
            var settings = Sender.Settings()
            settings.batchEvents = batchEvents
            var coin = SeededGenerator(seed: UInt64(seed))
            var simulation = Simulation(settings: settings) { _ in
                Bool.random(using: &coin) ? .accepted : .status(500)
            }
            for _ in 0..<100 {
                simulation.record(batchEvents == 1 ? 4 : 34, user: "ada")
                simulation.run(until: simulation.now + 600)
            }
            simulation.run(until: simulation.now + 48 * Self.hour)
            #expect(simulation.queue.isEmpty)
            costs.append(simulation.quarantined.count)
        }
        #expect(costs.reduce(0, +) <= (batchEvents == 1 ? 2 : 1), "\(costs)")
    }

    // MARK: Poison events

    @Test(arguments: [400, 413, 500])
    func aPoisonEventAtAnyPositionCostsAtMostTenMoreRequests(status: Int) {
        // A bad event in the last positions looks like a failing server: no later request succeeds.
        for position in 1...(status == 400 ? 99 : 98) {
            var simulation = Simulation { request in
                request.events.contains { $0.sequence == Int64(position) } ? .status(status) : .accepted
            }
            simulation.record(100)
            simulation.run(until: 2 * Self.hour)
            #expect(simulation.quarantined.map(\.sequence) == [Int64(position)], "at \(position)")
            #expect(simulation.delivered.count == 99)
            #expect(simulation.requests.count - 1 <= 10, "\(simulation.requests.count - 1) at \(position)")
        }
    }

    /// With one event in each request, several bad events in a row look like a failing server.
    @Test func poisonEventsInARowDelayOthersByAtMostTwoMinutes() {
        var settings = Sender.Settings()
        settings.batchEvents = 1
        var simulation = Simulation(settings: settings) { request in
            request.events.contains { $0.sequence <= 6 } ? .status(400) : .accepted
        }
        simulation.record(8)
        simulation.run(until: 120)
        #expect(simulation.delivered.map(\.sequence) == [7, 8])
        simulation.run(until: 24 * Self.hour)
        #expect(simulation.quarantined.count == 6)
    }

    // MARK: Tokens

    @Test func aTokenReturnedAtTheEndOfARoundStartsANewRound() {
        var settings = Sender.Settings()
        settings.hasTokenProvider = true
        settings.flushPolicy = FlushPolicy(eventCount: 1, interval: 1, onBackground: false)
        var sender = Sender(settings: settings)
        let event = QueuedEvent(sequence: 1, messageID: "m1", userID: "ada", body: [0x20])
        func isClaim(_ action: Sender.Action) -> Bool {
            guard case .claim = action else { return false }
            return true
        }
        sender.stored(1, now: 0)
        #expect(isClaim(sender.next(now: 0)))
        sender.claimed([event], now: 0)
        guard case .authorize = sender.next(now: 0) else {
            Issue.record("no token was requested")
            return
        }
        sender.authorizationPending()
        #expect(isClaim(sender.next(now: 0)))
        // No other user has events, so the round ends.
        sender.claimed([], now: 0)
        sender.tokenResolved(for: UserKey("ada"))
        guard case .finish = sender.next(now: 0) else {
            Issue.record("the round has not ended")
            return
        }
        #expect(isClaim(sender.next(now: 0)))
    }

    @Test func aRejectionOfAnOldTokenDoesNotAffectANewerOne() {
        var simulation = Simulation { _ in .accepted }
        simulation.generations[UserKey("ada")] = 1
        simulation.server = { $0.generation == 1 ? .rejectedToken(.expired) : .accepted }
        simulation.record(20, user: "ada")
        // The answer to generation 1 comes after generation 2 was set.
        _ = simulation.sender.next(now: 0)
        simulation.sender.claimed(simulation.queue, now: 0)
        _ = simulation.sender.next(now: 0)
        simulation.sender.authorized(generation: 1)
        simulation.generations[UserKey("ada")] = 2
        simulation.sender.tokenChanged(for: UserKey("ada"), generation: 2, now: 0)
        let consequence = simulation.sender.answered(
            ServerAnswer(.tokenProblem(.init(code: .expired, reason: "EXPIRED")), status: 401), now: 0,
            fraction: 1)
        #expect(consequence?.failure == nil)
        simulation.run(until: 0)
        #expect(simulation.queue.isEmpty)
    }

    @Test func aClaimedBatchIsNotSentAfterItsTokenIsRemoved() {
        var sender = Sender(settings: Sender.Settings())
        let event = QueuedEvent(sequence: 1, messageID: "m", userID: "ada", body: [])
        sender.flush()
        for isForgotten in [true, false] {
            guard case .claim = sender.next(now: 0) else { return #expect(Bool(false), "no claim") }
            sender.claimed([event], now: 0)
            _ = sender.next(now: 0)
            sender.authorized(generation: 1)
            sender.tokenRemoved(for: UserKey(isForgotten ? "ada" : "bob"))
        }
        #expect(sender.next(now: 0) == .send([event], attempt: 1))
    }

    // MARK: Queue failures

    /// Runs the sender until it applies the outcome of an accepted event.
    private func deliver(_ event: QueuedEvent, by sender: inout Sender) {
        sender.flush()
        _ = sender.next(now: 0)
        sender.claimed([event], now: 0)
        _ = sender.next(now: 0)
        sender.authorized(generation: 0)
        _ = sender.next(now: 0)
        _ = sender.answered(
            ServerAnswer(.accepted(duplicates: 0, rejected: [], warning: nil), status: 200), now: 0,
            fraction: 1)
        #expect(sender.next(now: 0) == .apply(DeliveryOutcome(delivered: [event])))
    }

    @Test func deliveredEventsThatCannotBeDeletedAreNotSentAgain() {
        var sender = Sender(settings: Sender.Settings())
        let event = QueuedEvent(sequence: 1, messageID: "m", userID: nil, body: [])
        deliver(event, by: &sender)
        sender.applyFailed(.init("queue", "disk full"), now: 0, fraction: 1)
        #expect(sender.next(now: 0) == .wait(until: 2))
        #expect(sender.next(now: 2) == .apply(DeliveryOutcome(delivered: [event])))
        sender.applied()
        #expect(sender.next(now: 2) != .apply(DeliveryOutcome(delivered: [event])))
    }

    @Test func aWipeEndsTheRetryOfAnOutcome() {
        var sender = Sender(settings: Sender.Settings())
        deliver(QueuedEvent(sequence: 1, messageID: "m", userID: nil, body: []), by: &sender)
        sender.applyFailed(.init("queue", "disk full"), now: 0, fraction: 1)
        sender.reset()
        deliver(QueuedEvent(sequence: 2, messageID: "n", userID: nil, body: []), by: &sender)
        #expect(sender.lastProblem == nil)
    }

    @Test func sendingWaitsForTheLeaseOfAnotherProcess() {
        var sender = Sender(settings: Sender.Settings())
        sender.stored(20, now: 0)
        _ = sender.next(now: 0)
        sender.leased(until: 60)
        #expect(sender.next(now: 0) == .finish(.otherProcessIsSending))
        #expect(sender.next(now: 0) == .wait(until: 60))
        guard case .claim = sender.next(now: 60) else {
            Issue.record("nothing was claimed")
            return
        }
    }
}
