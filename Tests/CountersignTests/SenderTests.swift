import CountersignCore
import Foundation
import Testing

@testable import Countersign

/// The sender's decisions, each against a server that behaves in one way, in simulated time.
struct SenderTests {
    private static let hour: TimeInterval = 3_600

    // MARK: Batches

    @Test func aBatchHoldsOneUserAndKeepsToCountAndBytes() {
        var settings = Sender.Settings()
        settings.batchEvents = 10
        settings.batchBytes = 550
        var simulation = Simulation(settings: settings) { _ in .accepted }
        simulation.record(3, user: "ada")
        simulation.record(20, user: "bob")
        simulation.record(3, user: "ada")
        simulation.sender.flush()
        simulation.run(until: 1)
        #expect(simulation.queue.isEmpty)
        #expect(simulation.requests.allSatisfy { Set($0.events.map(\.userID)).count == 1 })
        #expect(simulation.requests.map(\.events.count) == [5, 5, 5, 5, 5, 1])
        #expect(simulation.endings == [.drained])
    }

    @Test func eventsGoOutAtTheCountOrAfterTheInterval() {
        var simulation = Simulation { _ in .accepted }
        simulation.record(19)
        simulation.run(until: 9)
        #expect(simulation.requests.isEmpty)
        simulation.record(1)
        simulation.run(until: 9)
        #expect(simulation.requests.map(\.events.count) == [20])
        simulation.record(1)
        simulation.run(until: 18.9)
        #expect(simulation.requests.count == 1)
        simulation.run(until: 20)
        #expect(simulation.requests.map(\.time) == [9, 19])
    }

    @Test func manualPolicySendsAndRetriesOnlyWhenAsked() {
        var settings = Sender.Settings()
        settings.flushPolicy = .manual
        var simulation = Simulation(settings: settings) { _ in .status(503) }
        simulation.record(100)
        simulation.sender.sessionStarted()
        simulation.sender.enteredBackground()
        simulation.run(until: Self.hour)
        #expect(simulation.requests.isEmpty)
        simulation.sender.flush()
        simulation.run(until: 2 * Self.hour)
        #expect(simulation.requests.count == 1)
        #expect(simulation.endings == [.interrupted])
    }

    @Test func goingToTheBackgroundSendsAtOnce() {
        var simulation = Simulation { _ in .accepted }
        simulation.record(1)
        simulation.sender.enteredBackground()
        simulation.run(until: 0)
        #expect(simulation.requests.count == 1)
    }

    @Test func anIdleSenderDoesNothingAtAll() {
        var simulation = Simulation { _ in .accepted }
        simulation.record(1)
        simulation.run(until: 24 * Self.hour)
        #expect(simulation.requests.count == 1)
        #expect(simulation.claims == 2)
        #expect(simulation.sender.next(now: simulation.now) == .wait(until: nil))
    }

    // MARK: Bounded with every server (issue: hostile server)

    /// A server that always fails in one way, for 24 hours: the count of requests is exact, nothing is lost.
    @Test(arguments: [
        // 2, 4, 8, … 128, then every 180 s: the first 9 within 434 s.
        (HostileServer.status(500), 486),
        (.status(502), 486),
        (.status(503), 486),
        (.status(200), 486),
        (.status(429), 486),
        (.error(.timedOut), 486),
        (.error(.connectionLost), 486),
        (.error(.responseTooLarge), 486),
        // Retry-After of a week is followed for an hour at most.
        (.statusWithRetryAfter(503, 604_800), 25),
        // Settings have to change: after 5, 10, 20, … 2,560 s, then one request an hour.
        (.status(302), 33),
        (.status(401), 486),
        (.status(403), 33),
        (.status(404), 33),
    ])
    func alwaysFailingServerGetsAFewRequestsAndTakesNothing(server: HostileServer, expected: Int) {
        var simulation = Simulation(server: server.reply)
        simulation.record(500, user: "ada")
        simulation.run(until: 24 * Self.hour)
        #expect(simulation.requests.count == expected)
        #expect(simulation.queue.count == 500)
        #expect(simulation.delivered.isEmpty)
        #expect(simulation.quarantined.isEmpty)
    }

    @Test func serverThatIsDownForAnHourGetsEverythingWithinThreeMinutesAfter() throws {
        var simulation = Simulation { $0.time < Self.hour ? .status(500) : .accepted }
        simulation.record(1_000)
        simulation.run(until: 2 * Self.hour)
        #expect(simulation.queue.isEmpty)
        #expect(simulation.quarantined.isEmpty)
        let last = try #require(simulation.requests.last)
        #expect(last.time < Self.hour + 180)
        #expect(simulation.requests.count < 60)
    }

    @Test func serverThatRefusesEverythingStopsAfterThreeEventsAndTakesNone() {
        var simulation = Simulation { _ in .status(400) }
        simulation.record(1_000)
        simulation.run(until: 30 * 60)
        #expect(simulation.requests.count == 3 * 7)
        #expect(simulation.sender.configurationProblem != nil)
        // Sessions and flushes come and go.
        for session in 1...20 {
            session.isMultiple(of: 2) ? simulation.sender.sessionStarted() : simulation.sender.flush()
            simulation.run(until: simulation.now + 12 * Self.hour)
        }
        #expect(simulation.quarantined.isEmpty)
        #expect(simulation.queue.count == 1_000)
        simulation.server = { _ in .accepted }
        simulation.run(until: simulation.now + 2 * Self.hour)
        #expect(simulation.delivered.count == 1_000)
    }

    @Test func serverThatRejectsEachEventOfEveryRequestTakesNone() {
        var simulation = Simulation { request in
            .answer(
                ServerAnswer(
                    .accepted(
                        duplicates: 0,
                        rejected: request.events.indices.map {
                            .init(index: $0, explanation: .init("invalid_event", ""))
                        }, warning: nil), status: 200))
        }
        simulation.record(1_000)
        simulation.run(until: 48 * Self.hour)
        #expect(simulation.quarantined.isEmpty)
        #expect(simulation.requests.count <= 60)
        simulation.server = { _ in .accepted }
        simulation.run(until: simulation.now + 2 * Self.hour)
        #expect(simulation.delivered.count == 1_000)
    }

    @Test(arguments: [400, 413, 500])
    func aLoneFailureIsNotEnoughAndTheSecondOneNeedsASuccessBetween(status: Int) {
        var simulation = Simulation { request in
            request.events.contains { $0.sequence == 1 } ? .status(status) : .accepted
        }
        simulation.record(1)
        simulation.run(until: 30 * 24 * Self.hour)
        #expect(simulation.quarantined.isEmpty, "no other event was ever accepted")
        #expect(simulation.requests.count < 1_000, "\(simulation.requests.count)")
        simulation.record(1)
        simulation.run(until: simulation.now + Self.hour)
        #expect(simulation.quarantined.map(\.sequence) == [1])
        #expect(simulation.delivered.map(\.sequence) == [2])
    }

    /// Failures alone may be chance: 500s at every second request cost 2 events of 1,600 at most, and fewer in batches.
    @Test(arguments: [1, 100])
    func serverThatFailsAtRandomCostsNextToNothing(batchEvents: Int) {
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

    /// A body that rotted on disk: the server's numbers do not add up for any request with it.
    @Test func oneEventThatTheAnswersMakeNoSenseForHoldsUpNoOther() {
        var simulation = Simulation { request in
            request.events.contains { $0.sequence == 260 }
                ? .answer(ServerAnswer(.notUnderstood(.init("not_understood", "")), status: 200)) : .accepted
        }
        simulation.record(520)
        simulation.run(until: 2 * Self.hour)
        #expect(simulation.delivered.count == 519)
        #expect(simulation.quarantined.map(\.sequence) == [260])
    }

    @Test func configurationProblemIsLeftByFlushAndBySession() {
        for leave in [{ $0.flush() }, { $0.sessionStarted() }] as [(inout Sender) -> Void] {
            var isFixed = false
            var simulation = Simulation { _ in .status(403) }
            simulation.record(20)
            simulation.run(until: 4)
            #expect(simulation.requests.count == 1)
            isFixed = true
            simulation.server = { _ in isFixed ? .accepted : .status(403) }
            leave(&simulation.sender)
            simulation.run(until: 4.5)
            #expect(simulation.queue.isEmpty)
            #expect(simulation.sender.configurationProblem == nil)
        }
    }

    // MARK: Poison (D9)

    @Test(arguments: [400, 413, 500], [1, 50, 99, 100])
    func onePoisonEventIsFoundAndTheOthersGoOut(status: Int, position: Int) {
        var simulation = Simulation { request in
            request.events.contains { $0.sequence == Int64(position) } ? .status(status) : .accepted
        }
        simulation.record(100)
        simulation.run(until: Self.hour)
        #expect(simulation.delivered.count == 99)
        // Of the last one nothing is known before another is accepted.
        simulation.record(1)
        simulation.run(until: 2 * Self.hour)
        #expect(simulation.delivered.count == 100)
        #expect(simulation.quarantined.map(\.sequence) == [Int64(position)])
        // Two requests would have done without it.
        let tries = simulation.requests.count { $0.events.contains { $0.sequence == Int64(position) } }
        #expect(tries <= 9 + (position >= 99 ? 4 : 0), "\(tries)")
    }

    @Test(arguments: [400, 413, 500])
    func anyPositionIsFoundWithTenMoreRequestsAtMost(status: Int) {
        // After the last ones the server takes nothing that would tell them from a bad moment.
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

    @Test func severalPoisonEventsAreAllFound() {
        let poison: Set<Int64> = [3, 4, 77, 250]
        var simulation = Simulation { request in
            request.events.contains { poison.contains($0.sequence) } ? .status(422) : .accepted
        }
        simulation.record(300)
        simulation.run(until: Self.hour)
        #expect(Set(simulation.quarantined.map(\.sequence)) == poison)
        #expect(simulation.delivered.count == 296)
    }

    @Test func refusedOnesOfABatchAreSetAsideAloneWithoutAnotherRequest() {
        var simulation = Simulation { request in
            .answer(
                ServerAnswer(
                    .accepted(
                        duplicates: 0,
                        rejected: [.init(index: 2, explanation: .init("invalid_event", "no name"))],
                        warning: nil),
                    status: 200))
        }
        simulation.record(5)
        simulation.run(until: 20)
        #expect(simulation.requests.count == 1)
        #expect(simulation.quarantined.map(\.sequence) == [3])
        #expect(simulation.delivered.map(\.sequence) == [1, 2, 4, 5])
    }

    @Test func aBodyLimitHalvesTheBatchesAndLosesNothing() {
        var simulation = Simulation { $0.events.count > 40 ? .status(413) : .accepted }
        simulation.record(1_000)
        simulation.run(until: 20)
        #expect(simulation.queue.isEmpty)
        #expect(simulation.quarantined.isEmpty)
        #expect(simulation.requests.filter { $0.events.count > 40 }.count <= 2)
    }

    @Test func loneEventThatFailsWith500IsNeverSetAside() {
        var simulation = Simulation { _ in .status(500) }
        simulation.record(1)
        simulation.run(until: 6 * Self.hour)
        #expect(simulation.quarantined.isEmpty)
        simulation.server = { _ in .accepted }
        simulation.run(until: 7 * Self.hour)
        #expect(simulation.delivered.count == 1)
    }

    // MARK: Tokens

    @Test func fiftyRefusalsPauseUntilASessionATokenOrAFlush() {
        let resume: [(String, (inout Simulation) -> Void, Int)] = [
            ("session", { $0.sender.sessionStarted() }, 50),
            (
                "token",
                {
                    $0.generations[UserKey("ada")] = 2
                    $0.sender.tokenChanged(for: UserKey("ada"), generation: 2, now: $0.now)
                }, 50
            ),
            ("flush", { $0.sender.flush() }, 1),
        ]
        for (name, act, more) in resume {
            var simulation = Simulation { _ in .refusedToken(.noMatchingPublicKeys) }
            simulation.generations[UserKey("ada")] = 1
            simulation.record(100, user: "ada")
            simulation.run(until: 24 * Self.hour)
            #expect(simulation.requests.count == 50)
            simulation.run(until: 48 * Self.hour)
            #expect(simulation.requests.count == 50, "paused means paused")
            #expect(simulation.queue.count == 100)

            let paused = simulation
            act(&simulation)
            simulation.run(until: simulation.now + 24 * Self.hour)
            #expect(simulation.requests.count == 50 + more, "\(name)")

            var recovered = paused
            recovered.server = { _ in .accepted }
            act(&recovered)
            recovered.run(until: recovered.now + 1)
            #expect(recovered.queue.isEmpty, "\(name)")
        }
    }

    @Test func afterOneFailedReplacementTheProviderIsAskedAtTheBackOffOnly() {
        var serial = 1
        var simulation = Simulation(
            provider: { _ in
                serial += 1
                return serial
            }, server: { _ in .refusedToken(.expired) })
        simulation.generations[UserKey("ada")] = 1
        simulation.record(20, user: "ada")
        simulation.run(until: 0)
        #expect(simulation.requests.count == 2)
        #expect(simulation.providerCalls == 1)
        simulation.run(until: 24 * Self.hour)
        // Fifty within three and a half hours, and then one an hour: what a provider returns may change by itself.
        #expect(simulation.requests.count == 70)
        #expect(simulation.providerCalls == 69)
    }

    @Test func providerWithoutATokenLeavesTheDecisionToTheServer() {
        var simulation = Simulation(provider: { _ in nil }, server: { _ in .accepted })
        simulation.record(20, user: "ada")
        simulation.run(until: 0)
        #expect(simulation.queue.isEmpty)
    }

    @Test func providerWithoutATokenIsLikeANetworkThatIsDown() {
        var isRequired = true
        var simulation = Simulation(provider: { _ in nil }, server: { _ in .refusedToken(.missingToken) })
        simulation.record(20, user: "ada")
        simulation.run(until: 24 * Self.hour)
        // As with a server that is down: the first 8 within 254 s, then every 180 s, and never a pause.
        #expect(simulation.requests.count == 486)
        #expect(simulation.queue.count == 20)
        isRequired = false
        simulation.server = { _ in isRequired ? .refusedToken(.missingToken) : .accepted }
        simulation.run(until: simulation.now + 180)
        #expect(simulation.queue.isEmpty)
    }

    @Test func aProviderThatReturnsWhileARoundEndsIsNotForgotten() {
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
            Issue.record("no token was looked for")
            return
        }
        sender.authorizationPending()
        #expect(isClaim(sender.next(now: 0)))
        // Nobody else's events: the round is over.
        sender.claimed([], now: 0)
        sender.tokenSought(for: UserKey("ada"))
        guard case .finish = sender.next(now: 0) else {
            Issue.record("the round goes on")
            return
        }
        #expect(isClaim(sender.next(now: 0)))
    }

    @Test func aRefusedTokenIsNotSentAgainAtOnceWhenTheProviderFails() {
        var simulation = Simulation(provider: { _ in nil }, server: { _ in .refusedToken(.expired) })
        simulation.generations[UserKey("ada")] = 1
        simulation.record(20, user: "ada")
        simulation.run(until: 0)
        #expect(simulation.requests.count == 1)
        simulation.run(until: 2)
        #expect(simulation.requests.count == 2, "after a wait the server may have changed its mind")
    }

    @Test func aFreshTokenThatIsRefusedInADaemonIsTriedOnceAnHourAfterFifty() {
        var serial = 1
        var simulation = Simulation(
            provider: { _ in
                serial += 1
                return serial
            }, server: { _ in .refusedToken(.noMatchingPublicKeys) })
        simulation.generations[UserKey("ada")] = 1
        simulation.record(20, user: "ada")
        simulation.run(until: 100 * Self.hour)
        let day = simulation.requests.count
        simulation.run(until: 124 * Self.hour)
        #expect(simulation.requests.count - day == 24)
        simulation.server = { _ in .accepted }
        simulation.run(until: 125 * Self.hour)
        #expect(simulation.queue.isEmpty)
    }

    @Test(arguments: [302, 401, 403, 404])
    func oneStrayAnswerStopsSendingForSecondsOnly(status: Int) {
        var isFirst = true
        var simulation = Simulation { _ in
            defer { isFirst = false }
            guard isFirst else { return .accepted }
            return .answer(
                ServerAnswer(.configurationProblem(.init("http_\(status)", "")), status: status))
        }
        simulation.record(20)
        simulation.run(until: 5)
        #expect(simulation.queue.isEmpty)
        #expect(simulation.sender.configurationProblem == nil)
    }

    @Test func oneUsersTokenProblemDoesNotHoldTheOthers() {
        var simulation = Simulation { request in
            request.events.first?.userID == "ada" ? .refusedToken(.expired) : .accepted
        }
        simulation.record(5, user: "ada")
        simulation.record(5)
        simulation.record(10, user: "bob")
        simulation.run(until: 0)
        #expect(Set(simulation.queue.map(\.userID)) == ["ada"])
        #expect(simulation.requests.count == 3)
    }

    @Test func lateRefusalDoesNotHurtTheTokenThatCameMeanwhile() {
        var simulation = Simulation { _ in .accepted }
        simulation.generations[UserKey("ada")] = 1
        simulation.server = { $0.generation == 1 ? .refusedToken(.expired) : .accepted }
        simulation.record(20, user: "ada")
        // The answer to generation 1 comes after generation 2 was handed over.
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

    /// The seed's own sample fetches a new token in the callback; with a server that refuses all, that must not spin.
    @Test func appThatAnswersEachRefusalWithANewTokenIsSlowedDown() {
        var simulation = Simulation { _ in .refusedToken(.noMatchingPublicKeys) }
        simulation.generations[UserKey("ada")] = 1
        simulation.record(20, user: "ada")
        var generation = 1
        while simulation.now < Self.hour {
            let refusals = simulation.failures.count
            simulation.run(until: simulation.now + 1)
            if simulation.failures.count > refusals {
                generation += 1
                simulation.generations[UserKey("ada")] = generation
                simulation.sender.tokenChanged(
                    for: UserKey("ada"), generation: generation, now: simulation.now)
            }
        }
        #expect(simulation.requests.count <= 5 + 60 + 1)
        #expect(simulation.requests.count >= 60)
    }

    @Test func optionalModeDeliversAndReports() {
        let verdict = ServerAnswer.TokenVerdict(code: .expired, reason: "EXPIRED")
        var simulation = Simulation { _ in
            .answer(ServerAnswer(.accepted(duplicates: 0, rejected: [], warning: verdict), status: 200))
        }
        simulation.record(20, user: "ada")
        simulation.run(until: 0)
        #expect(simulation.queue.isEmpty)
        #expect(simulation.failures == [verdict])
    }

    // MARK: The queue's own troubles

    @Test func whatCouldNotBeSettledIsNotSentAgain() {
        var sender = Sender(settings: Sender.Settings())
        let event = QueuedEvent(sequence: 1, messageID: "m", userID: nil, body: [])
        sender.stored(20, now: 0)
        _ = sender.next(now: 0)
        sender.claimed([event], now: 0)
        _ = sender.next(now: 0)
        sender.authorized(generation: 0)
        _ = sender.next(now: 0)
        _ = sender.answered(
            ServerAnswer(.accepted(duplicates: 0, rejected: [], warning: nil), status: 200), now: 0,
            fraction: 1)
        #expect(sender.next(now: 0) == .settle(Settlement(delivered: [event])))
        sender.settleFailed(.init("queue", "disk full"), now: 0, fraction: 1)
        #expect(sender.next(now: 0) == .wait(until: 2))
        #expect(sender.next(now: 2) == .settle(Settlement(delivered: [event])))
        sender.settled()
        #expect(sender.next(now: 2) != .settle(Settlement(delivered: [event])))
    }

    @Test func aWipeEndsTheWaitOfASettlementThatFailed() {
        var sender = Sender(settings: Sender.Settings())
        func deliver(_ event: QueuedEvent) {
            sender.flush()
            _ = sender.next(now: 0)
            sender.claimed([event], now: 0)
            _ = sender.next(now: 0)
            sender.authorized(generation: 0)
            _ = sender.next(now: 0)
            _ = sender.answered(
                ServerAnswer(.accepted(duplicates: 0, rejected: [], warning: nil), status: 200), now: 0,
                fraction: 1)
        }
        deliver(QueuedEvent(sequence: 1, messageID: "m", userID: nil, body: []))
        sender.settleFailed(.init("queue", "disk full"), now: 0, fraction: 1)
        sender.reset()
        let event = QueuedEvent(sequence: 2, messageID: "n", userID: nil, body: [])
        deliver(event)
        #expect(sender.next(now: 0) == .settle(Settlement(delivered: [event])))
        #expect(sender.lastProblem == nil)
    }

    @Test func anotherProcessThatSendsIsWaitedFor() {
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

/// Servers that always do the same.
enum HostileServer: Sendable, CustomTestStringConvertible {
    case status(Int)
    case statusWithRetryAfter(Int, TimeInterval)
    case error(HTTPTransportError.Code)

    var testDescription: String { "\(self)" }

    func reply(_ request: Simulation.Request) -> Simulation.Reply {
        switch self {
        case .status(let status): .status(status)
        case .statusWithRetryAfter(let status, let delay): .status(status, retryAfter: delay)
        case .error(let code): .error(code)
        }
    }
}
